//! What tests of several modules share.

use rufous_datatype::object::Tag;
use rufous_store::shard::{Keyed, Keying};

/// All keys are replicated, and their strings registers.
#[derive(Debug)]
pub(crate) struct All;

impl Keying for All {
    fn of(&self, _: &[u8]) -> Option<Keyed> {
        Some(Keyed {
            strings: Tag::Register,
            is_shared: true,
        })
    }
}
