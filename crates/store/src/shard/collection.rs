//! Changes of values other than strings: by operations of their type, which the journal records.

use super::at::At;
use super::beside::Outside;
use super::classes;
use super::record::{self, Head};
use super::records::Found;
use super::types::{WrongType, fits_packed, inside};
use crate::effect::{Effect, NotAnEffect};
use crate::marks::{self, Mark};
use crate::planted::{self, Planted};
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::{self, Refused, Writer};

/// A value being changed.
pub struct Editor<'a, T: Registered> {
    value: Place<'a, T>,
    tuning: &'a Tuning,
    /// Encoded operations; `None` if changes have no observer.
    ops: Option<&'a mut Vec<u8>>,
    changes: u64,
}

/// The location of the value while it is being changed.
enum Place<'a, T: Registered> {
    /// The first `len` bytes of the room in its record. The record's head does not have this length yet.
    Record {
        room: &'a mut [u8],
        len: usize,
        /// The buffer for a copy of the bytes, if they cannot be changed in place.
        buffer: &'a mut Vec<u8>,
    },
    /// A copy of the record's value.
    Copy(T::State),
    State(&'a mut T::State),
    /// A value of the type that replicates `T`.
    Replica {
        object: &'a mut Object,
        writer: &'a mut Writer,
        refused: &'a mut Option<Refused>,
    },
}

impl<'a, T: Registered> Place<'a, T> {
    /// The value as a state, copied out of its record if it is still there.
    #[inline]
    fn state(&mut self) -> &mut T::State {
        if let Place::Record { room, len, buffer } = self {
            let mut bytes = std::mem::take(*buffer);
            bytes.clear();
            bytes.extend_from_slice(&room[..*len]);
            *self = Place::Copy(T::from_packed(bytes));
        }
        match self {
            Place::Copy(state) => state,
            Place::State(state) => state,
            // invariant: it has just been copied, and replicas are changed by `apply_to_replica`
            Place::Record { .. } | Place::Replica { .. } => unreachable!("no state of its own"),
        }
    }
}

impl<'a, T: Registered> Editor<'a, T> {
    fn of(value: Place<'a, T>, tuning: &'a Tuning, ops: Option<&'a mut Vec<u8>>) -> Self {
        Self {
            value,
            tuning,
            ops,
            changes: 0,
        }
    }

    pub(super) fn of_replica(
        object: &'a mut Object,
        writer: &'a mut Writer,
        refused: &'a mut Option<Refused>,
        tuning: &'a Tuning,
        ops: &'a mut Vec<u8>,
    ) -> Self {
        Self {
            value: Place::Replica {
                object,
                writer,
                refused,
            },
            tuning,
            ops: Some(ops),
            changes: 0,
        }
    }
}

impl<T: Registered> Editor<'_, T> {
    #[inline]
    pub fn apply(&mut self, op: &T::Op<'_>) -> T::Reply {
        if let Place::Replica { .. } = self.value {
            return self.apply_to_replica(op);
        }
        if planted::is(Planted::ForgottenCommit) && planted::now_and_then() {
            return T::execute(self.view(), op);
        }
        let applied = T::apply(self.value.state(), op, self.tuning);
        if applied.changed {
            self.note(op);
        }
        applied.reply
    }

    /// Applies an operation that is known to change the value, and whose reply is not wanted.
    #[inline]
    pub fn commit(&mut self, op: &T::Op<'_>) {
        if let Place::Replica { .. } = self.value {
            self.apply_to_replica(op);
            return;
        }
        self.note(op);
        if let Place::Record { room, len, .. } = &mut self.value
            && let Some(new) = T::commit_packed(room, *len, op, self.tuning)
        {
            *len = new;
            return;
        }
        T::commit(self.value.state(), op, self.tuning);
    }

    #[inline]
    fn note(&mut self, op: &T::Op<'_>) {
        self.changes += 1;
        if let Some(ops) = &mut self.ops {
            T::encode(op, ops);
        }
    }

    /// The value after the operations so far.
    #[inline]
    pub fn view(&self) -> T::View<'_> {
        match &self.value {
            Place::Record { room, len, .. } => T::packed_view(&room[..*len]),
            Place::Copy(state) => T::view(state),
            Place::State(state) => T::view(state),
            Place::Replica { object, .. } => inside::<T>(object)
                // invariant: an editor of a replica is made for the type inside
                .expect("a replica has the plain value inside"),
        }
    }

    /// A refused operation returns a reply as if it had been applied, but changes nothing: the command's reply will
    /// be the refusal.
    #[inline(never)]
    fn apply_to_replica(&mut self, op: &T::Op<'_>) -> T::Reply {
        if let (
            Place::Replica {
                object,
                writer,
                refused,
            },
            Some(ops),
        ) = (&mut self.value, &mut self.ops)
        {
            let before = ops.len();
            match replicated::apply::<T>(object, op, writer, self.tuning, ops) {
                Ok(reply) => {
                    self.changes += u64::from(ops.len() > before);
                    return reply;
                }
                Err(why) => {
                    refused.get_or_insert(why);
                }
            }
        }
        T::execute(self.view(), op)
    }
}

/// Lets `change` apply operations to the value of a key that is not replicated, or to an empty value if the key is
/// missing. A value without elements afterwards is not kept.
#[inline]
pub(super) fn update<T: Registered, R>(
    at: &mut At<'_>,
    change: impl FnOnce(&mut Editor<'_, T>) -> R,
) -> Result<R, WrongType> {
    let found = at.live();
    let mut in_record = false;
    if let Some(found) = found {
        let (tag, packed) = at.db.records.shape(found.handle);
        if tag != Some(T::TAG) {
            return Err(WrongType);
        }
        in_record = packed;
        if at.env.observers.any() {
            at.env.snapshot.capture(at.db, found.handle);
        }
    }
    let mut ops = std::mem::take(&mut at.env.ops);
    ops.clear();
    let wanted = at.env.observers.any().then_some(&mut ops);
    let (changes, result) = match found {
        None => build::<T, R>(at, wanted, change),
        Some(found) if in_record => repack::<T, R>(at, found, wanted, change),
        Some(found) => revise::<T, R>(at, found, wanted, change)?,
    };
    at.env.counters.changes += changes;
    if changes > 0 && at.env.observers.any() {
        let db = at.db.number;
        let effect = Effect::Update {
            db,
            key: at.key.bytes,
            tag: T::TAG,
            ops: &ops,
        };
        at.env.observers.tell(at.key, db, &effect);
    }
    at.env.ops = ops;
    Ok(result)
}

/// Commits encoded operations to the value of a key.
pub(super) fn commit_ops(at: &mut At<'_>, tag: Tag, ops: &[u8]) -> Result<(), NotAnEffect> {
    alter(at, tag, |object, tuning| object.commit_encoded(ops, tuning))
}

/// Adds the elements of a chunk to the value of a key.
pub(super) fn extend(at: &mut At<'_>, tag: Tag, chunk: &[u8]) -> Result<(), NotAnEffect> {
    alter(at, tag, |object, tuning| object.extend(chunk, tuning))
}

fn alter<E>(
    at: &mut At<'_>,
    tag: Tag,
    change: impl FnOnce(&mut Object, &Tuning) -> Result<(), E>,
) -> Result<(), NotAnEffect> {
    let Some(found) = at.live() else {
        let mut object = tag.empty();
        change(&mut object, &at.env.tuning).map_err(|_| NotAnEffect)?;
        if !object.is_empty() {
            at.db.create_object(at.key, object, at.now, at.env);
        }
        return Ok(());
    };
    let (its_tag, is_packed) = at.db.records.shape(found.handle);
    if its_tag != Some(tag) {
        return Err(NotAnEffect);
    }
    if is_packed {
        let mut object = at.db.records.unpacked(found.handle, &mut at.env.packed);
        change(&mut object, &at.env.tuning).map_err(|_| NotAnEffect)?;
        put_back(at, found, object);
        return Ok(());
    }
    let number = at.db.records.object_number(found.handle);
    let tuning = &at.env.tuning;
    let changed = |object: &mut Object| (change(object, tuning), object.is_empty());
    let (result, is_empty) = at.db.records.beside.change_object(number, changed);
    settle(at, (found, number), is_empty);
    result.map_err(|_| NotAnEffect)
}

/// A missing key.
fn build<T: Registered, R>(
    at: &mut At<'_>,
    ops: Option<&mut Vec<u8>>,
    change: impl FnOnce(&mut Editor<'_, T>) -> R,
) -> (u64, R) {
    let mut state = T::empty();
    let mut editor = Editor::of(Place::State(&mut state), &at.env.tuning, ops);
    let result = change(&mut editor);
    let changes = editor.changes;
    if !T::is_empty(T::view(&state)) {
        let object = T::wrap(state);
        at.db.create_object(at.key, object, at.now, at.env);
    }
    (changes, result)
}

/// A packed value: changed in its record if its type supports that and there is room, and otherwise in a copy.
#[inline]
fn repack<T: Registered, R>(
    at: &mut At<'_>,
    found: Found,
    ops: Option<&mut Vec<u8>>,
    change: impl FnOnce(&mut Editor<'_, T>) -> R,
) -> (u64, R) {
    let slot = at.db.records.slot_mut(found.handle);
    record::put_stamp(slot, at.env.next_stamp(record::stamp(slot), at.now));
    let head = Head::of(slot);
    let start = head.value_at() + 1;
    let end = head.room_end(slot);
    let place = Place::Record {
        room: &mut slot[start..end],
        len: head.value_len() - 1,
        buffer: &mut at.env.packed,
    };
    let mut editor = Editor::of(place, &at.env.tuning, ops);
    let result = change(&mut editor);
    let changes = editor.changes;
    match editor.value {
        Place::Record { .. } if changes == 0 => {}
        Place::Record { len, .. } => settle_packed::<T>(at, (found, head), len),
        Place::Copy(state) => {
            if changes > 0 && T::is_empty(T::view(&state)) {
                remove(at, found);
            } else if changes > 0 {
                match T::packed(&state).filter(|bytes| fits_packed(bytes)) {
                    Some(bytes) => at.db.records.replace_packed(found, at.key, T::TAG, bytes),
                    None => {
                        marks::hit(Mark::Grew);
                        if !planted::is(Planted::GrowthLosesChange) {
                            let object = T::wrap(state);
                            at.db.replace_object(found, at.key, object, at.env);
                        }
                        return (changes, result);
                    }
                }
            }
            if let Some(buffer) = T::into_buffer(state) {
                at.env.packed = buffer;
            }
        }
        // invariant: no caller makes this of the other variants
        Place::State(_) | Place::Replica { .. } => unreachable!("neither is in a record"),
    }
    (changes, result)
}

/// Completes a change of a packed value in its record, where it now has `len` bytes.
#[inline]
fn settle_packed<T: Registered>(at: &mut At<'_>, (found, head): (Found, Head), len: usize) {
    let slot = at.db.records.slot_mut(found.handle);
    let start = head.value_at() + 1;
    let bytes = &slot[start..start + len];
    if T::is_empty(T::packed_view(bytes)) {
        return remove(at, found);
    }
    let size = head.size_with(len + 1);
    if head.stays_with(len + 1) && classes::suits(slot.len(), size, T::KEEPS_ROOM) {
        return head.put_value_len(slot, len + 1);
    }
    let mut buffer = std::mem::take(&mut at.env.packed);
    buffer.clear();
    buffer.extend_from_slice(bytes);
    at.db.records.replace_packed(found, at.key, T::TAG, &buffer);
    at.env.packed = buffer;
}

/// An object: changed in place.
fn revise<T: Registered, R>(
    at: &mut At<'_>,
    found: Found,
    ops: Option<&mut Vec<u8>>,
    change: impl FnOnce(&mut Editor<'_, T>) -> R,
) -> Result<(u64, R), WrongType> {
    at.db.touch(found.handle, at.now, at.env);
    let number = at.db.records.object_number(found.handle);
    let (tuning, garbage) = (&at.env.tuning, &mut at.env.garbage);
    let revised = |object: &mut Object| {
        let state = T::of_mut(object).ok_or(WrongType)?;
        let mut editor = Editor::of(Place::State(&mut *state), tuning, ops);
        let result = change(&mut editor);
        let changes = editor.changes;
        let is_empty = T::is_empty(T::view(state));
        if changes > 0
            && let Some(waste) = T::take_waste(state)
        {
            garbage.throw(Outside::Object(T::wrap(waste)));
        }
        Ok((changes, result, is_empty))
    };
    let revised = at.db.records.beside.change_object(number, revised);
    let (changes, result, is_empty) = revised?;
    settle(at, (found, number), is_empty);
    Ok((changes, result))
}

fn remove(at: &mut At<'_>, found: Found) {
    at.db.remove(found, at.key.hash, &mut at.env.garbage);
}

/// Completes a change of an object in place, which is removed if it is empty.
fn settle(at: &mut At<'_>, (found, number): (Found, u32), is_empty: bool) {
    at.db.records.beside.note_unswept(number);
    if is_empty {
        remove(at, found);
    }
}

/// Stores the changed value of a packed record.
fn put_back(at: &mut At<'_>, found: Found, object: Object) {
    if object.is_empty() {
        return remove(at, found);
    }
    match object.packed().filter(|bytes| fits_packed(bytes)) {
        Some(bytes) => {
            let tag = object.tag();
            at.db.records.replace_packed(found, at.key, tag, bytes);
        }
        None => return at.db.replace_object(found, at.key, object, at.env),
    }
    if let Some(buffer) = object.into_buffer() {
        at.env.packed = buffer;
    }
}
