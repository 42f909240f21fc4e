//! What elements of replicated collections are.

use super::state::PlainState;
use crate::algebra::{DataType, Packing, Tuning};
use crate::dict::Dict;
use rufous_lattice::{Coded, Lattice, Stamp};
use std::fmt::Debug;

/// What the elements of a replicated collection are.
pub trait Element: Debug + Sized + 'static {
    /// The collection that is read.
    type Plain: DataType;
    type Value: Lattice + Coded + PartialEq + Debug;

    const NAME: &'static str;
    const ABOUT: &'static str;

    /// Whether it is there, leaving out what was written below the cut.
    fn is_there(value: &Self::Value, cut: Stamp) -> bool;
    /// What increments begin with where nothing is there since the cut.
    fn nothing(cut: Stamp) -> Self::Value;
    /// No stamp in it is newer.
    fn newest(value: &Self::Value) -> Stamp;
    /// A delta that removes what is there.
    fn removal(value: &Self::Value, stamp: Stamp) -> Self::Value;
    /// What the plain collection shows of an element beside its name.
    type Shown<'a>: Copy;

    /// The stamp of a value that is one write and shown, and nothing else.
    fn single(value: &Self::Value) -> Option<Stamp>;
    /// The value of which [`Element::single`] gives this stamp.
    fn written(stamp: Stamp, shown: Self::Shown<'_>) -> Self::Value;
    /// Of an encoded value that is one write, what it shows.
    fn write_of(delta: &[u8]) -> Option<(Stamp, Self::Shown<'_>)>;
    /// Whether of two such values the new one is their merge, or the old one;
    /// none where that takes a look at both.
    fn replaces(old: Stamp, new: Stamp) -> Option<bool>;
    /// What is shown of a value that is there.
    fn with_shown<R>(value: &Self::Value, see: impl FnOnce(Self::Shown<'_>) -> R) -> Option<R>;

    /// Of the plain collection while it is packed, by this tuning.
    fn packing(tuning: &Tuning) -> Packing;
    /// Bytes that it takes there, without lengths; a score counts as eight.
    fn shown_len(shown: Self::Shown<'_>) -> usize;
    /// Names and what is shown, in their order.
    fn elements(packed: &[u8]) -> impl Iterator<Item = (&[u8], Self::Shown<'_>)>;
    /// Where an element is and what is shown of it, or how many there are.
    fn find<'a>(packed: &'a [u8], name: &[u8]) -> Result<(Spot, Self::Shown<'a>), usize>;
    /// Shows an element in a packed one, where it is known where it is, or how
    /// many there are. Answers its number then, if that is still packed.
    fn put(
        plain: &mut PlainState<Self>,
        at: Result<Spot, usize>,
        name: &[u8],
        shown: Self::Shown<'_>,
        tuning: &Tuning,
    ) -> usize;
    fn remove(plain: &mut PlainState<Self>, name: &[u8], tuning: &Tuning);

    /// The table of a large one.
    fn table(plain: &PlainState<Self>) -> Option<&Dict>;
    fn table_mut(plain: &mut PlainState<Self>) -> Option<&mut Dict>;
    /// What a value in it shows.
    fn shown(value: &[u8]) -> Self::Shown<'_>;
    /// [`Element::put`] in a large one, with what is to lie beside.
    fn put_large(
        plain: &mut PlainState<Self>,
        name: &[u8],
        shown: Self::Shown<'_>,
        beside: &[u8],
        tuning: &Tuning,
    );

    /// Encoded deltas of few stamps, so that they meet.
    fn samples() -> &'static [Vec<u8>];
}

/// Where a packed element is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Its number.
    pub index: usize,
    /// Where it begins.
    pub offset: usize,
}
