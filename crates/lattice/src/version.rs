//! The seen writes of each replica: version vectors [Anna §VI-C].
//!
//! ```text
//! entries  replica time step  …
//! 01       00 02   8    2
//! ```

use crate::code::{Coded, Malformed, Reader, put_varint};
use crate::counter::{ascending, merge_entries};
use crate::{Lattice, Stamp};

/// For each replica, the stamp up to which all its writes were seen. The size depends on the number of replicas,
/// never of clients. A [`crate::Map`] of maxima, in one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionVector {
    /// Ascending by replica; all stamps are above zero.
    entries: Vec<(u16, (u64, u16))>,
}

impl VersionVector {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the write of this stamp was seen.
    pub fn covers(&self, stamp: Stamp) -> bool {
        let at = self
            .entries
            .binary_search_by_key(&stamp.replica, |entry| entry.0);
        at.is_ok_and(|at| self.entries[at].1 >= (stamp.time, stamp.step))
    }

    /// Marks the write of this stamp, and all earlier ones of its replica, as seen.
    pub fn raise(&mut self, stamp: Stamp) {
        let mark = (stamp.time, stamp.step);
        if mark == (0, 0) {
            return;
        }
        match self
            .entries
            .binary_search_by_key(&stamp.replica, |entry| entry.0)
        {
            Ok(at) => self.entries[at].1 = self.entries[at].1.max(mark),
            Err(at) => self.entries.insert(at, (stamp.replica, mark)),
        }
    }

    /// Without the entries at or above a stamp: the writer of that stamp cannot have seen them.
    pub fn below(&self, stamp: Stamp) -> Self {
        let is_below = |entry: &&(u16, (u64, u16))| entry.1 < (stamp.time, stamp.step);
        Self {
            entries: self.entries.iter().filter(is_below).copied().collect(),
        }
    }

    /// Without the entries of replicas for which `is_kept` returns false.
    pub fn only(&self, is_kept: impl Fn(u16) -> bool) -> Self {
        let is_kept = |entry: &&(u16, (u64, u16))| is_kept(entry.0);
        Self {
            entries: self.entries.iter().filter(is_kept).copied().collect(),
        }
    }

    /// Whether any write of a replica was seen.
    pub fn knows(&self, replica: u16) -> bool {
        let at = self.entries.binary_search_by_key(&replica, |entry| entry.0);
        at.is_ok()
    }

    /// The newest stamp in it.
    pub fn newest(&self) -> Stamp {
        self.stamps().fold(Stamp::ZERO, Stamp::max)
    }

    /// The stamp of each replica.
    pub fn stamps(&self) -> impl Iterator<Item = Stamp> {
        self.entries.iter().map(|&(replica, (time, step))| Stamp {
            time,
            replica,
            step,
        })
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut entries: Vec<(u16, (u64, u16))> = Vec::new();
        for _ in 0..from.varint()? {
            let entry = (from.u16()?, (from.u64()?, from.u16()?));
            ascending(entries.last().map(|last| last.0), entry.0)?;
            if entry.1 == (0, 0) {
                return Err(Malformed);
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }
}

impl Lattice for VersionVector {
    fn merge(&mut self, other: &Self) -> bool {
        merge_entries(
            &mut self.entries,
            &other.entries,
            |entry| entry.0,
            |mine, theirs| {
                let later = theirs.1 > mine.1;
                mine.1 = mine.1.max(theirs.1);
                later
            },
        )
    }
}

impl Coded for VersionVector {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.entries.len() as u64);
        for (replica, (time, step)) in &self.entries {
            out.extend_from_slice(&replica.to_be_bytes());
            out.extend_from_slice(&time.to_be_bytes());
            out.extend_from_slice(&step.to_be_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let vector = Self::read(&mut reader)?;
        reader.end()?;
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Map, Max};

    fn vector(draw: &mut Draw) -> VersionVector {
        let mut vector = VersionVector::default();
        for _ in 0..draw.below(4) {
            vector.raise(Stamp {
                time: draw.below(4),
                replica: draw.below(3) as u16,
                step: draw.below(2) as u16,
            });
        }
        vector
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<VersionVector>(60, 1, vector).unwrap();
        laws::check_code(600, 1, vector).unwrap();
    }

    #[test]
    fn vectors_are_maps_of_maxima() {
        type Model = Map<u16, Max<(u64, u16)>>;
        laws::check_model::<VersionVector, Model>(120, 1, vector, |vector| {
            let entry = |stamp: Stamp| (stamp.replica, Max((stamp.time, stamp.step)));
            vector.stamps().map(entry).collect()
        })
        .unwrap();
    }

    #[test]
    fn a_write_is_seen_with_all_before_it() {
        let stamp = |time, step| Stamp {
            time,
            replica: 2,
            step,
        };
        let mut vector = VersionVector::default();
        vector.raise(stamp(7, 2));
        vector.raise(stamp(6, 0));
        assert!(vector.covers(stamp(7, 2)) && vector.covers(stamp(6, 9)));
        assert!(!vector.covers(stamp(7, 3)));
        assert!(!vector.covers(Stamp {
            replica: 1,
            ..stamp(1, 0)
        }));
        assert_eq!(vector.newest(), stamp(7, 2));
        assert!(vector.below(stamp(7, 2)).is_empty());
        assert_eq!(vector.below(stamp(8, 0)), vector);
        assert!(vector.knows(2) && !vector.knows(1));
        assert_eq!(vector.only(|replica| replica == 2), vector);
        assert!(vector.only(|replica| replica == 1).is_empty());
        let golden = [1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 2];
        assert_eq!(vector.encoded(), golden);
    }
}
