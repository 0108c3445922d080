//! Control of the instance: clock, background work, version, users, tokens and the key of ID tokens.

use serde::Deserialize;
use serde_json::json;

use super::{Control, done, done_if};
use crate::clock::Clock;
use crate::oidc::IdToken;
use crate::reply::{Answer, Reply, error};

/// `GET /_sim/clock`
pub(super) fn clock(control: &Control) -> Answer {
    let state = control.sim.lock();
    let body = json!({ "clock": state.clock, "now_ms": state.now_ms, "next_event_at": state.next_task_at() });
    Ok(Reply::json(200, &body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    by_ms: Option<u64>,
    to_ms: Option<u64>,
}

/// `POST /_sim/clock/advance`
pub(super) fn advance(control: &Control) -> Answer {
    let wanted: Advance = control.body()?;
    if control.sim.lock().clock == Clock::Wall {
        return Err(error(409, "the clock is the wall's"));
    }
    match (wanted.by_ms, wanted.to_ms) {
        (Some(ms), None) => control.sim.advance_by(ms),
        (None, Some(ms)) => control.sim.advance_to(ms),
        _ => return Err(error(400, "give by_ms or to_ms")),
    }
    clock(control)
}

/// `GET /_sim/tasks`
pub(super) fn tasks(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!(control.sim.lock().scheduled())))
}

/// `GET /_sim/timing`
pub(super) fn timing(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!(control.sim.lock().timing)))
}

/// `PUT /_sim/timing`
pub(super) fn set_timing(control: &Control) -> Answer {
    let current = control.sim.lock().timing.clone();
    let new = control.overlaid(&current)?;
    control.sim.set_timing(|timing| *timing = new);
    timing(control)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    version: String,
}

/// `PUT /_sim/version`
pub(super) fn set_version(control: &Control) -> Answer {
    let wanted: Version = control.body()?;
    control.sim.set_version(&wanted.version);
    done()
}

/// `GET /_sim/users`
pub(super) fn users(control: &Control) -> Answer {
    let state = control.sim.lock();
    let rows = state.users.values();
    let rows: Vec<_> = rows
        .map(|user| json!({ "id": user.id, "username": user.username, "name": user.name, "bot": user.bot, "admin": user.admin }))
        .collect();
    Ok(Reply::json(200, &json!(rows)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUser {
    username: String,
    name: Option<String>,
    #[serde(default)]
    admin: bool,
    #[serde(default)]
    bot: bool,
}

/// `POST /_sim/users`
pub(super) fn add_user(control: &Control) -> Answer {
    let user: NewUser = control.body()?;
    let name = user.name.as_deref().unwrap_or(&user.username);
    let id = match (user.admin, user.bot) {
        (true, _) => control.sim.add_admin(&user.username, name),
        (false, true) => control.sim.add_bot(&user.username, name),
        (false, false) => control.sim.add_user(&user.username, name),
    };
    Ok(Reply::json(201, &json!({ "id": id, "username": user.username })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    user: String,
    token: String,
    scopes: Option<Vec<String>>,
    expires_at_ms: Option<u64>,
}

/// `POST /_sim/tokens`
pub(super) fn add_token(control: &Control) -> Answer {
    let new: NewToken = control.body()?;
    let scopes = new.scopes.unwrap_or_else(|| vec!["api".to_owned()]);
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let ok = control.sim.add_token(&new.user, &new.token, &scopes, new.expires_at_ms);
    done_if(ok, "no such user")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldToken {
    token: String,
}

/// `POST /_sim/tokens/revoke`
pub(super) fn revoke_token(control: &Control) -> Answer {
    let old: OldToken = control.body()?;
    done_if(control.sim.revoke_token(&old.token), "no such token")
}

/// `POST /_sim/oidc/id_tokens`
pub(super) fn id_token(control: &Control) -> Answer {
    let wanted: IdToken = control.body()?;
    let minted = control.sim.id_token(&wanted).ok_or_else(|| error(404, "no such project or user"))?;
    Ok(Reply::json(201, &json!({ "id_token": minted })))
}

/// `POST /_sim/oidc/rotate`
pub(super) fn rotate_signing_key(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!({ "kid": control.sim.rotate_signing_key() })))
}
