//! Dead letters: rows of one partition, by the message's id. There are few of them, and they expire.

use super::DynamoItems;
use super::read::Query;
use crate::attribute;
use crate::expression::Write;
use crate::key::{self, Key, LETTER};
use crate::row;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::letter::{KEPT, Letter, State};
use collie_engine::ports::{LetterPage, Letters};

#[async_trait]
impl Letters for DynamoItems {
    async fn keep(&self, letter: &Letter) -> Result<(), Failure> {
        let mut write = Write::default();
        write.require("attribute_not_exists(pk)");
        self.write_letter(letter, write).await.map(|_| ())
    }

    async fn letter(&self, id: &str) -> Result<Option<Letter>, Failure> {
        self.read_row(&Key::letter(id)).await
    }

    async fn letters(&self, state: Option<State>, after: Option<&str>, limit: usize) -> Result<LetterPage, Failure> {
        let mut search = Write::default();
        search.require_equal("pk", key::LETTERS);
        let first = after.map_or_else(|| LETTER.to_owned(), |id| format!("{}\u{0}", Key::letter(id).sk));
        let (sk, first, last) = (search.name("sk"), search.value(&first), search.value("letter$"));
        search.require(format!("{sk} BETWEEN {first} AND {last}"));
        let filter = state.map(|state| format!("{} = {}", search.name("state"), search.value(&state)));
        let found = self.query(Query { index: None, search, filter, forward: true }, limit + 1).await?;
        let letters = found.iter().map(|letter| row::read(attribute::row(letter))).collect::<Result<_, _>>()?;
        Ok(page(letters, limit))
    }

    async fn replace(&self, letter: &Letter) -> Result<bool, Failure> {
        let mut write = Write::default();
        write.require_equal("version", &(letter.version - 1));
        self.write_letter(letter, write).await
    }
}

impl DynamoItems {
    async fn write_letter(&self, letter: &Letter, write: Write) -> Result<bool, Failure> {
        let mut row = row::of(letter);
        row.insert("exp".to_owned(), (letter.kept_at.after(KEPT).as_millis() / 1000).into());
        self.write_where(&Key::letter(&letter.id), write, &row).await
    }
}

/// The page of up to one letter more than `limit`.
pub(crate) fn page(mut items: Vec<Letter>, limit: usize) -> LetterPage {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|letter| letter.id.clone());
    LetterPage { items, next }
}
