//! Who may do what: grants, and the rules that give them to identities (DDR-21 to 23).
//!
//! Decides whether one whole grant covers a request, and which grants a token's claims or a user's groups earn. What two grants
//! say is never combined. Deliberately left to others: whether a token is good, what a policy says (no grant bypasses it), and
//! what is done with a request that is not covered.

mod algorithm;
mod claims;
mod denied;
mod glob;
mod grant;
mod request;
mod rule;

pub use algorithm::Algorithm;
pub use claims::{ClaimRule, Expected};
pub use denied::Denied;
pub use glob::{Glob, Globs};
pub use grant::{Grant, Grants, SubmitGrant};
pub use request::{Labels, Request, Work};
pub use rule::{Credential, Issuer, Rule, Ruling, Who, judge};
