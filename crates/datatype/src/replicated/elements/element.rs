//! The element types of replicated collections.

use super::cells::Cells;
use super::state::PlainState;
use crate::algebra::DataType;
use rufous_lattice::{Coded, Lattice, Stamp};
use std::fmt::Debug;

/// What the plain collection shows of an element besides its name.
pub type Shown<'a, E> = <PlainState<E> as Cells>::Shown<'a>;

/// The type of the elements of a replicated collection.
pub trait Element: Debug + Sized + 'static {
    /// The plain collection that is read.
    type Plain: DataType<State: Cells>;
    type Value: Lattice + Coded + PartialEq + Debug;

    const NAME: &'static str;
    const ABOUT: &'static str;

    /// Whether the element is present, not counting writes below the cut.
    fn is_there(value: &Self::Value, cut: Stamp) -> bool;
    /// The value on which increments begin if nothing was written since the cut.
    fn nothing(cut: Stamp) -> Self::Value;
    /// No stamp in it is newer.
    fn newest(value: &Self::Value) -> Stamp;
    /// What remains without writes below the stamp, or removals with it. A count that began on a removal has the
    /// removal's stamp.
    fn since(value: Self::Value, cut: Stamp) -> Option<Self::Value> {
        let newest = Self::newest(&value);
        let is_there = Self::is_there(&value, Stamp::ZERO);
        (newest > cut || newest == cut && is_there).then_some(value)
    }
    /// Whether it consists of counts only, on nothing or on a removal.
    fn only_counts(_: &Self::Value) -> bool {
        false
    }
    /// Whether values can have counts.
    const COUNTS: bool;
    /// See [`rufous_lattice::Register::meet`].
    fn meet(mine: &mut Self::Value, theirs: &Self::Value, horizon: u64) -> bool;
    /// A delta that removes the present value.
    fn removal(value: &Self::Value, stamp: Stamp) -> Self::Value;
    /// The stamp of a value that is shown and consists of one write only.
    fn single(value: &Self::Value) -> Option<Stamp>;
    /// The value for which [`Element::single`] returns this stamp.
    fn written(stamp: Stamp, shown: Shown<'_, Self>) -> Self::Value;
    /// The stamp and the shown part of an encoded value that is one write.
    fn write_of(delta: &[u8]) -> Option<(Stamp, Shown<'_, Self>)>;
    /// Whether the new one of two such values replaces the old one in a merge, or is replaced; `None` if that depends
    /// on the values.
    fn replaces(old: Stamp, new: Stamp) -> Option<bool>;
    /// Calls `see` with the shown part of a present value.
    fn with_shown<R>(value: &Self::Value, see: impl FnOnce(Shown<'_, Self>) -> R) -> Option<R>;

    /// Encoded deltas of few stamps, so that equal ones occur.
    fn samples() -> &'static [Vec<u8>];
}
