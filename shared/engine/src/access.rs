//! Who asks, and what they may do. Rules and tokens are the authentication adapter's business; this is its verdict.

use collie_core::item::Item;

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `<issuer host>|<sub>`, `<cluster>|<user>` or `local|<name>`.
    pub identity: String,
    /// Whether the caller may act on items of others. Never bypasses policy.
    pub admin: bool,
}

impl Caller {
    /// Whether the caller may see and move this item.
    #[must_use]
    pub fn may_touch(&self, item: &Item) -> bool {
        self.admin || item.caller_identity == self.identity
    }
}
