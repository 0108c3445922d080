//! Who asks, and what they may do. Tokens and rules are the authentication adapter's business; grants are its verdict, and every
//! use case asks them about the item that it is about to show or to move.

use crate::Engine;
use collie_core::access::{Denied, Grants, Labels, Request, Work};
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::item::Item;
use collie_core::mr::wanted::{OnConflict, Wanted};

/// The longest identity that audit entries hold whole, in bytes.
const MAX_ACTOR: usize = 80;

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `<issuer host>|<sub>`, `<cluster>|<user>` or `local|<name>`; always whole.
    pub identity: String,
    /// What they may do. Never bypasses policy.
    pub grants: Grants,
    /// Who signed their token, where someone did.
    pub issuer: Option<String>,
    /// The groups that a cluster knows them by.
    pub groups: Vec<String>,
    /// The names of the rules that gave them their grants; for operators, never shown to callers.
    pub rules: Vec<String>,
}

impl Caller {
    /// A caller with these grants.
    pub fn new(identity: impl Into<String>, grants: Grants) -> Self {
        Self { identity: identity.into(), grants, issuer: None, groups: Vec::new(), rules: Vec::new() }
    }

    /// A caller who may do everything with their own items but overwrite what others did.
    pub fn own_items(identity: impl Into<String>) -> Self {
        Self::new(identity, Grants::own_items())
    }

    /// An admin.
    pub fn admin(identity: impl Into<String>) -> Self {
        Self::new(identity, Grants::admin())
    }

    /// Whether they are an admin.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.grants.covers(&Request::Admin)
    }

    /// Whether they may report builds and issues to a queue.
    #[must_use]
    pub fn may_report(&self, queue: &str) -> bool {
        self.grants.may_report(queue)
    }

    /// Whether they may read builds and issues of a queue.
    #[must_use]
    pub fn may_read_queue(&self, queue: &str) -> bool {
        self.grants.may_read_queue(queue)
    }

    /// Whether the caller may see an item, as far as its row tells: labels are not there and may still forbid it.
    #[must_use]
    pub fn may_see(&self, item: &Item) -> bool {
        self.grants.covers(&Request::Read(self.work(item, Labels::Known(&[]))))
    }

    /// An item as this caller's grants look at it: what its submission said.
    pub(crate) fn work<'a>(&self, item: &'a Item, labels: Labels<'a>) -> Work<'a> {
        // What cannot be read is taken for the most that it could be.
        let (auto_merge, overwrite) = match item.wanted.read::<Wanted>() {
            Ok(wanted) => (wanted.auto_merge, wanted.on_conflict == OnConflict::Overwrite),
            Err(_) => (true, true),
        };
        Work {
            item_type: &item.item_type,
            project: &item.project,
            source_branch: &item.branch.source_branch,
            target_branch: &item.target,
            labels,
            auto_merge,
            overwrite,
            of_others: item.caller_identity != self.identity,
        }
    }
}

impl Engine {
    /// Whether the caller may see an item. Its labels are read only where they decide.
    pub(crate) async fn may_see(&self, caller: &Caller, item: &Item) -> Result<bool, Failure> {
        if caller.grants.covers(&Request::Read(caller.work(item, Labels::Unknown))) {
            return Ok(true);
        }
        if !caller.may_see(item) {
            return Ok(false);
        }
        let (_, content) = self.latest_content(item).await?;
        Ok(caller.grants.covers(&Request::Read(caller.work(item, Labels::Known(&content.labels)))))
    }

    /// What the caller lacks to move an item, or to overwrite what others did with it.
    pub(crate) async fn denied(&self, caller: &Caller, item: &Item, overwrite: bool) -> Result<Option<Denied>, Failure> {
        let asked = |work: Work<'_>| caller.grants.deny(&Work { overwrite: work.overwrite || overwrite, ..work });
        if asked(caller.work(item, Labels::Unknown)).is_none() {
            return Ok(None);
        }
        let (_, content) = self.latest_content(item).await?;
        Ok(asked(caller.work(item, Labels::Known(&content.labels))))
    }

    /// Whether the caller may put some work of their own in place of another caller's item: one grant has to cover both.
    pub(crate) async fn may_take_over(&self, caller: &Caller, item: &Item, work: &Work<'_>) -> Result<bool, Failure> {
        let submitted = Request::Submit(Work { of_others: true, ..*work });
        let together = |labels| caller.grants.cover_together(&[submitted, Request::Submit(caller.work(item, labels))]);
        if together(Labels::Unknown) || !together(Labels::Known(&[])) {
            return Ok(together(Labels::Unknown));
        }
        let (_, content) = self.latest_content(item).await?;
        Ok(together(Labels::Known(&content.labels)))
    }
}

/// An identity as audit entries have it: whole, or where it is long, by its digest. An identity has a `|` and a digest has none, so
/// that no identity can be made to look like another's digest (JWT-11).
pub(crate) fn actor(identity: &str) -> String {
    if identity.len() <= MAX_ACTOR {
        return identity.to_owned();
    }
    format!("sha256:{}", sha256_hex(identity.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_core::access::{Globs, Grant};

    #[test]
    fn queues_are_asked_of_the_grants_and_an_admin_may_do_both() {
        let queues = Globs::new(["app-*"]);
        let reporter = Caller::new("gitlab.example.com|ci", Grants::new(vec![Grant::CiReport { queues: queues.clone() }]));
        let reader = Caller::new("gitlab.example.com|dashboard", Grants::new(vec![Grant::CiRead { queues }]));
        let cases = [
            (&reporter, (true, false)),
            (&reader, (false, true)),
            (&Caller::own_items("local|alice"), (false, false)),
            (&Caller::admin("local|root"), (true, true)),
        ];
        for (caller, (reports, reads)) in cases {
            let may = (caller.may_report("app-main"), caller.may_read_queue("app-main"));
            assert_eq!(may, (reports, reads), "{}", caller.identity);
        }
    }

    #[test]
    fn jwt_11_long_identities_that_begin_alike_stay_apart() {
        let long = |end: &str| format!("gitlab.example.com|project_path:group/app:ref_type:branch:ref:{}{end}", "x".repeat(250));
        assert_eq!(actor("local|alice"), "local|alice");
        assert_ne!(actor(&long("a")), actor(&long("b")));
        assert!(actor(&long("a")).len() <= MAX_ACTOR && !actor(&long("a")).contains('|'));
    }
}
