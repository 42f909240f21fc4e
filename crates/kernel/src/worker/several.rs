//! Commands that write keys of several slots: refused where one of these has
//! copies at other nodes. Each slot's chain has its part of the writes, and no
//! chain knows of another: when the head has gone, one part could be there and
//! the other not.
//!
//! It is asked when keys are held, and nothing comes between that and the
//! writes: until then a slot may get its first copy.

use super::Worker;
use crate::program::Program;
use rufous_base::slot::slot_of;

/// Linear transactions will do these.
pub const SEVERAL: &str = "CROSSSLOT The command may write keys of several slots, and slots have copies at other nodes: \
     what one of them has could be without the other. Give the keys one hash tag, as in {tag}key";

impl<P: Program> Worker<P> {
    /// Whether keys are of several slots, of which some are at other nodes as well.
    pub fn is_spread<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> bool {
        let Some(chains) = &self.chains else {
            return false;
        };
        let strict = |key: &&[u8]| self.placement.lattice(key).is_none();
        let mut slots = keys.into_iter().filter(strict).map(slot_of);
        let Some(first) = slots.next() else {
            return false;
        };
        let mapping = chains
            .replica
            .as_ref()
            .and_then(|replica| replica.mapping());
        let is_shared =
            |slot| mapping.is_some_and(|mapping| mapping.chains.of(slot).named().count() > 1);
        let (mut differ, mut shared) = (false, is_shared(first));
        for slot in slots {
            differ |= slot != first;
            shared |= is_shared(slot);
        }
        differ && shared
    }

    /// Whether a command may not be done to these keys together.
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
