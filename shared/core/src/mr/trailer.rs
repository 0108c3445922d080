//! The commit trailer by which a crash between a push and its record is survived: `Collie-Build: <identity>/<generation>/<build>`.
//!
//! A trailer says what a commit claims to be, never what it is: whoever finds one verifies the tree ([`super::ownership`]).

use crate::item::Item;

const KEY: &str = "Collie-Build: ";

/// What a trailer claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// The digest of the branch identity.
    pub identity: String,
    /// The life of that identity.
    pub generation: u64,
    /// The build of that life.
    pub build: u64,
}

impl Trailer {
    /// The trailer of a build of this item.
    #[must_use]
    pub fn of(item: &Item, build: u64) -> Self {
        Self { identity: item.branch.digest(), generation: item.generation, build }
    }

    /// The message with this trailer as its last paragraph.
    #[must_use]
    pub fn append_to(&self, message: &str) -> String {
        format!("{}\n\n{KEY}{}/{}/{}", message.trim_end(), self.identity, self.generation, self.build)
    }

    /// The last trailer of a commit message.
    #[must_use]
    pub fn find(message: &str) -> Option<Self> {
        let value = message.lines().rev().find_map(|line| line.trim().strip_prefix(KEY))?;
        let mut parts = value.split('/');
        let identity = parts.next()?.to_owned();
        let (generation, build) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Self { identity, generation, build })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use proptest::prelude::*;

    #[test]
    fn a_trailer_is_found_again_as_the_last_line_of_a_message() {
        let trailer = Trailer { identity: "0011223344556677".into(), generation: 2, build: 14 };
        let message = trailer.append_to("Bump openssl to 3.5.1\n");
        assert_eq!(message, "Bump openssl to 3.5.1\n\nCollie-Build: 0011223344556677/2/14");
        assert_eq!(Trailer::find(&message), Some(trailer.clone()));
        assert_eq!(Trailer::find(&format!("{message}\n\nSigned-off-by: a")), Some(trailer));
        for bad in ["", "Collie-Build: x", "Collie-Build: x/1/y", "Collie-Build: x/1/2/3"] {
            assert_eq!(Trailer::find(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_trailer_of_an_item_names_its_identity_its_life_and_the_build() {
        let item = crate::item::Item { generation: 3, ..sample::item() };
        let want = Trailer { identity: item.branch.digest(), generation: 3, build: 7 };
        assert_eq!(Trailer::of(&item, 7), want);
        assert_eq!(want.identity.len(), 16);
    }

    #[test]
    fn the_last_trailer_counts_and_a_broken_last_one_hides_those_before_it() {
        let build = |message: &str| Trailer::find(message).map(|t| t.build);
        assert_eq!(build("x\n\nCollie-Build: a/1/1\nCollie-Build: a/1/2"), Some(2));
        assert_eq!(build("x\n\nCollie-Build: a/1/1\nCollie-Build: broken"), None);
        assert_eq!(build("x\r\n\r\n  Collie-Build: a/1/5  \r\n"), Some(5));
        for not_a_line in
            ["see Collie-Build: a/1/5", "collie-build: a/1/5", "Collie-Build:a/1/5", "Collie-Build: a/-1/5", "Collie-Build: a/1/5x"]
        {
            assert_eq!(build(not_a_line), None, "{not_a_line}");
        }
    }

    proptest! {
        #[test]
        fn what_was_appended_is_found(message in "\\PC{0,40}(\n\\PC{0,40}){0,3}", identity in "[0-9a-f]{16}", generation: u64, build: u64) {
            let trailer = Trailer { identity, generation, build };
            prop_assert_eq!(Trailer::find(&trailer.append_to(&message)), Some(trailer));
        }
    }
}
