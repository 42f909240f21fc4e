//! Membership in a set, where an addition wins over a removal that has not seen it.
//!
//! For each replica, the greatest stamp of its additions of the member, and the greatest of these that a removal has
//! seen: the member is present while any replica's addition is above what was removed of it. Both are maxima, and so
//! is the stamp of the last removal, which determines when the state can be forgotten. An addition that a removal has
//! seen has no more information than the removal, and is omitted. So it is a [`crate::Map`] of pairs of maxima: added
//! or removed, and removed. This implementation is optimized for the common case of one addition.
//!
//! ```text
//! removals?  last removal   replica  what                         time  step
//! 00                        00 02    01 added                     8     2     …
//! 01         12             00 02    02 removed up to             8     2     …
//!                           00 03    03 removed up to, and added  8 2   8 2   …
//! ```

use crate::code::{Coded, Malformed, Reader};
use crate::counter::{ascending, merge_entries};
use crate::{Lattice, Stamp};

/// A stamp without its replica.
type Mark = (u64, u16);

const NONE: Mark = (0, 0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    replica: u16,
    /// Above `removed`, or [`NONE`].
    added: Mark,
    removed: Mark,
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    last_removal: Stamp,
    /// Ascending by replica.
    entries: Vec<Entry>,
}

impl Entry {
    fn normal(mut self) -> Self {
        if self.added <= self.removed {
            self.added = NONE;
        }
        self
    }

    fn stamp(&self) -> Stamp {
        let (time, step) = self.added.max(self.removed);
        Stamp {
            time,
            replica: self.replica,
            step,
        }
    }
}

impl Presence {
    /// The delta of an addition.
    pub fn added(stamp: Stamp) -> Self {
        debug_assert!((stamp.time, stamp.step) > NONE);
        Self {
            last_removal: Stamp::ZERO,
            entries: vec![Entry {
                replica: stamp.replica,
                added: (stamp.time, stamp.step),
                removed: NONE,
            }],
        }
    }

    /// The delta of a removal of every addition that is here.
    pub fn removal(&self, stamp: Stamp) -> Self {
        let live = self.entries.iter().filter(|entry| entry.added > NONE);
        let seen = live.map(|entry| Entry {
            removed: entry.added,
            added: NONE,
            ..*entry
        });
        Self {
            last_removal: stamp,
            entries: seen.collect(),
        }
    }

    /// The stamp, if this is one addition and nothing else.
    pub fn only_addition(&self) -> Option<Stamp> {
        match self.entries[..] {
            [entry] if self.last_removal == Stamp::ZERO && entry.removed == NONE => {
                Some(entry.stamp())
            }
            _ => None,
        }
    }

    pub fn is_there(&self) -> bool {
        self.entries.iter().any(|entry| entry.added > NONE)
    }

    /// Whether the member is present, not counting additions below this stamp.
    pub fn is_there_since(&self, cut: Stamp) -> bool {
        let live = |entry: &Entry| entry.added > NONE && entry.stamp() >= cut;
        self.entries.iter().any(live)
    }

    /// What remains without additions below this stamp; nothing, if there was no addition with it or since, and no
    /// removal since.
    #[must_use]
    pub fn since(&self, cut: Stamp) -> Option<Self> {
        let kept = self.entries.iter().filter_map(|entry| match entry {
            entry if entry.stamp() >= cut => Some(*entry),
            entry if entry.removed > NONE => Some(Entry {
                added: NONE,
                ..*entry
            }),
            _ => None,
        });
        let left = Self {
            last_removal: self.last_removal,
            entries: kept.collect(),
        };
        let newest = left.newest();
        (newest > cut || newest == cut && left.is_there()).then_some(left)
    }

    /// No stamp in it is newer.
    pub fn newest(&self) -> Stamp {
        let stamps = self.entries.iter().map(Entry::stamp);
        stamps.fold(self.last_removal, Stamp::max)
    }
}

impl Lattice for Presence {
    fn merge(&mut self, other: &Self) -> bool {
        let later = other.last_removal > self.last_removal;
        self.last_removal = self.last_removal.max(other.last_removal);
        let joined = merge_entries(
            &mut self.entries,
            &other.entries,
            |entry| entry.replica,
            |mine, theirs| {
                let joined = Entry {
                    replica: mine.replica,
                    added: mine.added.max(theirs.added),
                    removed: mine.removed.max(theirs.removed),
                };
                let old = std::mem::replace(mine, joined.normal());
                old != *mine
            },
        );
        joined || later
    }
}

const ADDED: u8 = 1;
const REMOVED: u8 = 2;

/// The stamp of an encoded presence, if that is one addition. Accepts any bytes.
#[inline]
pub fn addition(bytes: &[u8]) -> Option<Stamp> {
    let &[0, a, b, ADDED, ref mark @ ..] = bytes else {
        return None;
    };
    let (&time, step) = mark.split_first_chunk()?;
    let stamp = Stamp {
        time: u64::from_be_bytes(time),
        replica: u16::from_be_bytes([a, b]),
        step: u16::from_be_bytes(step.try_into().ok()?),
    };
    ((stamp.time, stamp.step) > NONE).then_some(stamp)
}

fn put_mark(out: &mut Vec<u8>, (time, step): Mark) {
    out.extend_from_slice(&time.to_be_bytes());
    out.extend_from_slice(&step.to_be_bytes());
}

fn read_mark(from: &mut Reader<'_>) -> Result<Mark, Malformed> {
    let mark = (from.u64()?, from.u16()?);
    (mark > NONE).then_some(mark).ok_or(Malformed)
}

impl Coded for Presence {
    fn encode(&self, out: &mut Vec<u8>) {
        let was_removed = self.last_removal > Stamp::ZERO;
        out.push(was_removed.into());
        if was_removed {
            out.extend_from_slice(&self.last_removal.to_bytes());
        }
        for entry in &self.entries {
            let has = |mark: Mark, bit| if mark > NONE { bit } else { 0 };
            out.extend_from_slice(&entry.replica.to_be_bytes());
            out.push(has(entry.added, ADDED) | has(entry.removed, REMOVED));
            for mark in [entry.removed, entry.added] {
                if mark > NONE {
                    put_mark(out, mark);
                }
            }
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let mut presence = Presence::default();
        match reader.byte()? {
            0 => {}
            1 => {
                presence.last_removal = Stamp::read(&mut reader)?;
                if presence.last_removal == Stamp::ZERO {
                    return Err(Malformed);
                }
            }
            _ => return Err(Malformed),
        }
        while !reader.0.is_empty() {
            let (replica, has) = (reader.u16()?, reader.byte()?);
            let last = presence.entries.last().map(|entry| entry.replica);
            ascending(last, replica)?;
            let mut entry = Entry {
                replica,
                added: NONE,
                removed: NONE,
            };
            if has & REMOVED > 0 {
                entry.removed = read_mark(&mut reader)?;
            }
            if has & ADDED > 0 {
                entry.added = read_mark(&mut reader)?;
            }
            if has == 0 || has > ADDED | REMOVED || entry.normal() != entry {
                return Err(Malformed);
            }
            presence.entries.push(entry);
        }
        Ok(presence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Map, Max, Product};

    fn stamp(time: u64, replica: u16) -> Stamp {
        Stamp::new(time, replica)
    }

    fn presence(draw: &mut Draw) -> Presence {
        let mut presence = Presence::default();
        for _ in 0..draw.below(4) {
            let stamp = stamp(1 + draw.below(4), draw.below(3) as u16);
            let change = match draw.below(3) {
                0 => presence.removal(stamp),
                _ => Presence::added(stamp),
            };
            presence.merge(&change);
        }
        presence
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Presence>(60, 1, presence).unwrap();
        laws::check_code(600, 1, presence).unwrap();
    }

    #[test]
    fn one_addition_is_told_from_all_else() {
        laws::check_reading(600, 1, presence, addition, Presence::only_addition).unwrap();
        let added = Presence::added(stamp(7, 2));
        assert_eq!(added.only_addition(), Some(stamp(7, 2)));
        let mut all = vec![added.removal(stamp(9, 1)), Presence::default()];
        for other in [all[0].clone(), Presence::added(stamp(8, 3))] {
            let mut more = added.clone();
            more.merge(&other);
            all.push(more);
        }
        // Added again, by the replica that removed it.
        let mut again = all[2].clone();
        again.merge(&Presence::added(stamp(10, 2)));
        all.push(again);
        for state in all {
            assert_eq!(state.only_addition(), None, "{state:?}");
            assert_eq!(addition(&state.encoded()), None, "{state:?}");
        }
    }

    #[test]
    fn additions_below_a_stamp_are_left_out() {
        let (old, new) = (stamp(3, 1), stamp(7, 2));
        let mut both = Presence::added(old);
        assert_eq!(both.since(stamp(3, 1)), Some(both.clone()));
        assert_eq!(both.since(stamp(4, 0)), None);
        both.merge(&Presence::added(new));
        assert_eq!(both.since(stamp(4, 0)), Some(Presence::added(new)));
        // A removal that has seen only the later one.
        both.merge(&Presence::added(new).removal(stamp(8, 2)));
        let left = both.since(stamp(4, 0)).expect("a removal");
        assert!(both.is_there() && !left.is_there());
        assert_eq!(left, Presence::added(new).removal(stamp(8, 2)));
        assert_eq!(left.since(stamp(8, 3)), None);
    }

    #[test]
    fn presence_is_made_of_maxima() {
        type Entries = Map<u16, Product<Max<Mark>, Max<Mark>>>;
        type Model = Product<Max<Stamp>, Entries>;
        laws::check_model::<Presence, Model>(120, 1, presence, |presence| {
            let entry = |entry: &Entry| {
                let seen = entry.added.max(entry.removed);
                (entry.replica, Product(Max(seen), Max(entry.removed)))
            };
            let entries = presence.entries.iter().map(entry).collect();
            Product(Max(presence.last_removal), entries)
        })
        .unwrap();
    }

    #[test]
    fn an_addition_beats_a_removal_that_has_not_seen_it() {
        let mut a = Presence::added(stamp(1, 1));
        let mut b = a.clone();
        let removal = a.removal(stamp(9, 1));
        assert!(a.merge(&removal) && !a.is_there());
        let again = Presence::added(stamp(2, 2));
        b.merge(&again);
        b.merge(&removal);
        assert!(b.is_there(), "whatever the stamps say");
        a.merge(&again);
        assert_eq!(a, b);
        let removal = a.removal(stamp(10, 1));
        assert!(a.merge(&removal) && !a.is_there());
        assert!(!a.merge(&again) && !a.merge(&Presence::added(stamp(1, 1))));
        assert_eq!(a.newest(), stamp(10, 1));
    }

    #[test]
    fn only_additions_since_a_cut_are_seen_from_there() {
        let mut a = Presence::added(stamp(3, 1));
        assert!(a.is_there_since(Stamp::ZERO) && a.is_there_since(stamp(3, 1)));
        assert!(!a.is_there_since(stamp(3, 1).expired()));
        let removal = Presence::added(stamp(9, 2)).removal(stamp(10, 2));
        a.merge(&removal);
        assert!(a.newest() > stamp(9, 2) && !a.is_there_since(stamp(4, 1)));
    }

    #[test]
    fn golden_bytes() {
        let mut presence = Presence::added(stamp(7, 2));
        let added = [0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0];
        assert_eq!(presence.encoded(), added);
        let removal = presence.removal(stamp(9, 1));
        presence.merge(&removal);
        let removed = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0];
        let entry = [0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0];
        assert_eq!(presence.encoded(), [removed, entry].concat());
        presence.merge(&Presence::added(stamp(8, 2)));
        let both = [
            &removed[..],
            &[0, 2, 3],
            &entry[3..],
            &[0, 0, 0, 0, 0, 0, 0, 8, 0, 0],
        ];
        assert_eq!(presence.encoded(), both.concat());
    }
}
