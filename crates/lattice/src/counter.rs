//! Counters for concurrent additions at many replicas: each replica has an entry of its own, and the value is their
//! sum.

use crate::Lattice;
use crate::code::{Coded, Malformed, Reader, put_varint};

/// Additions and subtractions by replica; of each, the greater is the later (a PN-counter). An entry of two zeros
/// differs from no entry: it says that the counter exists.
///
/// A [`crate::Map`] of pairs of maxima, here in one allocation, and without any while nothing was added.
///
/// ```text
/// entries  replica inc dec  …
/// 01       00 03   05  00       replica 3 has added 5
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// By replica, ascending.
    entries: Vec<(u16, u64, u64)>,
}

/// A replica has added more than an entry can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl Counter {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The exact sum, which may not fit 64 bits.
    pub fn sum(&self) -> i128 {
        let of = |&(_, inc, dec): &(u16, u64, u64)| i128::from(inc) - i128::from(dec);
        self.entries.iter().map(of).sum()
    }

    /// Adds to the entry of a replica; only that replica may do this.
    pub fn add(&mut self, replica: u16, by: i64) -> Result<(), Overflow> {
        let at = match self.entries.binary_search_by_key(&replica, |entry| entry.0) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (replica, 0, 0));
                at
            }
        };
        let (_, inc, dec) = &mut self.entries[at];
        let side = if by < 0 { dec } else { inc };
        *side = side.checked_add(by.unsigned_abs()).ok_or(Overflow)?;
        Ok(())
    }

    /// Replica, additions, subtractions.
    pub fn entries(&self) -> impl Iterator<Item = (u16, u64, u64)> {
        self.entries.iter().copied()
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut entries = Vec::new();
        for _ in 0..from.varint()? {
            let entry = (from.u16()?, from.varint()?, from.varint()?);
            ascending(entries.last().map(|last: &(u16, u64, u64)| last.0), entry.0)?;
            entries.push(entry);
        }
        Ok(Self { entries })
    }
}

/// Checks that replicas are ascending, each once.
pub(crate) fn ascending(last: Option<u16>, replica: u16) -> Result<(), Malformed> {
    match last {
        Some(last) if last >= replica => Err(Malformed),
        _ => Ok(()),
    }
}

/// Merges the entries of `from`: `join` merges two entries of one replica, and returns whether that changed the
/// first.
pub(crate) fn merge_entries<E: Copy>(
    into: &mut Vec<E>,
    from: &[E],
    replica: impl Fn(&E) -> u16,
    mut join: impl FnMut(&mut E, &E) -> bool,
) -> bool {
    let (mut at, mut changed) = (0, false);
    for theirs in from {
        while into
            .get(at)
            .is_some_and(|mine| replica(mine) < replica(theirs))
        {
            at += 1;
        }
        match into.get_mut(at) {
            Some(mine) if replica(mine) == replica(theirs) => changed |= join(mine, theirs),
            _ => {
                into.insert(at, *theirs);
                changed = true;
            }
        }
    }
    changed
}

impl Lattice for Counter {
    fn merge(&mut self, other: &Self) -> bool {
        merge_entries(
            &mut self.entries,
            &other.entries,
            |entry| entry.0,
            |mine, theirs| {
                let joined = (mine.0, mine.1.max(theirs.1), mine.2.max(theirs.2));
                let changed = joined != *mine;
                *mine = joined;
                changed
            },
        )
    }
}

impl Coded for Counter {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.entries.len() as u64);
        for (replica, inc, dec) in &self.entries {
            out.extend_from_slice(&replica.to_be_bytes());
            put_varint(out, *inc);
            put_varint(out, *dec);
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let counter = Self::read(&mut reader)?;
        reader.end()?;
        Ok(counter)
    }
}

/// Totals by replica, each written by its replica alone: the higher version is the later. Never NaN. A [`crate::Map`]
/// of [`crate::Lexicographic`] pairs, in one allocation as well.
///
/// ```text
/// entries  replica version  total
/// 01       00 03   02       3f f8 00 00 00 00 00 00
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FloatCounter {
    /// By replica, ascending.
    entries: Vec<(u16, u64, f64)>,
}

impl FloatCounter {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The total that a replica has added.
    pub fn total(&self, replica: u16) -> f64 {
        let at = self.entries.binary_search_by_key(&replica, |entry| entry.0);
        at.map_or(0.0, |at| self.entries[at].2)
    }

    /// The total of each replica, in the same order everywhere, so that sums are rounded alike.
    pub fn totals(&self) -> impl Iterator<Item = f64> {
        self.entries.iter().map(|entry| entry.2)
    }

    /// Replaces the total in the entry of a replica; only that replica may do this. The total must not be NaN.
    pub fn set(&mut self, replica: u16, total: f64) {
        debug_assert!(!total.is_nan());
        // Makes a negative zero positive.
        let total = total + 0.0;
        match self.entries.binary_search_by_key(&replica, |entry| entry.0) {
            Ok(at) => {
                let (_, version, old) = &mut self.entries[at];
                *version = version.saturating_add(1);
                *old = total;
            }
            Err(at) => self.entries.insert(at, (replica, 1, total)),
        }
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut entries = Vec::new();
        for _ in 0..from.varint()? {
            let entry = (from.u16()?, from.varint()?, read_float(from)?);
            ascending(entries.last().map(|last: &(u16, u64, f64)| last.0), entry.0)?;
            if entry.1 == 0 {
                return Err(Malformed);
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }
}

/// A number that is neither NaN nor negative zero.
pub(crate) fn read_float(from: &mut Reader<'_>) -> Result<f64, Malformed> {
    let number = f64::from_bits(from.u64()?);
    let is_one = !number.is_nan() && (number + 0.0).to_bits() == number.to_bits();
    is_one.then_some(number).ok_or(Malformed)
}

impl Lattice for FloatCounter {
    fn merge(&mut self, other: &Self) -> bool {
        merge_entries(
            &mut self.entries,
            &other.entries,
            |entry| entry.0,
            |mine, theirs| {
                // Two totals of one version do not occur; the order is total nevertheless.
                let order = mine.1.cmp(&theirs.1).then(mine.2.total_cmp(&theirs.2));
                if order.is_lt() {
                    *mine = *theirs;
                }
                order.is_lt()
            },
        )
    }
}

impl Coded for FloatCounter {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.entries.len() as u64);
        for (replica, version, total) in &self.entries {
            out.extend_from_slice(&replica.to_be_bytes());
            put_varint(out, *version);
            out.extend_from_slice(&total.to_bits().to_be_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let counter = Self::read(&mut reader)?;
        reader.end()?;
        Ok(counter)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Lexicographic, Map, Max, Product};

    pub(crate) fn counter(draw: &mut Draw) -> Counter {
        let mut counter = Counter::default();
        for _ in 0..draw.below(3) {
            let by = draw.below(7) as i64 - 3;
            counter.add(draw.below(3) as u16, by).unwrap();
        }
        counter
    }

    pub(crate) fn floats(draw: &mut Draw) -> FloatCounter {
        let mut counter = FloatCounter::default();
        for _ in 0..draw.below(4) {
            let total = [0.5, -1.0, 0.0, f64::INFINITY][draw.below(4) as usize];
            counter.set(draw.below(2) as u16, total);
        }
        counter
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Counter>(40, 1, counter).unwrap();
        laws::check::<FloatCounter>(40, 1, floats).unwrap();
        laws::check_code(400, 1, counter).unwrap();
        laws::check_code(400, 1, floats).unwrap();
    }

    /// Maps numbers to integers in the order of [`f64::total_cmp`].
    pub(crate) fn ordered(number: f64) -> i64 {
        let bits = number.to_bits() as i64;
        bits ^ (((bits >> 63) as u64) >> 1) as i64
    }

    #[test]
    fn counters_are_maps() {
        type Pair = Product<Max<u64>, Max<u64>>;
        laws::check_model::<Counter, Map<u16, Pair>>(100, 1, counter, |counter| {
            let entry = |(replica, inc, dec)| (replica, Product(Max(inc), Max(dec)));
            counter.entries().map(entry).collect()
        })
        .unwrap();
        type Total = Lexicographic<Max<u64>, Max<i64>>;
        laws::check_model::<FloatCounter, Map<u16, Total>>(100, 1, floats, |floats| {
            let entry = |&(replica, version, total): &(u16, u64, f64)| {
                let (rank, value) = (Max(version), Max(ordered(total)));
                (replica, Lexicographic { rank, value })
            };
            floats.entries.iter().map(entry).collect()
        })
        .unwrap();
    }

    #[test]
    fn what_replicas_add_adds_up() {
        let (mut a, mut b) = (Counter::default(), Counter::default());
        a.add(1, 5).unwrap();
        a.add(1, -2).unwrap();
        b.add(2, i64::MAX).unwrap();
        b.add(2, i64::MAX).unwrap();
        assert!(a.merge(&b) && !a.merge(&b));
        assert_eq!(a.sum(), 3 + 2 * i128::from(i64::MAX));
        assert_eq!(b.add(2, i64::MAX), Err(Overflow));
    }

    #[test]
    fn later_totals_replace_earlier_ones() {
        let mut a = FloatCounter::default();
        a.set(3, 0.5);
        let mut b = a.clone();
        b.set(3, -1.5);
        b.set(1, 2.0);
        assert!(a.merge(&b));
        assert_eq!(a.totals().collect::<Vec<_>>(), [2.0, -1.5]);
        assert_eq!((a.total(3), a.total(9)), (-1.5, 0.0));
    }

    #[test]
    fn golden_bytes() {
        let mut counter = Counter::default();
        counter.add(3, 5).unwrap();
        counter.add(0x102, -200).unwrap();
        assert_eq!(counter.encoded(), [2, 0, 3, 5, 0, 1, 2, 0, 0xc8, 1]);
        let mut floats = FloatCounter::default();
        floats.set(3, 1.0);
        floats.set(3, 1.5);
        assert_eq!(floats.encoded(), [1, 0, 3, 2, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]);
    }
}
