//! A key with a deadline, which clients set again and again. The clocks of nodes are minutes apart in many runs, so
//! that nothing can be said of when a value goes; but once it was seen to have gone, no later read
//! shows it, at whichever copy.

use super::world::World;
use crate::history::Outcome;
use rufous_resp::Reply;
use std::collections::BTreeMap;

pub(super) const FLEETING: &str = "{c}e";

/// Each value is set once, and has these times.
#[derive(Debug)]
struct Seen {
    /// A reply has shown that it is set.
    set_us: u64,
    /// A reply has shown that it has gone.
    gone_us: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Fleeting(BTreeMap<Vec<u8>, Seen>);

impl Fleeting {
    /// A request of `asked_us` has shown this value, or none. Returns whether that may be.
    fn note(&mut self, value: Option<&[u8]>, (asked_us, now_us): (u64, u64)) -> bool {
        for (other, seen) in &mut self.0 {
            if Some(&other[..]) != value && seen.set_us < asked_us {
                seen.gone_us.get_or_insert(now_us);
            }
        }
        let Some(value) = value else {
            return true;
        };
        let seen = self.0.entry(value.to_vec()).or_insert(Seen {
            set_us: now_us,
            gone_us: None,
        });
        seen.gone_us.is_none_or(|gone_us| gone_us >= asked_us)
    }
}

impl World {
    /// A client has set the key to a value, or has read it.
    pub(super) fn look_at_fleeting(
        &mut self,
        set: Option<&[u8]>,
        outcome: &Outcome,
        asked_us: u64,
    ) {
        let Outcome::Seen(reply) = outcome else {
            return;
        };
        let value = match (set, reply) {
            (Some(value), _) => Some(value),
            (None, Reply::Bulk(value)) => Some(&value[..]),
            (None, _) => None,
        };
        if set.is_none() && value.is_none() {
            self.reach("a key has expired");
        }
        if !self.fleeting.note(value, (asked_us, self.engine.now_us)) {
            self.fail("a value that had expired was seen again".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_gone_does_not_come_back() {
        let mut all = Fleeting::default();
        assert!(all.note(Some(b"a"), (1, 2)), "set");
        assert!(all.note(None, (1, 4)), "before it was set");
        assert!(all.note(Some(b"a"), (3, 5)));
        assert!(all.note(None, (6, 8)));
        assert!(all.note(Some(b"a"), (7, 9)), "at the same time");
        assert!(!all.note(Some(b"a"), (9, 10)));
        assert!(all.note(Some(b"b"), (9, 11)));
        assert!(all.note(Some(b"c"), (12, 13)));
        assert!(
            !all.note(Some(b"b"), (14, 15)),
            "another one took its place"
        );
    }
}
