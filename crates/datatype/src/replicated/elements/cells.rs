//! The plain collections with the elements that are shown, so that stamps can be stored with them: in a pack while
//! there are few, and otherwise in a table by name.

use crate::algebra::{Algebra, Packing, Tuning};
use crate::dict::Dict;
use crate::pack::Pack;
use crate::sorted_set::{self, Only, Op, SortedSet};
use crate::table::{self, Shape, Table};

/// A state of a plain collection.
pub trait Cells {
    /// What it shows of an element besides its name.
    type Shown<'a>: Copy;

    /// The limits of packed states, by this tuning.
    fn packing(tuning: &Tuning) -> Packing;
    /// Bytes of that in a pack, without lengths; a score counts as eight.
    fn shown_len(shown: Self::Shown<'_>) -> usize;
    /// Names and shown parts, in their order.
    fn elements(packed: &[u8]) -> impl Iterator<Item = (&[u8], Self::Shown<'_>)>;
    /// The position of an element and its shown part, or the number of elements.
    fn find<'a>(packed: &'a [u8], name: &[u8]) -> Result<(Spot, Self::Shown<'a>), usize>;
    /// Shows an element in a packed state, given its position or the number of elements. Returns its index if the
    /// state is still packed.
    fn put(
        &mut self,
        at: Result<Spot, usize>,
        name: &[u8],
        shown: Self::Shown<'_>,
        tuning: &Tuning,
    ) -> usize;
    /// Stops showing an element, in either shape.
    fn hide(&mut self, name: &[u8], tuning: &Tuning);

    /// The table of a large one.
    fn names(&self) -> Option<&Dict>;
    fn names_mut(&mut self) -> Option<&mut Dict>;
    /// The shown part of a table's value.
    fn shown(value: &[u8]) -> Self::Shown<'_>;
    /// [`Cells::put`] in a large state, with the bytes to store beside it.
    fn put_large(&mut self, name: &[u8], shown: Self::Shown<'_>, beside: &[u8], tuning: &Tuning);
}

/// The position of a packed element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Its index.
    pub index: usize,
    /// The offset of its first byte.
    pub offset: usize,
}

/// Sets, whose members show only their names, and hashes.
impl<const WIDTH: usize> Cells for Table<WIDTH> {
    type Shown<'a> = &'a [u8];

    fn packing(tuning: &Tuning) -> Packing {
        if WIDTH == 1 { tuning.set } else { tuning.hash }
    }

    fn shown_len(value: &[u8]) -> usize {
        value.len()
    }

    fn elements(packed: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
        table::View::<WIDTH>::Packed(Pack(packed)).iter()
    }

    fn find<'a>(packed: &'a [u8], name: &[u8]) -> Result<(Spot, &'a [u8]), usize> {
        let pack = Pack(packed);
        let (index, offset) = pack.search::<WIDTH>(name)?;
        let value = if WIDTH == 1 {
            None
        } else {
            pack.next_offset(offset).and_then(|at| pack.entry_at(at))
        };
        Ok((Spot { index, offset }, value.unwrap_or_default()))
    }

    fn put(
        &mut self,
        at: Result<Spot, usize>,
        name: &[u8],
        value: &[u8],
        tuning: &Tuning,
    ) -> usize {
        let shape = Shape {
            packing: Self::packing(tuning),
            seed: tuning.seed,
        };
        self.put_at(at.map(|spot| spot.offset), name, value, &shape);
        at.map_or_else(|count| count, |spot| spot.index)
    }

    fn hide(&mut self, name: &[u8], _: &Tuning) {
        self.remove(name);
    }

    fn names(&self) -> Option<&Dict> {
        self.large()
    }

    fn names_mut(&mut self) -> Option<&mut Dict> {
        self.large_mut()
    }

    fn shown(value: &[u8]) -> &[u8] {
        value
    }

    fn put_large(&mut self, name: &[u8], value: &[u8], beside: &[u8], _: &Tuning) {
        if let Some(table) = self.large_mut() {
            table.insert_beside(name, value, beside);
        }
    }
}

impl Cells for sorted_set::State {
    type Shown<'a> = f64;

    fn packing(tuning: &Tuning) -> Packing {
        tuning.sorted_set
    }

    fn shown_len(_: f64) -> usize {
        8
    }

    fn elements(packed: &[u8]) -> impl Iterator<Item = (&[u8], f64)> {
        sorted_set::packed_elements(packed)
    }

    fn find(packed: &[u8], member: &[u8]) -> Result<(Spot, f64), usize> {
        let (index, offset, score) = sorted_set::find_packed(packed, member)?;
        Ok((Spot { index, offset }, score))
    }

    fn put(
        &mut self,
        at: Result<Spot, usize>,
        member: &[u8],
        score: f64,
        tuning: &Tuning,
    ) -> usize {
        let at = at.map(|spot| (spot.index, spot.offset));
        self.put_packed(at, member, score, tuning)
    }

    fn hide(&mut self, member: &[u8], tuning: &Tuning) {
        SortedSet::commit(self, &Op::Remove { member }, tuning);
    }

    fn names(&self) -> Option<&Dict> {
        self.scores()
    }

    fn names_mut(&mut self) -> Option<&mut Dict> {
        self.scores_mut()
    }

    fn shown(value: &[u8]) -> f64 {
        sorted_set::kept_score(value)
    }

    fn put_large(&mut self, member: &[u8], score: f64, beside: &[u8], tuning: &Tuning) {
        let only = Only::default();
        let op = Op::Add {
            member,
            score,
            only,
        };
        SortedSet::commit(self, &op, tuning);
        if let Some(table) = self.scores_mut() {
            table.set_beside(member, beside);
        }
    }
}
