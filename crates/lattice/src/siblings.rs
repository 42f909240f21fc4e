//! Values of which none has seen the other: a register with causal order.
//!
//! The writes that are alive, each by its dot, and a vector of all writes that
//! were seen: a dotted version vector set. A merge keeps a write that the other
//! side has alive too, or has not seen; one that it has seen and has no longer
//! was replaced there. The paper's pair of vector clock and value is not
//! associative; this is.
//!
//! Whole states are merged, never parts of one: what a state has seen is then
//! all that the vector says. It is a [`crate::MultiValue`] whose dots are stamps
//! and whose context needs no dots apart, since nothing comes before its turn.
//!
//! ```text
//! live  stamp  length  value  …  seen
//! 01    12     01      61        a version vector        the latest stamp first
//! ```

use crate::code::{Coded, Malformed, Reader, put_varint};
use crate::{Lattice, Stamp, VersionVector};

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Siblings {
    /// Stamps descending; all of them were seen.
    live: Vec<(Stamp, Vec<u8>)>,
    seen: VersionVector,
}

/// As many values a write leaves beside each other: it replaces the oldest ones
/// whether it has seen them or not. Merges forget none, for then the order of
/// merges would matter.
pub const MAX_SIBLINGS: usize = 32;

impl Siblings {
    /// Writes a value, or a deletion, in the place of all that `context` has
    /// seen; of all that is here where there is no context. The stamp is newer
    /// than all that its replica has given.
    pub fn write(&mut self, stamp: Stamp, value: Option<Vec<u8>>, context: Option<&VersionVector>) {
        match context.map(|context| context.below(stamp)) {
            None => self.live.clear(),
            Some(context) => {
                self.live.retain(|(dot, _)| !context.covers(*dot));
                // What was seen elsewhere and has not come yet is replaced all the same.
                self.seen.merge(&context);
            }
        }
        if let Some(value) = value {
            self.live.truncate(MAX_SIBLINGS - 1);
            let at = self.live.partition_point(|(dot, _)| *dot > stamp);
            self.live.insert(at, (stamp, value));
        }
        self.seen.raise(stamp);
    }

    /// Stamps and values, the latest first.
    pub fn live(&self) -> impl ExactSizeIterator<Item = (Stamp, &[u8])> {
        self.live.iter().map(|(stamp, value)| (*stamp, &value[..]))
    }

    /// What a reader has seen who has read all that is alive.
    pub fn seen(&self) -> &VersionVector {
        &self.seen
    }

    fn value(&self, stamp: Stamp) -> Option<&Vec<u8>> {
        let at = self.live.binary_search_by(|(dot, _)| stamp.cmp(dot));
        at.ok().map(|at| &self.live[at].1)
    }

    /// Of its own writes those that the other side has alive, or has not seen.
    fn kept<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (Stamp, &'a Vec<u8>)> {
        self.live.iter().filter_map(|(stamp, value)| {
            let theirs = other.value(*stamp);
            let is_kept = theirs.is_some() || !other.seen.covers(*stamp);
            // Two values of one stamp do not happen; the order is total all the same.
            is_kept.then_some((*stamp, theirs.map_or(value, |theirs| theirs.max(value))))
        })
    }
}

impl Lattice for Siblings {
    fn merge(&mut self, other: &Self) -> bool {
        let kept = self.kept(other);
        let new = other
            .kept(self)
            .filter(|(stamp, _)| self.value(*stamp).is_none());
        let mut live: Vec<_> = kept.chain(new).map(|(s, v)| (s, v.clone())).collect();
        live.sort_unstable_by_key(|dot| std::cmp::Reverse(dot.0));
        let changed = live != self.live;
        self.live = live;
        self.seen.merge(&other.seen) || changed
    }
}

impl Coded for Siblings {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.live.len() as u64);
        for (stamp, value) in &self.live {
            out.extend_from_slice(&stamp.to_bytes());
            put_varint(out, value.len() as u64);
            out.extend_from_slice(value);
        }
        self.seen.encode(out);
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let mut live: Vec<(Stamp, Vec<u8>)> = Vec::new();
        for _ in 0..reader.varint()? {
            let stamp = Stamp::read(&mut reader)?;
            let len = reader.varint()?;
            if live.last().is_some_and(|last| last.0 <= stamp) {
                return Err(Malformed);
            }
            live.push((stamp, reader.bytes(len)?.to_vec()));
        }
        let seen = VersionVector::read(&mut reader)?;
        reader.end()?;
        let is_sound = live.iter().all(|(stamp, _)| seen.covers(*stamp));
        is_sound.then_some(Siblings { live, seen }).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Dot, MultiValue};

    fn stamp(time: u64, replica: u16) -> Stamp {
        Stamp {
            time,
            replica,
            step: 0,
        }
    }

    fn siblings(draw: &mut Draw) -> Siblings {
        let mut siblings = Siblings::default();
        for time in 1..=draw.below(4) {
            let stamp = stamp(time, draw.below(3) as u16);
            let value = (draw.below(4) > 0).then(|| vec![b'a' + time as u8]);
            let nothing = VersionVector::default();
            let context = (draw.below(2) == 0).then_some(&nothing);
            siblings.write(stamp, value, context);
        }
        siblings
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Siblings>(60, 1, siblings).unwrap();
        laws::check_code(600, 1, siblings).unwrap();
    }

    #[test]
    fn siblings_are_a_register_in_causal_order() {
        let dot = |stamp: Stamp| Dot {
            replica: stamp.replica,
            number: stamp.time,
        };
        laws::check_model::<Siblings, MultiValue<Vec<u8>>>(150, 1, siblings, |siblings| {
            let live = siblings.live();
            let store = live.map(|(stamp, value)| (dot(stamp), value.to_vec()));
            let seen = siblings.seen().stamps();
            let seen =
                seen.flat_map(|last| (1..=last.time).map(move |time| Stamp { time, ..last }));
            MultiValue::new(store.collect(), seen.map(dot))
        })
        .unwrap();
    }

    fn values(siblings: &Siblings) -> Vec<&[u8]> {
        siblings.live().map(|(_, value)| value).collect()
    }

    #[test]
    fn what_has_not_seen_each_other_stays_beside_each_other() {
        let (mut a, mut b) = (Siblings::default(), Siblings::default());
        a.write(stamp(1, 1), Some(b"a".to_vec()), None);
        b.write(stamp(2, 2), Some(b"b".to_vec()), None);
        assert!(a.merge(&b) && b.merge(&a));
        assert_eq!(values(&a), [b"b", b"a"]);
        assert_eq!(a, b);
        let context = a.seen().clone();
        a.write(stamp(3, 1), Some(b"both".to_vec()), Some(&context));
        b.write(
            stamp(3, 2),
            Some(b"meanwhile".to_vec()),
            Some(&VersionVector::default()),
        );
        assert!(a.merge(&b));
        assert_eq!(values(&a), [&b"meanwhile"[..], b"both"]);
    }

    #[test]
    fn what_a_write_has_seen_elsewhere_does_not_come_back() {
        let mut far = Siblings::default();
        far.write(stamp(1, 1), Some(b"old".to_vec()), None);
        let mut near = Siblings::default();
        near.write(stamp(2, 2), Some(b"new".to_vec()), Some(far.seen()));
        assert!(!near.merge(&far));
        assert_eq!(values(&near), [b"new"]);
        near.write(stamp(3, 2), None, None);
        assert!(values(&near).is_empty() && near.seen().newest() == stamp(3, 2));
        // Nobody has seen what is later than he himself.
        let mut liar = VersionVector::default();
        liar.raise(stamp(9, 1));
        near.write(stamp(4, 2), None, Some(&liar));
        far.write(stamp(8, 1), Some(b"late".to_vec()), None);
        near.merge(&far);
        assert_eq!(values(&near), [b"late"]);
    }

    #[test]
    fn a_write_leaves_a_bounded_number() {
        let mut all = Siblings::default();
        for time in 1..100 {
            all.write(
                stamp(time, 1),
                Some(vec![0]),
                Some(&VersionVector::default()),
            );
        }
        assert_eq!(all.live().len(), MAX_SIBLINGS);
        assert_eq!(all.live().last().map(|(dot, _)| dot.time), Some(68));
    }

    #[test]
    fn golden_bytes() {
        let mut siblings = Siblings::default();
        siblings.write(stamp(7, 2), Some(b"a".to_vec()), None);
        let dot = [0, 0, 0, 0, 0, 0, 0, 7, 0, 2, 0, 0];
        let seen = [1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0];
        assert_eq!(
            siblings.encoded(),
            [&[1][..], &dot, &[1, b'a'], &seen].concat()
        );
    }
}
