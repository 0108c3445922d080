//! Control of calls and deliveries: faults, held calls, the journal, hook habits, rate limits.

use serde_json::{Value, json};

use super::{Control, done, done_if};
use crate::deliveries::{Delivery, HookHabits};
use crate::faults::Fault;
use crate::rate_limits::RateLimit;
use crate::reply::{Answer, Reply};

/// `GET /_sim/faults`
pub(super) fn faults(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!(control.sim.lock().faults.list())))
}

/// `POST /_sim/faults`
pub(super) fn add_fault(control: &Control) -> Answer {
    let fault: Fault = control.body()?;
    control.sim.add_fault(fault);
    done()
}

/// `DELETE /_sim/faults`
pub(super) fn clear_faults(control: &Control) -> Answer {
    control.sim.clear_faults();
    done()
}

/// `GET /_sim/holds`
pub(super) fn holds(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!(control.sim.lock().faults.holds_json())))
}

/// `POST /_sim/holds/release`
pub(super) fn release_all(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!({ "released": control.sim.release_holds() })))
}

/// `POST /_sim/holds/:hold_id/release`
pub(super) fn release_one(control: &Control) -> Answer {
    let id = control.number("hold_id")?;
    let released = control.sim.lock().release_hold(id);
    done_if(released.is_some(), "no such held call")
}

/// `GET /_sim/journal`
pub(super) fn journal(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!(control.sim.journal())))
}

/// `DELETE /_sim/journal`
pub(super) fn clear_journal(control: &Control) -> Answer {
    control.sim.clear_journal();
    done()
}

/// `GET /_sim/hook_habits`
pub(super) fn hook_habits(control: &Control) -> Answer {
    Ok(Reply::json(200, &json!(control.sim.lock().deliveries.habits)))
}

/// `PUT /_sim/hook_habits`
pub(super) fn set_hook_habits(control: &Control) -> Answer {
    let current = control.sim.lock().deliveries.habits.clone();
    let new: HookHabits = control.overlaid(&current)?;
    control.sim.set_hook_habits(|habits| *habits = new);
    hook_habits(control)
}

/// `POST /_sim/deliveries/take`
pub(super) fn take_deliveries(control: &Control) -> Answer {
    let row = |sent: &Delivery| {
        let headers: serde_json::Map<String, Value> = sent.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({ "project_id": sent.project_id, "hook_id": sent.hook_id, "url": sent.url, "at_ms": sent.at_ms, "headers": headers, "body": sent.json() })
    };
    let rows: Vec<Value> = control.sim.take_deliveries().iter().map(row).collect();
    Ok(Reply::json(200, &json!(rows)))
}

/// `PUT /_sim/rate_limit`
pub(super) fn set_rate_limit(control: &Control) -> Answer {
    let limit: RateLimit = control.body()?;
    control.sim.set_rate_limit(Some(limit));
    done()
}

/// `DELETE /_sim/rate_limit`
pub(super) fn clear_rate_limit(control: &Control) -> Answer {
    control.sim.set_rate_limit(None);
    done()
}
