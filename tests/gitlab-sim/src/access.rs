//! Users, tokens, roles: who calls, and what they may do.
//!
//! Models the error bodies of authentication: unknown, expired, revoked tokens and too small a
//! scope (`PRIVATE-TOKEN`, `Authorization: Bearer`, `?private_token=`).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::Call;
use crate::project::Project;
use crate::reply::{Reply, unauthorized};
use crate::state::State;

/// Role in a project, from low to high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees issues, not code.
    Guest,
    /// Reads.
    Reporter,
    /// Pushes to unprotected branches.
    Developer,
    /// Pushes to protected branches, manages hooks.
    Maintainer,
    /// All rights.
    Owner,
}

impl Role {
    /// GitLab's number for it.
    pub(crate) fn level(self) -> u32 {
        match self {
            Self::Guest => 10,
            Self::Reporter => 20,
            Self::Developer => 30,
            Self::Maintainer => 40,
            Self::Owner => 50,
        }
    }
}

/// A person or bot.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) id: u64,
    pub(crate) username: String,
    pub(crate) name: String,
    pub(crate) bot: bool,
    pub(crate) admin: bool,
}

impl User {
    pub(crate) fn email(&self) -> String {
        format!("{}@sim.example", self.username)
    }
}

/// An access token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) user: u64,
    pub(crate) scopes: Vec<String>,
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) revoked: bool,
}

/// Whom a request speaks for.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) user: u64,
    pub(crate) scopes: Vec<String>,
}

impl State {
    /// The identity behind a token text; `None` without a token.
    pub(crate) fn identify(&self, token: Option<&str>) -> Result<Option<Identity>, Reply> {
        let Some(text) = token else { return Ok(None) };
        let token = self.tokens.get(text).ok_or_else(unauthorized)?;
        if token.revoked {
            return Err(invalid_token("Token was revoked. You have to re-authorize from the user."));
        }
        if token.expires_at_ms.is_some_and(|at| at <= self.now_ms) {
            return Err(invalid_token("Token is expired. You can either do re-authorization or token refresh."));
        }
        Ok(Some(Identity { user: token.user, scopes: token.scopes.clone() }))
    }

    pub(crate) fn user_by_name(&self, username: &str) -> Option<&User> {
        self.users.values().find(|user| user.username == username)
    }

    /// The user's short JSON, or null.
    pub(crate) fn user_json(&self, id: Option<u64>) -> Value {
        id.and_then(|id| self.users.get(&id)).map_or(Value::Null, |user| self.short_user(user))
    }

    fn short_user(&self, user: &User) -> Value {
        json!({
            "id": user.id, "username": user.username, "public_email": "", "name": user.name,
            "state": "active", "locked": false, "avatar_url": null,
            "web_url": format!("{}/{}", self.base_url, user.username),
        })
    }

    /// The user as jobs show it, with an empty profile.
    pub(crate) fn job_user_json(&self, id: u64) -> Value {
        let mut body = self.user_json(Some(id));
        for name in ["bio", "location", "linkedin", "twitter", "discord", "website_url", "github", "job_title", "organization"] {
            body[name] = json!("");
        }
        for name in ["pronouns", "work_information", "local_time"] {
            body[name] = Value::Null;
        }
        body["created_at"] = json!("2026-01-01T08:00:00.000Z");
        body["bot"] = json!(self.users.get(&id).is_some_and(|user| user.bot));
        body["followers"] = json!(0);
        body["following"] = json!(0);
        body
    }

    /// The user as hooks show it.
    pub(crate) fn hook_user(&self, id: u64) -> Value {
        self.users.get(&id).map_or(
            Value::Null,
            |user| json!({ "id": user.id, "name": user.name, "username": user.username, "avatar_url": null, "email": "[REDACTED]" }),
        )
    }

    /// The user's role; admins own everything.
    pub(crate) fn role(&self, project: &Project, user: Option<u64>) -> Option<Role> {
        let user = user?;
        if self.users.get(&user).is_some_and(|user| user.admin) {
            return Some(Role::Owner);
        }
        project.members.get(&user).copied()
    }

    pub(crate) fn has_role(&self, project: &Project, user: Option<u64>, least: Role) -> bool {
        self.role(project, user).is_some_and(|role| role >= least)
    }

    /// Whether the user may push to the branch.
    pub(crate) fn may_push(&self, project: &Project, user: Option<u64>, branch: &str) -> bool {
        let Some(role) = self.role(project, user) else { return false };
        role >= Role::Developer && project.push_level(branch).is_none_or(|level| level.allows(role))
    }

    /// Whether the user may merge into the branch.
    pub(crate) fn may_merge(&self, project: &Project, user: Option<u64>, branch: &str) -> bool {
        let Some(role) = self.role(project, user) else { return false };
        role >= Role::Developer && project.merge_level(branch).is_none_or(|level| level.allows(role))
    }
}

/// Refuses a token whose scopes do not cover the call.
pub(crate) fn check_scope(identity: &Identity, writes: bool) -> Result<(), Reply> {
    let wanted: &[&str] = if writes { &["api"] } else { &["api", "read_api"] };
    if identity.scopes.iter().any(|scope| wanted.contains(&scope.as_str())) {
        return Ok(());
    }
    Err(Reply::json(
        403,
        &json!({
            "error": "insufficient_scope",
            "error_description": "The request requires higher privileges than provided by the access token.",
            "scope": wanted.join(" "),
        }),
    ))
}

fn invalid_token(description: &str) -> Reply {
    let challenge = format!("Bearer realm=\"Protected by OAuth 2.0\", error=\"invalid_token\", error_description=\"{description}\"");
    Reply::json(401, &json!({ "error": "invalid_token", "error_description": description })).with_header("WWW-Authenticate", challenge)
}

/// `GET /user`
pub(crate) fn current_user(state: &mut State, call: &Call) -> Result<Reply, Reply> {
    let user = state.users.get(&call.user_id()?).ok_or_else(unauthorized)?;
    let mut body = state.short_user(user);
    body["email"] = json!(user.email());
    body["bot"] = json!(user.bot);
    body["is_admin"] = json!(user.admin);
    body["can_create_project"] = json!(!user.bot);
    Ok(Reply::json(200, &body))
}

/// `GET /version`
pub(crate) fn version(state: &mut State, _call: &Call) -> Result<Reply, Reply> {
    let enterprise = state.version.ends_with("-ee");
    Ok(Reply::json(
        200,
        &json!({ "version": state.version, "revision": "5a1b0c7d9e2", "enterprise": enterprise, "kas": { "enabled": false } }),
    ))
}

/// `GET /metadata`
pub(crate) fn metadata(state: &mut State, call: &Call) -> Result<Reply, Reply> {
    version(state, call)
}
