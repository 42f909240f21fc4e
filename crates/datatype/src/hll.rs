//! HyperLogLog: how many different elements a set has, estimated from 16384 registers of 6 bits in
//! a plain string value, byte for byte as Redis stores it.
//!
//! ```text
//! 0      4          5       8              16
//! | HYLL | encoding | zero  | cardinality  | registers ...
//! ```
//! The encoding is 0 (dense) or 1 (sparse). The cardinality, little endian, is a cached answer;
//! its highest bit says that the registers have changed since.
//!
//! A register keeps the largest rank met, so that registers form a lattice: [`Registers::merge`]
//! is commutative, associative and idempotent.
//!
//! Values come from users, who may have written anything into the string: readers
//! check the header first ([`Sketch::parse`]) and the sparse runs before they use them.

mod dense;
mod estimate;
mod hash;
mod registers;
mod selftest;
mod sparse;
#[cfg(test)]
mod tests;

pub use registers::Registers;
pub use selftest::self_test;

use std::fmt;
use std::ops::Range;

/// Registers of a sketch.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of the hash that name the register; the others give the rank.
const INDEX_BITS: u32 = 14;
/// The highest rank an element can have.
const MAX_RANK: u8 = (64 - INDEX_BITS) as u8 + 1;

/// Bytes before the registers.
pub const HEADER_LEN: usize = 16;
/// Bytes of a dense value.
pub const DENSE_LEN: usize = HEADER_LEN + REGISTERS * 6 / 8;
/// Redis's default for `hll-sparse-max-bytes`: no sparse value grows beyond this many bytes.
pub const DEFAULT_SPARSE_MAX_BYTES: usize = 3000;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const CARDINALITY: Range<usize> = 8..16;
/// The byte with the bit that says whether the cached cardinality is out of date.
pub const STALE_AT: usize = 15;
const STALE: u8 = 0x80;

/// Why a string is no sketch. `Display` gives the whole text of Redis's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HllError {
    /// The header is not that of a sketch.
    NotASketch,
    /// The header is, but the registers are not.
    Corrupted,
}

impl fmt::Display for HllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotASketch => "WRONGTYPE Key is not a valid HyperLogLog string value.",
            Self::Corrupted => "INVALIDOBJ Corrupted HLL object detected",
        })
    }
}

impl std::error::Error for HllError {}

/// How the registers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// 6 bits for each.
    Dense,
    /// Runs of equal registers.
    Sparse,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
        }
    }
}

/// What an element does: it raises the register at `index` to `rank`, if that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Below [`REGISTERS`].
    pub index: usize,
    /// 1 to 51.
    pub rank: u8,
}

impl Observation {
    pub fn of(element: &[u8]) -> Self {
        let hash = hash::hash(element);
        let rest = hash >> INDEX_BITS;
        // The bit beyond the rest ends the count of zeroes where all of the rest is zero.
        let zeroes = (rest | 1 << (64 - INDEX_BITS)).trailing_zeros();
        Self {
            index: hash as usize & (REGISTERS - 1),
            rank: zeroes as u8 + 1,
        }
    }

    /// Where in a dense value this register lies.
    pub fn dense_range(self) -> Range<usize> {
        let bits = self.index * 6;
        HEADER_LEN + bits / 8..HEADER_LEN + (bits + 5) / 8 + 1
    }
}

/// A value whose header was checked.
#[derive(Clone, Copy, Debug)]
pub struct Sketch<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
}

impl<'a> Sketch<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HllError> {
        if bytes.len() < HEADER_LEN || !bytes.starts_with(MAGIC) {
            return Err(HllError::NotASketch);
        }
        let encoding = match bytes[ENCODING_AT] {
            0 if bytes.len() == DENSE_LEN => Encoding::Dense,
            1 => Encoding::Sparse,
            _ => return Err(HllError::NotASketch),
        };
        Ok(Self { bytes, encoding })
    }

    pub fn encoding(self) -> Encoding {
        self.encoding
    }

    /// The cardinality kept in the header, unless registers have changed since.
    pub fn cached(self) -> Option<u64> {
        let bytes = self.bytes[CARDINALITY].try_into().ok()?;
        (self.bytes[STALE_AT] & STALE == 0).then_some(u64::from_le_bytes(bytes))
    }

    /// The estimate from the registers.
    pub fn count(self) -> Result<u64, HllError> {
        let mut histogram = [0; 64];
        match self.encoding {
            Encoding::Dense => {
                for rank in dense::ranks(self.body()) {
                    histogram[usize::from(rank)] += 1;
                }
            }
            Encoding::Sparse => {
                for run in sparse::checked_runs(self.body())? {
                    histogram[usize::from(run.rank)] += run.len as u32;
                }
            }
        }
        Ok(estimate::estimate(&histogram))
    }

    /// Raises `registers` to those of this sketch; returns whether any was lower.
    pub fn merge_into(self, registers: &mut Registers) -> Result<bool, HllError> {
        let mut changed = false;
        match self.encoding {
            Encoding::Dense => {
                for (index, rank) in dense::ranks(self.body()).enumerate() {
                    changed |= registers.raise(Observation { index, rank });
                }
            }
            Encoding::Sparse => {
                let mut at = 0;
                for run in sparse::checked_runs(self.body())? {
                    for index in at..at + run.len {
                        let rank = run.rank;
                        changed |= registers.raise(Observation { index, rank });
                    }
                    at += run.len;
                }
            }
        }
        Ok(changed)
    }

    pub fn registers(self) -> Result<Registers, HllError> {
        let mut registers = Registers::default();
        self.merge_into(&mut registers)?;
        Ok(registers)
    }

    /// Whether a dense sketch's register is below what was observed. A sparse one has to be
    /// searched: see [`raise`].
    pub fn is_raised_by(self, seen: Observation) -> bool {
        self.encoding == Encoding::Dense && dense::get(self.body(), seen.index) < seen.rank
    }

    /// The rank of a register, found by a search in a sparse sketch.
    pub fn rank(self, index: usize) -> u8 {
        if self.encoding == Encoding::Dense {
            return dense::get(self.body(), index);
        }
        let mut at = 0;
        for run in sparse::runs(self.body()) {
            at += run.len;
            if index < at {
                return run.rank;
            }
        }
        0
    }

    /// What has to be observed to get these registers from none, in their order.
    pub fn observations(self) -> Result<impl Iterator<Item = Observation>, HllError> {
        let (dense, sparse) = match self.encoding {
            Encoding::Dense => (Some(dense::ranks(self.body())), None),
            Encoding::Sparse => (None, Some(sparse::checked_runs(self.body())?)),
        };
        let one = |(index, rank)| Observation { index, rank };
        let dense = dense.into_iter().flatten().enumerate().map(one);
        let mut at = 0;
        let sparse = sparse.into_iter().flatten().flat_map(move |run| {
            let first = at;
            at += run.len;
            let len = if run.rank > 0 { run.len } else { 0 };
            (first..first + len).map(move |index| one((index, run.rank)))
        });
        Ok(dense.chain(sparse).filter(|seen| seen.rank > 0))
    }

    /// The runs of a sparse sketch as `PFDEBUG DECODE` shows them; `None` for a dense one.
    pub fn describe_runs(self) -> Result<Option<String>, HllError> {
        match self.encoding {
            Encoding::Dense => Ok(None),
            Encoding::Sparse => sparse::describe(self.body()).map(Some),
        }
    }

    fn body(self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
}

/// A sketch of nothing: sparse, with a valid cardinality of 0.
pub fn empty() -> Vec<u8> {
    let mut value = vec![0; HEADER_LEN];
    value[..MAGIC.len()].copy_from_slice(MAGIC);
    value[ENCODING_AT] = 1;
    sparse::write_empty(&mut value);
    value
}

/// A value that can be raised many times: its header and runs are checked once.
#[derive(Debug)]
pub struct Editor {
    value: Vec<u8>,
    encoding: Encoding,
    sparse_max_bytes: usize,
}

impl Editor {
    /// Takes a copy of a value. A sparse value whose length would exceed `sparse_max_bytes`
    /// (`hll-sparse-max-bytes`) becomes dense.
    pub fn new(value: Vec<u8>, sparse_max_bytes: usize) -> Result<Self, HllError> {
        let sketch = Sketch::parse(&value)?;
        if sketch.encoding == Encoding::Sparse {
            sparse::check(sketch.body())?;
        }
        Ok(Self {
            encoding: sketch.encoding,
            value,
            sparse_max_bytes,
        })
    }

    /// Raises a register; returns whether it was lower. The cached cardinality is left as it is.
    pub fn raise(&mut self, seen: Observation) -> bool {
        if self.encoding == Encoding::Sparse {
            let max = self.sparse_max_bytes;
            match sparse::raise(&mut self.value, seen, max) {
                sparse::Outcome::Same => return false,
                sparse::Outcome::Raised => return true,
                sparse::Outcome::TooLong => self.make_dense(),
            };
        }
        dense::raise(&mut self.value[HEADER_LEN..], seen)
    }

    /// Writes every register for itself; returns whether that was not so already.
    pub fn make_dense(&mut self) -> bool {
        if self.encoding == Encoding::Dense {
            return false;
        }
        let mut dense = Vec::with_capacity(DENSE_LEN);
        dense.extend_from_slice(&self.value[..HEADER_LEN]);
        dense.resize(DENSE_LEN, 0);
        dense[ENCODING_AT] = 0;
        let mut index = 0;
        for run in sparse::runs(&self.value[HEADER_LEN..]) {
            for index in index..index + run.len {
                let rank = run.rank;
                dense::raise(&mut dense[HEADER_LEN..], Observation { index, rank });
            }
            index += run.len;
        }
        self.value = dense;
        self.encoding = Encoding::Dense;
        true
    }

    /// Says that the registers have changed since the cardinality was kept.
    pub fn mark_stale(&mut self) {
        mark_stale(&mut self.value);
    }

    pub fn into_value(self) -> Vec<u8> {
        self.value
    }
}

/// [`Editor::mark_stale`] of a value in place, which must be a sketch.
pub fn mark_stale(value: &mut [u8]) {
    value[STALE_AT] |= STALE;
}

/// [`Editor::raise`] of a value in place, which must be a dense sketch.
pub fn raise_dense(value: &mut [u8], seen: Observation) -> bool {
    dense::raise(&mut value[HEADER_LEN..], seen)
}

/// The cardinality as it is kept in the header, at [`cardinality_range`].
pub fn cardinality_bytes(count: u64) -> [u8; 8] {
    count.to_le_bytes()
}

/// Where in a value the cardinality is kept.
pub fn cardinality_range() -> Range<usize> {
    CARDINALITY
}
