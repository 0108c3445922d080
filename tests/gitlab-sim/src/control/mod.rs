//! The control API below `/_sim/`.

use crate::call::ApiRequest;
use crate::reply::{Reply, error};
use crate::sim::Sim;

/// Answers a control request.
pub(crate) fn handle(_sim: &Sim, _request: &ApiRequest) -> Reply {
    error(404, "404 Not Found")
}
