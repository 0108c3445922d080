//! Collie's HTTP API: routes, problem documents, the authentication port.
