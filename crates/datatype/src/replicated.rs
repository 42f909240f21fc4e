//! Replicated types: values of which several replicas take writes at once and
//! merge to the same.
//!
//! # The contract
//!
//! A replicated type is an ordinary registered type whose states are a
//! join-semilattice and whose one operation merges a *delta*, a part of a
//! state, into it. Any two of these are independent, so that logs, snapshots,
//! copies and replay need nothing else: doing it again is harmless. Chunks are
//! parts of a state, and [`DataType::extend`] merges them.
//!
//! - A state *hides* its value where there is nothing to read: it was deleted,
//!   has expired, or has lost all its elements. What is left are tombstones,
//!   which keep writes that are on their way from coming back.
//!   [`Object::is_hidden`] tells; [`Object::is_empty`] is true of the bottom
//!   alone, which has not even these.
//! - [`Object::newest`] is the newest stamp of a state, none if the type is not
//!   replicated. [`Object::forget`] drops the tombstones that are not newer
//!   than a time which all replicas have passed.
//! - A value may have a deadline. When its time has come every replica does by
//!   itself, and all alike, what [`Object::encode_expiry`] says, and tells no
//!   other; see [`rufous_lattice::Deadline`] and [`rufous_lattice::Deadlines`].
//! - A plain type says by [`DataType::REPLICATE`] which type replicates it, and
//!   what its operations are there: [`apply`] does one. What cannot be done
//!   without asking other replicas is [`Refused`].
//! - A write takes its stamp from a [`Writer`], whose stamp steps with every
//!   operation. Whoever made the writer shows its last stamp to the clock
//!   ([`rufous_lattice::Clock::observe`]).
//!
//! Map: [`register`] (strings; the last write wins), [`siblings`] (strings with
//! causal order), [`token`] (what was seen of them), [`sketch`] (HyperLogLogs), [`elements`] (collections),
//! [`shared_set`], [`shared_hash`], [`shared_sorted_set`] (what their elements
//! are).

pub mod elements;
pub mod register;
pub mod sealed;
pub mod shared_hash;
pub mod shared_set;
pub mod shared_sorted_set;
pub mod siblings;
pub mod sketch;
pub mod token;

use crate::algebra::{Algebra, Corrupt, DataType, Tuning};
use crate::object::{Object, Tag};
use crate::{pack, table};
use rufous_lattice::{Coded, Deadlines, Stamp};
use std::borrow::Cow;

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// Of the next write: its replica is the writer's.
    pub stamp: Stamp,
}

/// Something that cannot be done without asking other replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Goes on after "cannot be coordination-free: ".
    pub why: &'static str,
    /// What else to do, as a sentence without its end.
    pub instead: &'static str,
}

impl Refused {
    /// The value is not of the type that replicates this one.
    pub const OTHER_TYPE: Refused = Refused {
        why: "the value is of another type",
        instead: "delete it first",
    };
    /// The type has no replicated one.
    pub const NO_MERGE: Refused = Refused {
        why: "values of this type do not merge",
        instead: "use a keyspace of regime strict for them",
    };
}

/// What was left when tombstones had been dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// Nothing at all: the value may go.
    Empty,
    /// What is to be kept.
    Kept,
    /// Also more tombstones to be dropped: the budget was spent.
    More,
}

/// What a replicated type has beyond others.
pub struct Replicas<T: Algebra + ?Sized> {
    /// At least the stamp of everything in it.
    pub newest: fn(&T::State) -> Stamp,
    /// Whether there is nothing to read.
    pub is_hidden: for<'s> fn(T::View<'s>) -> bool,
    /// Drops about `budget` of the tombstones up to the horizon, a
    /// [`Stamp::time`], inclusive.
    pub forget: fn(&mut T::State, horizon: u64, budget: usize) -> Forgotten,
    /// Appends encoded operations that delete what the state shows.
    pub delete: fn(&T::State, &Writer, &mut Vec<u8>),
    /// What can be done with deadlines.
    pub expiry: Expiry<T>,
    /// See [`Object::make_way`].
    pub make_way: Option<MakeWay<T>>,
    /// What a deadline may leave behind, of types whose values are not written
    /// anew with each.
    pub past: Option<Past<T>>,
    /// Which element an operation adds to that was never written, or whose
    /// removal was forgotten. Of types with one element that has no name.
    pub adds_to_nothing: for<'a, 'o> fn(&'a T::Op<'o>) -> Option<&'a [u8]>,
}

/// See [`Object::make_way`].
pub struct MakeWay<T: Algebra + ?Sized> {
    /// Whether there may be something to forget, with this horizon.
    pub is_due: fn(&T::State, u64) -> bool,
    /// Whether something may be counted on a removal, or on nothing.
    pub is_counted: fn(&T::State) -> bool,
    /// Answers the time of the last stamp of what has made way; 0 where nothing has.
    pub run: for<'s> fn(&mut T::State, T::View<'s>, Known, &Tuning) -> u64,
}

/// Up to which time of stamps all writes are known.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub here: u64,
    /// To who has sent something, when that was made; no more than here.
    pub there: u64,
}

/// What has gone with a deadline.
pub struct Past<T: Algebra + ?Sized> {
    /// See [`Object::gone`].
    pub gone: for<'s> fn(T::View<'s>, horizon: u64) -> Stamp,
    /// Appends what is left of an operation without what was written below the
    /// stamp, if anything is. Of deadlines see [`rufous_lattice::Deadline::since`].
    pub since: for<'o> fn(&T::Op<'o>, Stamp, &mut Vec<u8>),
    /// Likewise without removals up to the stamp, and what was written before them.
    /// What is counted stays: of that a removal takes only what it names, and the two
    /// have met. Deadlines stay, too, where types name what goes.
    pub ended: for<'o> fn(&T::Op<'o>, Stamp, &mut Vec<u8>),
}

/// How values of a replicated type come to their end.
pub struct Expiry<T: Algebra + ?Sized> {
    /// Unix milliseconds; 0 for none.
    pub deadline: fn(&T::State) -> u64,
    /// See [`Object::until`].
    pub until: fn(&T::State) -> u64,
    /// What is written from now on needs a stamp above this one.
    pub floor: fn(&T::State) -> Stamp,
    /// Appends encoded operations that give what the state shows a deadline, or
    /// none with 0.
    pub set: SetDeadline<T>,
    /// Appends what every replica does when the time has come.
    pub pass: fn(&T::State, &mut Vec<u8>),
}

/// A chunk of a value of this replicated type, as operations.
pub fn operations_of(tag: Tag, chunk: &[u8]) -> Cow<'_, [u8]> {
    match tag {
        Tag::Register | Tag::Siblings | Tag::Sketch => {
            let mut ops = Vec::new();
            pack::push(&mut ops, chunk);
            Cow::Owned(ops)
        }
        // Elements, one after the other.
        _ => Cow::Borrowed(chunk),
    }
}

/// What was written below has gone for good, as the deadline says that a chunk of
/// a collection begins with: see [`Object::gone`].
pub fn chunk_gone(tag: Tag, mut chunk: &[u8], horizon: u64) -> Stamp {
    let is_collection = matches!(tag, Tag::SharedSet | Tag::SharedHash | Tag::SharedSortedSet);
    let mut next = || table::take(&mut chunk).ok();
    match (is_collection, next(), next()) {
        (true, Some(first), Some([])) => {
            let deadline = Deadlines::decode(first);
            deadline.map_or(Stamp::ZERO, |deadline| deadline.gone(horizon))
        }
        _ => Stamp::ZERO,
    }
}

/// A chunk of a value of this replicated type without what was written below the
/// stamp, and has gone for good. A deadline that has this for a cut stays.
pub fn chunk_since(tag: Tag, chunk: &[u8], cut: Stamp) -> Result<Vec<u8>, Corrupt> {
    let ops = tag.since(&operations_of(tag, chunk), cut)?;
    match tag {
        Tag::Register | Tag::Siblings | Tag::Sketch if !ops.is_empty() => {
            Ok(table::take(&mut &ops[..])?.to_vec())
        }
        _ => Ok(ops),
    }
}

/// Whether removals of values of this type name what they take, element by element,
/// and of these something may be counted: see [`Past::ended`].
pub fn names_what_goes(tag: Tag) -> bool {
    matches!(tag, Tag::SharedHash | Tag::SharedSortedSet)
}

/// Whether an operation that adds to nothing is all that was added there so far,
/// so that a later one takes its place; of others all have to be done.
pub fn says_all(tag: Tag) -> bool {
    tag != Tag::Sketch
}

pub type SetDeadline<T> =
    fn(&<T as Algebra>::State, u64, &Writer, &mut Vec<u8>) -> Result<(), Refused>;

/// How a plain type is replicated.
pub struct Replicate<T: Algebra + ?Sized> {
    /// By values of which type.
    pub tag: Tag,
    /// The plain value inside of one.
    pub inside: for<'s> fn(&'s Object) -> Option<T::View<'s>>,
    /// Likewise inside of packed bytes.
    pub packed_inside: for<'s> fn(&'s [u8]) -> T::View<'s>,
    /// Appends encoded operations of the replicated type that do to the value
    /// what this one does to the plain value inside, and answers as it would.
    pub translate: Translate<T>,
}

pub type Translate<T> = for<'o> fn(
    &Object,
    &<T as Algebra>::Op<'o>,
    &Writer,
    &mut Vec<u8>,
) -> Result<<T as Algebra>::Reply, Refused>;

/// Does an operation of a plain type to a value of the type that replicates
/// it, and appends what it was there, for the log and for other replicas.
pub fn apply<T: DataType>(
    object: &mut Object,
    op: &T::Op<'_>,
    writer: &mut Writer,
    tuning: &Tuning,
    ops: &mut Vec<u8>,
) -> Result<T::Reply, Refused> {
    let link = T::REPLICATE.ok_or(Refused::NO_MERGE)?;
    let start = ops.len();
    let floor = object.floor();
    if writer.stamp < floor {
        // Other clocks were ahead, or this one was set back: what has gone with
        // a deadline would take what is written now along.
        writer.stamp = Stamp {
            time: floor.time.saturating_add(1),
            step: 0,
            ..writer.stamp
        };
    }
    let was_hidden = object.is_hidden();
    let reply = (link.translate)(object, op, writer, ops)?;
    if ops.len() > start {
        writer.stamp = writer.stamp.next();
        let done = object.commit_encoded(&ops[start..], tuning);
        debug_assert!(done.is_ok(), "operations are as their type encodes them");
        // A key that has lost its last element has none when it is made anew;
        // where replicas took one each, it still has.
        if object.deadline() > 0 && (was_hidden || object.is_hidden()) {
            let end = ops.len();
            object.encode_deadline(0, writer, ops)?;
            writer.stamp = writer.stamp.next();
            let done = object.commit_encoded(&ops[end..], tuning);
            debug_assert!(done.is_ok(), "operations are as their type encodes them");
        }
    }
    Ok(reply)
}
