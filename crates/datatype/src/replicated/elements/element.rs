//! What elements of replicated collections are.

use super::cells::Cells;
use super::state::PlainState;
use crate::algebra::DataType;
use rufous_lattice::{Coded, Lattice, Stamp};
use std::fmt::Debug;

/// What the plain collection shows of an element beside its name.
pub type Shown<'a, E> = <PlainState<E> as Cells>::Shown<'a>;

/// What the elements of a replicated collection are.
pub trait Element: Debug + Sized + 'static {
    /// The collection that is read.
    type Plain: DataType<State: Cells>;
    type Value: Lattice + Coded + PartialEq + Debug;

    const NAME: &'static str;
    const ABOUT: &'static str;

    /// Whether it is there, leaving out what was written below the cut.
    fn is_there(value: &Self::Value, cut: Stamp) -> bool;
    /// What increments begin with where nothing is there since the cut.
    fn nothing(cut: Stamp) -> Self::Value;
    /// No stamp in it is newer.
    fn newest(value: &Self::Value) -> Stamp;
    /// What is left without what was written below the stamp, or was removed
    /// with it. A count that began on a removal has the removal's stamp.
    fn since(value: Self::Value, cut: Stamp) -> Option<Self::Value> {
        let newest = Self::newest(&value);
        let is_there = Self::is_there(&value, Stamp::ZERO);
        (newest > cut || newest == cut && is_there).then_some(value)
    }
    /// Whether all there is was added to nothing, or to a removal.
    fn only_counts(_: &Self::Value) -> bool {
        false
    }
    /// Something of it may be counted.
    const COUNTS: bool;
    /// See [`rufous_lattice::Register::meet`].
    fn meet(mine: &mut Self::Value, theirs: &Self::Value, horizon: u64) -> bool;
    /// A delta that removes what is there.
    fn removal(value: &Self::Value, stamp: Stamp) -> Self::Value;
    /// The stamp of a value that is one write and shown, and nothing else.
    fn single(value: &Self::Value) -> Option<Stamp>;
    /// The value of which [`Element::single`] gives this stamp.
    fn written(stamp: Stamp, shown: Shown<'_, Self>) -> Self::Value;
    /// Of an encoded value that is one write, what it shows.
    fn write_of(delta: &[u8]) -> Option<(Stamp, Shown<'_, Self>)>;
    /// Whether of two such values the new one is their merge, or the old one;
    /// none where that takes a look at both.
    fn replaces(old: Stamp, new: Stamp) -> Option<bool>;
    /// What is shown of a value that is there.
    fn with_shown<R>(value: &Self::Value, see: impl FnOnce(Shown<'_, Self>) -> R) -> Option<R>;

    /// Encoded deltas of few stamps, so that they meet.
    fn samples() -> &'static [Vec<u8>];
}
