//! Strings with causal order: a write replaces what its writer has seen, and becomes a sibling of the rest.
//!
//! A plain write has seen what the client's commands have read or written of the key before (see `contexts`); a write
//! with an explicit context has seen what that contains.

use super::lattice::Keyed;
use super::types::{Any, Key};
use super::{Env, Shard};
use crate::planted::{self, Planted};
use rufous_base::Now;
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

impl Env {
    /// Which of several concurrent values is shown.
    pub(super) fn pick(&self, key: Key<'_>) -> Pick {
        let keying = self.keying.as_ref();
        keying.map_or(Pick::Newest, |keying| keying.resolve(key.bytes).pick())
    }
}

impl Shard {
    /// Writes a string with causal order, with a deadline in Unix milliseconds or 0, or deletes it, if the running
    /// command may do so. Replaces what `context` has seen. Parts of the context about unknown replicas, or not older
    /// than the write, are ignored.
    pub fn set_sibling(
        &mut self,
        db: usize,
        key: Key<'_>,
        value: Option<(&[u8], u64)>,
        context: &Seen,
        now: Now,
    ) -> Option<Written> {
        let keyed = self.replicated(key)?;
        if keyed.strings != Tag::Siblings {
            return None;
        }
        self.write_sibling((db, key), keyed, value, Some(context), now)
    }

    /// Without a context all that is shown is replaced.
    pub(super) fn write_sibling(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        value: Option<(&[u8], u64)>,
        context: Option<&Seen>,
        now: Now,
    ) -> Option<Written> {
        if self.is_plain(db, key, now) {
            self.remove_strictly(db, key, now);
        }
        let nothing = Seen::default();
        let context = match context {
            Some(_) if planted::is(Planted::UnseenReplaced) => None,
            Some(_) if planted::is(Planted::SeenNotReplaced) => Some(&nothing),
            context => context,
        };
        let stamp = self.rise_above(db, key, now, |view| siblings::seen(view).newest())?;
        let keying = self.env.keying.clone();
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
        let done = self.write_replica(db, key, (keyed, Tag::Siblings), now, encode);
        let (removed, after, mut seen) = done??;
        let is_real = |stamp: Stamp| stamp != Stamp::ZERO && stamp.replica != ON_COPIES;
        if !is_real(stamp) && context.is_some_and(|context| is_real(context.own)) {
            // A write on copies may never be made on data, so it replaces no real write.
            seen.own = Stamp::ZERO;
        }
        self.env.counters.concurrent_writes += u64::from(after > 1);
        self.note_seen(db, key, &seen);
        Some(Written { removed, seen })
    }

    /// The stamp of the command's next write: above the key's newest stamp, which may come from another clock.
    fn rise_above(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        newest: impl FnOnce(siblings::View<'_>) -> Stamp,
    ) -> Option<Stamp> {
        let newest = self.view_siblings(db, key, now, newest);
        let newest = newest.unwrap_or_default();
        let writer = &mut self.env.writing.as_mut()?.writer;
        if writer.stamp.time <= newest.time && writer.stamp <= newest {
            writer.stamp.time = newest.time.saturating_add(1);
            writer.stamp.step = 0;
        }
        Some(writer.stamp)
    }

    /// Deletes what the client has seen. If the client has seen nothing of the key, deletes the current values, as if
    /// the client had just read them. Returns whether anything was deleted.
    pub(super) fn delete_siblings(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        now: Now,
    ) -> bool {
        let mut context = self.context_of(db, key).filter(|seen| !seen.is_empty());
        if context.is_none() && self.env.session.is_some() {
            context = Some(self.see_siblings(db, key, now).seen().clone().into());
        }
        let done = self.write_sibling((db, key), keyed, None, context.as_ref(), now);
        done.is_some_and(|written| written.removed)
    }

    /// Sets a deadline on the values that the client has seen, chosen as in a deletion, without making a write; 0
    /// removes the deadline of all shown values. Returns whether there were such values.
    pub(super) fn time_siblings(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        deadline: u64,
        now: Now,
    ) -> bool {
        let newest = |view: siblings::View<'_>| siblings::values(view).newest();
        if self.is_undecided() || self.rise_above(db, key, now, newest).is_none() {
            return false;
        }
        let context = self.context_of(db, key).filter(|seen| !seen.is_empty());
        let context = context.filter(|_| deadline > 0);
        let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
            let view = Siblings::view(Siblings::of(object)?);
            let any = siblings::set_deadline(view, deadline, context.as_ref(), writer, ops);
            Some(any)
        };
        let done = self.write_replica(db, key, (keyed, Tag::Siblings), now, encode);
        done.flatten().unwrap_or(false)
    }

    /// Adds to the shown value.
    pub(super) fn increment_sibling(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        by: i64,
        now: Now,
    ) -> Result<i64, ValueError> {
        self.note_read(db, key, now);
        let seen = |view: siblings::View<'_>| siblings::seen(view).newest();
        if self.is_undecided() || self.rise_above(db, key, now, seen).is_none() {
            return Ok(0);
        }
        if self.is_plain(db, key, now) {
            let old = self.peek(db, key, now).ok().flatten();
            let old = old.map(|value| value.bytes().to_vec());
            let old = old.as_deref().map(|old| (old, 0));
            self.write_sibling((db, key), keyed, old, None, now);
        }
        let pick = self.env.pick(key);
        let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
            let state = Siblings::of(object)?;
            let sum = siblings::increment(Siblings::view(state), pick, by, writer, ops);
            Some(sum)
        };
        let done = self.write_replica(db, key, (keyed, Tag::Siblings), now, encode);
        self.note_read(db, key, now);
        done.flatten().unwrap_or(Ok(0))
    }

    /// The state of a string with causal order, even of one that shows nothing.
    fn view_siblings<R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        f: impl FnOnce(siblings::View<'_>) -> R,
    ) -> Option<R> {
        let found = self.dbs[db].live(key, now, &mut self.env);
        let at = &self.dbs[db];
        match found.map(|found| at.value(found.handle)) {
            Some(Any::Packed(Tag::Siblings, bytes)) => Some(f(bytes)),
            Some(Any::Object(object)) => Some(f(Siblings::view(Siblings::of(object)?))),
            Some(_) => None,
            None => {
                let grave = at.graves.get(key.bytes)?;
                Some(f(Siblings::view(Siblings::of(&grave)?)))
            }
        }
    }

    /// All concurrent values and their context, for the running command's client, which has seen them from now on.
    pub fn see_siblings(&mut self, db: usize, key: Key<'_>, now: Now) -> Values {
        let values = self.view_siblings(db, key, now, siblings::values);
        let values = values.unwrap_or_default();
        self.note_seen(db, key, &values.seen().clone().into());
        values
    }
}
