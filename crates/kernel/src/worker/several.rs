//! Commands that write keys of several slots: refused where one of these slots has copies at other
//! nodes. Each slot's chain carries its part of the writes without knowledge of the other chains:
//! when the head fails, one part could survive and the other be lost.
//!
//! This is checked when keys are held, directly before the writes: until then a slot may get its
//! first copy.

use super::Worker;
use crate::program::Program;

/// Linear transactions will support these.
pub const SEVERAL: &str = "CROSSSLOT The command may write keys of several slots, and slots have copies at other nodes: \
     what one of them has could be without the other. Give the keys one hash tag, as in {tag}key";

impl<P: Program> Worker<P> {
    /// Whether keys are of several slots, some of which have copies at other nodes.
    pub fn is_spread<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> bool {
        let chains = self.chains.as_ref();
        chains.is_some_and(|chains| chains.is_spread(keys, &self.placement))
    }

    /// Whether a command may not be executed on these keys together.
    pub(super) fn is_too_spread<'k>(
        &self,
        command: u16,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> bool {
        self.chains.is_some()
            && P::is_write(command)
            && !P::is_of_each(command)
            && self.is_spread(keys)
    }
}
