//! Two keys that are only written together. Each value is written once; after a later one was
//! acknowledged no read shows an earlier one.

use super::wishes::is_whole;
use super::world::World;
use crate::history::Outcome;
use rufous_resp::Reply;
use std::collections::BTreeMap;

/// The acknowledged values, and when each was asked for and acknowledged.
#[derive(Debug, Default)]
pub(super) struct Pairs(BTreeMap<Vec<u8>, (u64, u64)>);

impl Pairs {
    fn on_written(&mut self, value: &[u8], asked_us: u64, now_us: u64) {
        self.0.insert(value.to_vec(), (asked_us, now_us));
    }

    /// Whether a read that was asked for then may show this value, or none.
    fn may_be(&self, value: Option<&[u8]>, asked_us: u64) -> bool {
        let written_us = match value {
            None => 0,
            Some(value) => match self.0.get(value) {
                Some((_, now_us)) => *now_us,
                // It may be written at any time.
                None => return true,
            },
        };
        let mut all = self.0.values();
        !all.any(|(later_us, done_us)| *later_us > written_us && *done_us < asked_us)
    }
}

impl World {
    /// A client has written the pair, or has read it.
    pub(super) fn look_at_pair(
        &mut self,
        written: Option<Vec<u8>>,
        outcome: &Outcome,
        asked_us: u64,
    ) {
        let Outcome::Seen(reply) = outcome else {
            return;
        };
        if let Some(value) = written {
            let now_us = self.engine.now_us;
            return self.pairs.on_written(&value, asked_us, now_us);
        }
        if !is_whole(reply) {
            return self.fail("a part of a write was seen".to_owned());
        }
        self.reach("two keys that are written together were read");
        let value = match reply {
            Reply::Array(values) => values.first(),
            _ => None,
        };
        let value = match value {
            Some(Reply::Bulk(value)) => Some(&value[..]),
            _ => None,
        };
        if !self.pairs.may_be(value, asked_us) {
            self.fail("a pair was seen that a later one had replaced".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_does_not_come_back() {
        let mut all = Pairs::default();
        assert!(all.may_be(None, 5) && all.may_be(Some(b"a"), 5));
        all.on_written(b"a", 1, 3);
        assert!(all.may_be(None, 3), "at the same time");
        assert!(!all.may_be(None, 4));
        all.on_written(b"b", 2, 4);
        assert!(all.may_be(Some(b"a"), 9) && all.may_be(Some(b"b"), 9));
        all.on_written(b"c", 5, 7);
        assert!(all.may_be(Some(b"a"), 7));
        assert!(!all.may_be(Some(b"a"), 8) && all.may_be(Some(b"c"), 8));
        assert!(all.may_be(Some(b"in doubt"), 8));
    }
}
