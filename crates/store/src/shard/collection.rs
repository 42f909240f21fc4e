//! Changes of values other than strings: by operations of their type, which the journal records.

use super::db::{Db, Found, Outside, number, packed};
use super::record::{self, Head, OBJECT, PACKED};
use super::types::{Key, WrongType, fits_packed, inside};
use super::{Env, Shard, classes, writes};
use crate::effect::{Effect, NotAnEffect};
use crate::marks::{self, Mark};
use crate::planted::{self, Planted};
use rufous_base::Now;
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

impl Shard {
    /// Lets `change` apply operations to the value of a key, or to an empty value if the key is missing. A value
    /// without elements afterwards is not kept.
    #[inline]
    pub fn update<T: Registered, R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
    ) -> Result<R, WrongType> {
        if self.env.observers.any()
            && let Some(keyed) = self.env.lattice.replicated(key)
        {
            return writes::update(&mut self.at(db, key, now), keyed, change);
        }
        let found = self.dbs[db].live(key, now, &mut self.env);
        let mut in_record = false;
        if let Some(found) = found {
            let at = &self.dbs[db];
            let (tag, packed) = at.shape_of(found.handle);
            if tag != Some(T::TAG) {
                return Err(WrongType);
            }
            in_record = packed;
            if self.env.observers.any() {
                self.dbs[db].capture(found.handle, &mut self.env.snapshot);
            }
        }
        let mut ops = std::mem::take(&mut self.env.ops);
        ops.clear();
        let wanted = self.env.observers.any().then_some(&mut ops);
        let at = &mut self.dbs[db];
        let (changes, result) = match found {
            None => at.build::<T, R>(key, now, wanted, change, &mut self.env),
            Some(found) if in_record => {
                at.repack::<T, R>(found, key, now, wanted, change, &mut self.env)
            }
            Some(found) => at.revise::<T, R>(found, key, now, wanted, change, &mut self.env)?,
        };
        self.env.counters.changes += changes;
        if changes > 0 && self.env.observers.any() {
            let effect = Effect::Update {
                db: db as u8,
                key: key.bytes,
                tag: T::TAG,
                ops: &ops,
            };
            self.env.observers.tell(key, db as u8, &effect);
        }
        self.env.ops = ops;
        Ok(result)
    }

    /// Commits encoded operations to the value of a key.
    pub(super) fn commit_encoded(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        ops: &[u8],
        now: Now,
    ) -> Result<(), NotAnEffect> {
        let change = |object: &mut Object, tuning: &Tuning| object.commit_encoded(ops, tuning);
        self.alter(db, key, tag, now, change)
    }

    /// Adds the elements of a chunk to the value of a key.
    pub(super) fn extend(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        chunk: &[u8],
        now: Now,
    ) -> Result<(), NotAnEffect> {
        let change = |object: &mut Object, tuning: &Tuning| object.extend(chunk, tuning);
        self.alter(db, key, tag, now, change)
    }

    fn alter<E>(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        now: Now,
        change: impl FnOnce(&mut Object, &Tuning) -> Result<(), E>,
    ) -> Result<(), NotAnEffect> {
        let found = self.dbs[db].live(key, now, &mut self.env);
        let at = &mut self.dbs[db];
        let Some(found) = found else {
            let mut object = tag.empty();
            change(&mut object, &self.env.tuning).map_err(|_| NotAnEffect)?;
            if !object.is_empty() {
                at.create_object(key, object, now, &self.env);
            }
            return Ok(());
        };
        let (its_tag, is_packed) = at.shape_of(found.handle);
        if its_tag != Some(tag) {
            return Err(NotAnEffect);
        }
        if is_packed {
            let slot = at.arena.get(found.handle);
            let (_, bytes) = packed(Head::of(slot).value_part(slot));
            let mut buffer = std::mem::take(&mut self.env.packed);
            buffer.clear();
            buffer.extend_from_slice(bytes);
            let mut object = tag.unpack(buffer);
            change(&mut object, &self.env.tuning).map_err(|_| NotAnEffect)?;
            at.put_back(found, key, object, &mut self.env);
            return Ok(());
        }
        let (number, object) = at.object_mut(found.handle);
        let before = object.heap_bytes();
        let result = change(object, &self.env.tuning).map_err(|_| NotAnEffect);
        let (after, is_empty) = (object.heap_bytes(), object.is_empty());
        at.settle(
            (found, number),
            key.hash,
            (before, after),
            is_empty,
            &mut self.env,
        );
        result
    }
}

impl Db {
    /// A value's type, unless it is a string, and whether it is packed.
    #[inline]
    pub(super) fn shape_of(&self, handle: u32) -> (Option<Tag>, bool) {
        let slot = self.arena.get(handle);
        let head = Head::of(slot);
        match head.kind() {
            PACKED => (Some(packed(head.value_part(slot)).0), true),
            OBJECT => {
                let object = self.objects.get(number(head.value_part(slot)));
                (Some(object.tag()), false)
            }
            _ => (None, false),
        }
    }

    /// A missing key.
    fn build<T: Registered, R>(
        &mut self,
        key: Key<'_>,
        now: Now,
        ops: Option<&mut Vec<u8>>,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
        env: &mut Env,
    ) -> (u64, R) {
        let mut state = T::empty();
        let mut editor = Editor::of(Place::State(&mut state), &env.tuning, ops);
        let result = change(&mut editor);
        let changes = editor.changes;
        if !T::is_empty(T::view(&state)) {
            self.create_object(key, T::wrap(state), now, env);
        }
        (changes, result)
    }

    /// A packed value: changed in its record if its type supports that and there is room, and otherwise in a copy.
    #[inline]
    fn repack<T: Registered, R>(
        &mut self,
        found: Found,
        key: Key<'_>,
        now: Now,
        ops: Option<&mut Vec<u8>>,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
        env: &mut Env,
    ) -> (u64, R) {
        let slot = self.arena.get_mut(found.handle);
        record::put_stamp(slot, env.next_stamp(record::stamp(slot), now));
        let head = Head::of(slot);
        let start = head.value_at() + 1;
        let end = head.room_end(slot);
        let place = Place::Record {
            room: &mut slot[start..end],
            len: head.value_len() - 1,
            buffer: &mut env.packed,
        };
        let mut editor = Editor::of(place, &env.tuning, ops);
        let result = change(&mut editor);
        let changes = editor.changes;
        match editor.value {
            Place::Record { .. } if changes == 0 => {}
            Place::Record { len, .. } => self.settle_packed::<T>((found, head), key, len, env),
            Place::Copy(state) => {
                if changes > 0 && T::is_empty(T::view(&state)) {
                    self.remove(found, key.hash, env);
                } else if changes > 0 {
                    match T::packed(&state).filter(|bytes| fits_packed(bytes)) {
                        Some(bytes) => self.replace_packed(found, key, T::TAG, bytes),
                        None => {
                            marks::hit(Mark::Grew);
                            if !planted::is(Planted::GrowthLosesChange) {
                                self.replace_object(found, key, T::wrap(state), env);
                            }
                            return (changes, result);
                        }
                    }
                }
                if let Some(buffer) = T::into_buffer(state) {
                    env.packed = buffer;
                }
            }
            // invariant: no caller makes this of the other variants
            Place::State(_) | Place::Replica { .. } => unreachable!("neither is in a record"),
        }
        (changes, result)
    }

    /// Completes a change of a packed value in its record, where it now has `len` bytes.
    #[inline]
    fn settle_packed<T: Registered>(
        &mut self,
        (found, head): (Found, Head),
        key: Key<'_>,
        len: usize,
        env: &mut Env,
    ) {
        let slot = self.arena.get_mut(found.handle);
        let start = head.value_at() + 1;
        let bytes = &slot[start..start + len];
        if T::is_empty(T::packed_view(bytes)) {
            return self.remove(found, key.hash, env);
        }
        let size = head.size_with(len + 1);
        if head.stays_with(len + 1) && classes::suits(slot.len(), size, T::KEEPS_ROOM) {
            return head.put_value_len(slot, len + 1);
        }
        let mut buffer = std::mem::take(&mut env.packed);
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.replace_packed(found, key, T::TAG, &buffer);
        env.packed = buffer;
    }

    /// An object: changed in place.
    fn revise<T: Registered, R>(
        &mut self,
        found: Found,
        key: Key<'_>,
        now: Now,
        ops: Option<&mut Vec<u8>>,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
        env: &mut Env,
    ) -> Result<(u64, R), WrongType> {
        self.touch(found.handle, now, env);
        let (number, object) = self.object_mut(found.handle);
        let state = T::of_mut(object).ok_or(WrongType)?;
        let before = T::heap_bytes(state);
        let mut editor = Editor::of(Place::State(&mut *state), &env.tuning, ops);
        let result = change(&mut editor);
        let changes = editor.changes;
        let after = T::heap_bytes(state);
        let is_empty = T::is_empty(T::view(state));
        if changes > 0
            && let Some(waste) = T::take_waste(state)
        {
            env.garbage.throw(Outside::Object(T::wrap(waste)));
        }
        self.settle((found, number), key.hash, (before, after), is_empty, env);
        Ok((changes, result))
    }

    pub(super) fn object_mut(&mut self, handle: u32) -> (u32, &mut Object) {
        let slot = self.arena.get(handle);
        let number = number(Head::of(slot).value_part(slot));
        (number, self.objects.get_mut(number))
    }

    /// Updates the account of an object that was changed in place, and removes it if it is empty.
    fn settle(
        &mut self,
        (found, number): (Found, u32),
        hash: u32,
        (before, after): (usize, usize),
        is_empty: bool,
        env: &mut Env,
    ) {
        self.outside = self.outside + after - before;
        debug_assert_eq!(self.objects.get(number).heap_bytes(), after);
        self.note_unswept(number);
        if is_empty {
            self.remove(found, hash, env);
        }
    }

    /// Stores the changed value of a packed record.
    fn put_back(&mut self, found: Found, key: Key<'_>, object: Object, env: &mut Env) {
        if object.is_empty() {
            return self.remove(found, key.hash, env);
        }
        match object.packed().filter(|bytes| fits_packed(bytes)) {
            Some(bytes) => self.replace_packed(found, key, object.tag(), bytes),
            None => return self.replace_object(found, key, object, env),
        }
        if let Some(buffer) = object.into_buffer() {
            env.packed = buffer;
        }
    }
}
