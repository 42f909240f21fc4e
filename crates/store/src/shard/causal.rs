//! Strings with causal order: a write replaces what its writer has seen, and becomes a sibling of the rest.
//!
//! A plain write has seen what the client's commands have read or written of the key before (see `contexts`); a write
//! with an explicit context has seen what that contains.

use super::at::At;
use super::lattice::Keyed;
use super::types::Any;
use super::writes::write_replica;
use crate::planted::{self, Planted};
use rufous_datatype::ValueError;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::Writer;
use rufous_datatype::replicated::siblings::{self, Pick, Siblings};
use rufous_lattice::{Seen, Siblings as Values, Stamp};

/// The replica in stamps of writes that are applied to copies only.
pub const ON_COPIES: u16 = u16::MAX;

/// The result of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// A value that was shown is shown no longer.
    pub removed: bool,
    /// The writer's context after the write: its context before, and the write.
    pub seen: Seen,
}

/// The expiry of the value that is shown, given that one of the values expires at `next`.
pub(super) fn shown_expiry(value: Any<'_>, pick: Pick, next: u64) -> Option<u64> {
    let view = match value {
        Any::Packed(Tag::Siblings, bytes) => bytes,
        Any::Object(Object::Siblings(state)) => Siblings::view(state),
        _ => return Some(next),
    };
    Some(siblings::shown_deadline(view, pick)).filter(|&at| at > 0)
}

/// When the key expires (Unix milliseconds), if it exists and has an expiry: of several concurrent values, that of the
/// value that is shown.
pub(super) fn expire_at(at: &mut At<'_>) -> Option<Option<u64>> {
    let found = at.live()?;
    let next = at.db.records.expiry(found.handle);
    let value = at.db.records.value(found.handle);
    Some(next.and_then(|next| shown_expiry(value, at.env.lattice.pick(at.key), next)))
}

/// Writes a string with causal order, with a deadline in Unix milliseconds or 0, or deletes it, if the running command
/// may do so. Replaces what `context` has seen. Parts of the context about unknown replicas, or not older than the
/// write, are ignored.
pub fn set(at: &mut At<'_>, value: Option<(&[u8], u64)>, context: &Seen) -> Option<Written> {
    let keyed = at.replicated()?;
    if keyed.strings != Tag::Siblings {
        return None;
    }
    write(at, keyed, value, Some(context))
}

/// Without a context all that is shown is replaced.
pub(super) fn write(
    at: &mut At<'_>,
    keyed: Keyed,
    value: Option<(&[u8], u64)>,
    context: Option<&Seen>,
) -> Option<Written> {
    if at.is_plain() {
        at.remove();
    }
    let nothing = Seen::default();
    let context = match context {
        Some(_) if planted::is(Planted::UnseenReplaced) => None,
        Some(_) if planted::is(Planted::SeenNotReplaced) => Some(&nothing),
        context => context,
    };
    let stamp = rise_above(at, |view| siblings::seen(view).newest())?;
    let keying = at.env.lattice.keying().cloned();
    let is_replica = |replica| keying.as_ref().is_some_and(|k| k.is_replica(replica));
    let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
        let state = Siblings::of(object)?;
        let view = Siblings::view(state);
        let known = siblings::seen(view);
        let context = context.map(|context| Seen {
            all: context
                .all
                .below(stamp)
                .only(|replica| known.knows(replica) || is_replica(replica)),
            own: context.own,
        });
        Some(match value {
            Some(value) => {
                let before = siblings::count(view);
                let (after, seen) = siblings::set(view, value, context.as_ref(), writer, ops);
                (after <= before, after, seen)
            }
            None => {
                let removed = siblings::delete(view, context.as_ref(), writer, ops);
                (removed, 0, context.unwrap_or_default())
            }
        })
    };
    let done = write_replica(at, (keyed, Tag::Siblings), encode);
    let (removed, after, mut seen) = done??;
    let is_real = |stamp: Stamp| stamp != Stamp::ZERO && stamp.replica != ON_COPIES;
    if !is_real(stamp) && context.is_some_and(|context| is_real(context.own)) {
        // A write on copies may never be made on data, so it replaces no real write.
        seen.own = Stamp::ZERO;
    }
    at.env.counters.concurrent_writes += u64::from(after > 1);
    at.env.lattice.note_seen(at.db.number, at.key, &seen);
    Some(Written { removed, seen })
}

/// The stamp of the command's next write: above the key's newest stamp, which may come from another clock.
fn rise_above(at: &mut At<'_>, newest: impl FnOnce(siblings::View<'_>) -> Stamp) -> Option<Stamp> {
    let newest = view(at, newest).unwrap_or_default();
    at.env.lattice.rise_above(newest)
}

/// What the client has seen of the key, if that is anything.
fn context_of(at: &mut At<'_>) -> Option<Seen> {
    let context = at.env.lattice.context_of(at.db.number, at.key);
    context.filter(|seen| !seen.is_empty())
}

/// Deletes what the client has seen. If the client has seen nothing of the key, deletes the current values, as if the
/// client had just read them. Returns whether anything was deleted.
pub(super) fn delete(at: &mut At<'_>, keyed: Keyed) -> bool {
    let mut context = context_of(at);
    if context.is_none() && at.env.lattice.has_session() {
        context = Some(see(at).seen().clone().into());
    }
    let done = write(at, keyed, None, context.as_ref());
    done.is_some_and(|written| written.removed)
}

/// Sets a deadline on the values that the client has seen, chosen as in a deletion, without making a write; 0 removes
/// the deadline of all shown values. Returns whether there were such values.
pub(super) fn set_deadline(at: &mut At<'_>, keyed: Keyed, deadline: u64) -> bool {
    let newest = |view: siblings::View<'_>| siblings::values(view).newest();
    if at.env.lattice.is_undecided() || rise_above(at, newest).is_none() {
        return false;
    }
    let context = context_of(at).filter(|_| deadline > 0);
    let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
        let view = Siblings::view(Siblings::of(object)?);
        let any = siblings::set_deadline(view, deadline, context.as_ref(), writer, ops);
        Some(any)
    };
    let done = write_replica(at, (keyed, Tag::Siblings), encode);
    done.flatten().unwrap_or(false)
}

/// Adds to the shown value.
pub(super) fn increment(at: &mut At<'_>, keyed: Keyed, by: i64) -> Result<i64, ValueError> {
    note_read(at);
    let seen = |view: siblings::View<'_>| siblings::seen(view).newest();
    if at.env.lattice.is_undecided() || rise_above(at, seen).is_none() {
        return Ok(0);
    }
    if at.is_plain() {
        let old = at.shown_text();
        let old = old.as_deref().map(|old| (old, 0));
        write(at, keyed, old, None);
    }
    let pick = at.env.lattice.pick(at.key);
    let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
        let state = Siblings::of(object)?;
        let sum = siblings::increment(Siblings::view(state), pick, by, writer, ops);
        Some(sum)
    };
    let done = write_replica(at, (keyed, Tag::Siblings), encode);
    note_read(at);
    done.flatten().unwrap_or(Ok(0))
}

/// The state of a string with causal order, even of one that shows nothing.
fn view<R>(at: &mut At<'_>, f: impl FnOnce(siblings::View<'_>) -> R) -> Option<R> {
    let done = at.with_state(|value, _, _| match value {
        Any::Packed(Tag::Siblings, bytes) => Some(f(bytes)),
        Any::Object(object) => Some(f(Siblings::view(Siblings::of(object)?))),
        _ => None,
    });
    done.flatten()
}

/// All concurrent values and their context, for the running command's client, which has seen them from now on.
pub fn see(at: &mut At<'_>) -> Values {
    let values = view(at, siblings::values).unwrap_or_default();
    let seen = values.seen().clone().into();
    at.env.lattice.note_seen(at.db.number, at.key, &seen);
    values
}

/// Before a read of a string: if it is for a client, its siblings count as seen.
#[cold]
pub(super) fn note_read(at: &mut At<'_>) {
    if !at.env.lattice.has_session() {
        return;
    }
    let key = at.key;
    let found = at.live();
    let Some(found) = found.filter(|_| at.env.lattice.orders_causally(key)) else {
        return;
    };
    let view = match at.db.records.value(found.handle) {
        Any::Packed(Tag::Siblings, bytes) => bytes,
        Any::Object(Object::Siblings(state)) => Siblings::view(state),
        _ => return,
    };
    let (seen, count) = (siblings::seen(view).into(), siblings::count(view));
    at.env.lattice.note_read(at.db.number, key, count, &seen);
}
