//! Elements found by name: what sets (names alone) and hashes (names with
//! values) are kept in.
//!
//! Small tables are a [`Pack`] of their elements: `WIDTH` entries each, the
//! name and, with a width of 2, its value. Others are a [`Dict`].

use crate::algebra::{Corrupt, MAX_PACKED, Packing};
use crate::dict::Dict;
use crate::pack::{self, Pack};
use rufous_base::rng::Rng;
use std::hash::{BuildHasher, Hasher};

/// See the module's description.
#[derive(Clone, Debug)]
pub enum Table<const WIDTH: usize> {
    Packed(Vec<u8>),
    Large(Box<Dict>),
}

/// A [`Table`] to be read.
#[derive(Clone, Copy, Debug)]
pub enum View<'a, const WIDTH: usize> {
    Packed(Pack<'a>),
    Large(&'a Dict),
}

/// What became of an element that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    New,
    Replaced,
    /// It was there already, with the same value.
    Same,
}

/// How large packed tables may become, and the seed of the others' hashes.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub packing: Packing,
    pub seed: u64,
}

impl<'a, const WIDTH: usize> View<'a, WIDTH> {
    /// Where the element of this name begins among packed ones, or how many
    /// there are.
    #[inline]
    fn place(pack: Pack<'a>, name: &[u8]) -> Result<usize, usize> {
        let mut count = 0;
        for (offset, entry) in pack.entries().step_by(WIDTH) {
            // Names mostly begin alike and differ at their end.
            if entry.len() == name.len() && entry.last() == name.last() && entry == name {
                return Ok(offset);
            }
            count += 1;
        }
        Err(count)
    }

    #[inline]
    pub fn contains(self, name: &[u8]) -> bool {
        match self {
            View::Packed(pack) => Self::place(pack, name).is_ok(),
            View::Large(dict) => dict.contains(name),
        }
    }

    /// The value at a name; empty where elements have none.
    #[inline]
    pub fn get(self, name: &[u8]) -> Option<&'a [u8]> {
        match self {
            View::Packed(pack) => {
                let offset = Self::place(pack, name).ok()?;
                match WIDTH {
                    1 => Some(&[]),
                    _ => pack.entry_at(pack.next_offset(offset)?),
                }
            }
            View::Large(dict) => dict.get(name),
        }
    }

    /// Elements; packed ones are counted one by one.
    pub fn len(self) -> usize {
        match self {
            View::Packed(pack) => pack.count() / WIDTH,
            View::Large(dict) => dict.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        match self {
            View::Packed(pack) => pack.is_empty(),
            View::Large(dict) => dict.is_empty(),
        }
    }

    /// Names and values, in no order that means anything.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let (packed, large) = match self {
            View::Packed(pack) => (Some(pack), None),
            View::Large(dict) => (None, Some(dict)),
        };
        let mut entries = packed.unwrap_or_default().iter();
        let packed = std::iter::from_fn(move || {
            let name = entries.next()?;
            let value = if WIDTH == 1 { &[] } else { entries.next()? };
            Some((name, value))
        });
        packed.chain(large.into_iter().flat_map(Dict::iter))
    }

    /// Shows every element, as [`View::iter`] does, in less time.
    #[inline]
    pub fn each(self, mut each: impl FnMut(&'a [u8], &'a [u8])) {
        match self {
            View::Packed(pack) => {
                let mut entries = pack.iter();
                while let Some(name) = entries.next() {
                    let value = if WIDTH == 1 {
                        Some(&[][..])
                    } else {
                        entries.next()
                    };
                    each(name, value.unwrap_or_default());
                }
            }
            View::Large(dict) => dict.iter().for_each(|(name, value)| each(name, value)),
        }
    }

    /// Any element, each with the same chance.
    pub fn random(self, rng: &mut Rng) -> Option<(&'a [u8], &'a [u8])> {
        match self {
            View::Packed(_) => {
                let len = self.len() as u64;
                let nth = (len > 0).then(|| rng.below(len))?;
                self.iter().nth(nth as usize)
            }
            View::Large(dict) => dict.random(rng),
        }
    }

    /// Shows about `count` elements from the cursor on and answers where to
    /// go on, 0 at the end: see [`Dict::scan`]. Packed elements come all at once.
    pub fn scan(self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> u64 {
        match self {
            View::Packed(_) => {
                self.each(visit);
                0
            }
            View::Large(dict) => dict.scan(cursor, count, visit),
        }
    }

    /// A table of its own; what is large is shared.
    pub fn to_table(self) -> Table<WIDTH> {
        match self {
            View::Packed(pack) => Table::Packed(pack.0.to_vec()),
            View::Large(dict) => Table::Large(Box::new(dict.clone())),
        }
    }

    /// The elements in the order of their names, packed.
    pub fn canonical(self) -> Vec<u8> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable();
        let mut out = Vec::new();
        for (name, value) in all {
            push::<WIDTH>(&mut out, name, value);
        }
        out
    }

    /// See [`crate::algebra::DataType::chunk`]. A position is an offset among
    /// packed elements, else a segment and the elements to leave out of it.
    pub fn chunk(self, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let end = out.len().saturating_add(budget.max(1));
        match self {
            View::Packed(pack) => {
                let start = at as usize;
                let mut next = start;
                while next < pack.0.len() && out.len() + (next - start) < end {
                    next = pack.skip(next, WIDTH).unwrap_or(pack.0.len());
                }
                out.extend_from_slice(pack.0.get(start..next)?);
                (next < pack.0.len()).then_some(next as u64)
            }
            View::Large(dict) => {
                let (first, mut skip) = ((at >> 32) as usize, at & 0xFFFF_FFFF);
                for index in first..dict.segments() {
                    for (name, value) in dict.segment(index).skip(skip as usize) {
                        if out.len() >= end {
                            return Some((index as u64) << 32 | skip);
                        }
                        push::<WIDTH>(out, name, value);
                        skip += 1;
                    }
                    skip = 0;
                }
                None
            }
        }
    }
}

/// Takes one entry of a pack off the front.
pub fn take<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], Corrupt> {
    let pack = Pack(from);
    let entry = pack.entry_at(0).ok_or(Corrupt)?;
    let end = pack.next_offset(0).ok_or(Corrupt)?;
    *from = from.get(end..).ok_or(Corrupt)?;
    Ok(entry)
}

/// Appends an element.
#[inline]
fn push<const WIDTH: usize>(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    pack::push(out, name);
    if WIDTH == 2 {
        pack::push(out, value);
    }
}

impl<const WIDTH: usize> Default for Table<WIDTH> {
    fn default() -> Self {
        Table::Packed(Vec::new())
    }
}

impl<const WIDTH: usize> Table<WIDTH> {
    #[inline]
    pub fn view(&self) -> View<'_, WIDTH> {
        match self {
            Table::Packed(bytes) => View::Packed(Pack(bytes)),
            Table::Large(dict) => View::Large(dict),
        }
    }

    pub fn packed(&self) -> Option<&[u8]> {
        match self {
            Table::Packed(bytes) => Some(bytes),
            Table::Large(_) => None,
        }
    }

    pub fn into_buffer(self) -> Option<Vec<u8>> {
        match self {
            Table::Packed(bytes) => Some(bytes),
            Table::Large(_) => None,
        }
    }

    /// What a large table has on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Table::Packed(_) => 0,
            Table::Large(dict) => size_of::<Dict>() + dict.bytes(),
        }
    }

    /// Of that, about what no copy shares.
    pub fn own_bytes(&self) -> usize {
        match self {
            Table::Packed(_) => 0,
            Table::Large(dict) => size_of::<Dict>() + dict.own_bytes(),
        }
    }

    /// Puts an element, in place of one of the same name.
    #[inline]
    pub fn put(&mut self, name: &[u8], value: &[u8], shape: &Shape) -> Put {
        let Table::Packed(bytes) = self else {
            return self.put_large(name, value);
        };
        let place = View::<WIDTH>::place(Pack(bytes), name);
        let (mut fits, mut size) = (value.len() <= shape.packing.bytes, bytes.len());
        match place {
            Ok(_) if WIDTH == 1 => return Put::Same,
            Ok(offset) => {
                let at = Pack(bytes).next_offset(offset).unwrap_or(bytes.len());
                let old = Pack(bytes).entry_at(at).unwrap_or_default();
                if old == value {
                    return Put::Same;
                }
                size = size - pack::entry_size(old.len()) + pack::entry_size(value.len());
                if fits && size <= MAX_PACKED {
                    pack::replace(bytes, at, value);
                    return Put::Replaced;
                }
            }
            Err(count) => {
                fits &= name.len() <= shape.packing.bytes && count < shape.packing.entries;
                size += pack::entry_size(name.len());
                if WIDTH == 2 {
                    size += pack::entry_size(value.len());
                }
                if fits && size <= MAX_PACKED {
                    pack::grow(bytes, size - bytes.len());
                    push::<WIDTH>(bytes, name, value);
                    return Put::New;
                }
            }
        }
        self.enlarge(shape.seed);
        self.put_large(name, value)
    }

    fn put_large(&mut self, name: &[u8], value: &[u8]) -> Put {
        let Table::Large(dict) = self else {
            return Put::Same;
        };
        if WIDTH == 2 && dict.get(name) == Some(value) {
            return Put::Same;
        }
        match (dict.insert(name, value), WIDTH) {
            (true, _) => Put::New,
            (false, 1) => Put::Same,
            (false, _) => Put::Replaced,
        }
    }

    /// Answers whether there was an element of this name.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        match self {
            Table::Packed(bytes) => match View::<WIDTH>::place(Pack(bytes), name) {
                Ok(offset) => {
                    pack::remove(bytes, offset, WIDTH);
                    true
                }
                Err(_) => false,
            },
            Table::Large(dict) => dict.remove(name),
        }
    }

    /// See [`crate::algebra::DataType::extend`].
    pub fn extend(&mut self, chunk: &[u8], shape: &Shape) -> Result<(), Corrupt> {
        let pack = Pack::checked(chunk).ok_or(Corrupt)?;
        if !pack.count().is_multiple_of(WIDTH) {
            return Err(Corrupt);
        }
        for (name, value) in View::<WIDTH>::Packed(pack).iter() {
            self.put(name, value, shape);
        }
        Ok(())
    }

    /// Every table has a seed of its own: elements that come in the order of
    /// another table's hashes are to be spread evenly here.
    #[cold]
    fn enlarge(&mut self, seed: u64) {
        let Table::Packed(bytes) = self else {
            return;
        };
        let mut hasher = foldhash::quality::FixedState::with_seed(seed).build_hasher();
        hasher.write(bytes);
        let mut dict = Box::new(Dict::new(hasher.finish()));
        for (name, value) in View::<WIDTH>::Packed(Pack(bytes)).iter() {
            dict.insert(name, value);
        }
        *self = Table::Large(dict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, proptest};
    use std::collections::BTreeMap;

    const SMALL: Shape = Shape {
        packing: Packing {
            entries: 6,
            bytes: 20,
        },
        seed: 1,
    };

    fn follows<const WIDTH: usize>(steps: &[(bool, u8, Vec<u8>)]) {
        let mut table = Table::<WIDTH>::default();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (put, name, value) in steps {
            let name = vec![*name; usize::from(*name) % 5];
            let value = if WIDTH == 1 {
                Vec::new()
            } else {
                value.clone()
            };
            if *put {
                let old = model.insert(name.clone(), value.clone());
                let expected = match old {
                    None => Put::New,
                    Some(old) if old == value => Put::Same,
                    Some(_) => Put::Replaced,
                };
                assert_eq!(table.put(&name, &value, &SMALL), expected);
            } else {
                assert_eq!(table.remove(&name), model.remove(&name).is_some());
            }
            let view = table.view();
            assert_eq!(view.len(), model.len());
            assert_eq!(view.is_empty(), model.is_empty());
            assert_eq!(view.get(&name), model.get(&name).map(Vec::as_slice));
            assert_eq!(view.contains(&name), model.contains_key(&name));
            let mut all: Vec<_> = view.iter().collect();
            all.sort_unstable();
            assert!(
                all.into_iter()
                    .eq(model.iter().map(|(n, v)| (&n[..], &v[..])))
            );
        }
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_does(steps in prop::collection::vec((prop::bool::weighted(0.7), 0u8..30, prop::collection::vec(any::<u8>(), 0..24)), 0..60)) {
            follows::<1>(&steps);
            follows::<2>(&steps);
        }
    }

    #[test]
    fn packed_up_to_its_limits_and_large_for_good_after_them() {
        let mut table = Table::<2>::default();
        for name in [b"a", b"b", b"c", b"d", b"e", b"f"] {
            assert_eq!(table.put(name, &[7; 20], &SMALL), Put::New);
            assert!(table.packed().is_some());
        }
        let mut longer = table.clone();
        assert_eq!(longer.put(b"a", &[7; 21], &SMALL), Put::Replaced);
        assert!(longer.packed().is_none());
        assert_eq!(longer.view().get(b"a"), Some(&[7; 21][..]));
        table.put(b"g", b"", &SMALL);
        assert!(table.packed().is_none() && table.heap_bytes() > 0);
        for name in [b"a", b"b", b"c", b"d", b"e", b"f", b"g"] {
            assert!(table.remove(name));
        }
        assert!(table.packed().is_none() && table.view().is_empty());
        let wide = Shape {
            packing: Packing {
                entries: 1_000_000,
                bytes: 1_000_000,
            },
            seed: 1,
        };
        let mut table = Table::<1>::default();
        (0..4000u32).for_each(|n| assert_eq!(table.put(&n.to_le_bytes(), b"", &wide), Put::New));
        assert!(table.packed().is_none());
    }

    #[test]
    fn elements_in_the_order_of_another_table_spread_evenly() {
        let segments = |table: &Table<1>| match table.view() {
            View::Packed(_) => 0,
            View::Large(dict) => dict.segments(),
        };
        let (mut one, mut other) = (Table::<1>::default(), Table::<1>::default());
        (0..40_000u32).for_each(|n| assert_eq!(one.put(&n.to_le_bytes(), b"", &SMALL), Put::New));
        for (name, _) in one.view().iter().take(10_000) {
            other.put(name, b"", &SMALL);
        }
        let (whole, quarter) = (segments(&one), segments(&other));
        assert!(quarter > whole / 8, "{quarter} of {whole} segments");
    }

    #[test]
    fn any_element_has_the_same_chance() {
        let mut rng = Rng::new(3);
        assert!(Table::<1>::default().view().random(&mut rng).is_none());
        let mut table = Table::<2>::default();
        (0..5u8).for_each(|n| assert_eq!(table.put(&[n], &[n, n], &SMALL), Put::New));
        let mut times = [0; 5];
        for _ in 0..5000 {
            let (name, value) = table.view().random(&mut rng).expect("five");
            assert_eq!(value, [name[0], name[0]]);
            times[usize::from(name[0])] += 1;
        }
        assert!(times.iter().all(|n| (800..1200).contains(n)), "{times:?}");
    }
}
