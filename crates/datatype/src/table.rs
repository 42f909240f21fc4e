//! Elements found by name: what sets (names alone) and hashes (names with
//! values) are kept in.
//!
//! Small tables are a [`Pack`] of their elements: `WIDTH` entries each, the
//! name and, with a width of 2, its value. Others are a [`Dict`].

#[cfg(test)]
mod tests;

use crate::algebra::{Corrupt, MAX_PACKED, Packing};
use crate::dict::Dict;
use crate::distinct::Distinct;
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
        pack.search::<WIDTH>(name).map(|(_, offset)| offset)
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

    /// A table of its own; what is large is shared, unless there is something
    /// beside its values.
    pub fn to_table(self) -> Table<WIDTH> {
        match self {
            View::Packed(pack) => Table::Packed(pack.0.to_vec()),
            View::Large(dict) if dict.beside() > 0 => Table::Large(Box::new(dict.widened(0))),
            View::Large(dict) => Table::Large(Box::new(dict.clone())),
        }
    }

    /// What the view shows, to be kept; what is large is shared, with what lies beside its values.
    pub fn to_shared(self) -> Table<WIDTH> {
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

    /// A large table.
    pub(crate) fn large(&self) -> Option<&Dict> {
        match self {
            Table::Packed(_) => None,
            Table::Large(dict) => Some(dict),
        }
    }

    pub(crate) fn large_mut(&mut self) -> Option<&mut Dict> {
        match self {
            Table::Packed(_) => None,
            Table::Large(dict) => Some(dict),
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
        let place = match self {
            Table::Packed(bytes) => View::<WIDTH>::place(Pack(bytes), name),
            Table::Large(_) => return self.put_large(name, value),
        };
        self.put_at(place, name, value, shape)
    }

    /// Likewise, where it is known where the element of this name begins among
    /// packed ones, or how many there are.
    #[inline]
    pub(crate) fn put_at(
        &mut self,
        place: Result<usize, usize>,
        name: &[u8],
        value: &[u8],
        shape: &Shape,
    ) -> Put {
        let Table::Packed(bytes) = self else {
            return self.put_large(name, value);
        };
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

    /// Whether a chunk, which may come from a file, is as it stands a packed
    /// value that is not empty.
    pub fn is_packed(chunk: &[u8], shape: &Shape) -> bool {
        let packing = shape.packing;
        if chunk.is_empty() || chunk.len() > MAX_PACKED {
            return false;
        }
        let pack = Pack(chunk);
        let mut seen = Distinct::new(pack, |name| name, packing.entries, shape.seed);
        let (mut at, mut left) = (0, packing.entries);
        while at < chunk.len() {
            let Some((name, end)) = pack.checked_entry(at) else {
                return false;
            };
            if left == 0 || name.len() > packing.bytes || !seen.is_new(at, name) {
                return false;
            }
            (at, left) = (end, left - 1);
            if WIDTH == 2 {
                let Some((value, end)) = pack.checked_entry(at) else {
                    return false;
                };
                if value.len() > packing.bytes {
                    return false;
                }
                at = end;
            }
        }
        true
    }

    /// See [`crate::algebra::DataType::extend`].
    pub fn extend(&mut self, chunk: &[u8], shape: &Shape) -> Result<(), Corrupt> {
        if let Table::Packed(bytes) = self
            && bytes.is_empty()
            && Self::is_packed(chunk, shape)
        {
            bytes.extend_from_slice(chunk);
            return Ok(());
        }
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
