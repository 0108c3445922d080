//! Rows of issue tracking as the table has them: where each is, what it holds, what an edit requires, what it costs. The store in
//! memory is here too; the one on the table is `dynamo::tracking`.
//!
//! What a write means is decided in [`collie_core::issue::table`], not here.

pub(crate) mod bill;
pub(crate) mod expression;
mod memory;
pub(crate) mod place;
pub(crate) mod row;

pub use memory::MemoryTracking;
pub use row::KEPT;

use collie_core::error::Failure;
use collie_core::issue::table::Edit;
use std::collections::BTreeSet;

/// Rows that one transaction may write.
const MAX_EDITS: usize = 100;

/// Refuses a write that DynamoDB would refuse, so that both stores do.
pub(crate) fn check(edits: &[Edit]) -> Result<(), Failure> {
    if edits.len() > MAX_EDITS {
        return Err(Failure::bug(format!("a write has {} edits, and {MAX_EDITS} at most are possible", edits.len())));
    }
    let rows: BTreeSet<_> = edits.iter().map(Edit::key).collect();
    if rows.len() == edits.len() { Ok(()) } else { Err(Failure::bug("two edits of one write are about the same row")) }
}
