//! Changes of values that are no strings: by operations of their type, which
//! are what the journal is told.

use super::db::{Db, Found, Outside, number, packed};
use super::record::{Head, OBJECT, PACKED};
use super::types::{Key, WrongType, fits_packed, inside};
use super::{Env, Shard};
use crate::durable::effect::{Effect, NotAnEffect};
use crate::marks::{self, Mark};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::{self, Refused, Writer};

/// A value being changed.
pub struct Editor<'a, T: Registered> {
    target: Target<'a, T>,
    tuning: &'a Tuning,
    /// Encoded operations; `None` where nobody is to be told.
    ops: Option<&'a mut Vec<u8>>,
    changes: u64,
}

/// What is changed by operations of `T`.
enum Target<'a, T: Registered> {
    Plain(&'a mut T::State),
    /// A value of the type that replicates `T`.
    Replica {
        object: &'a mut Object,
        writer: &'a mut Writer,
        refused: &'a mut Option<Refused>,
    },
}

impl<'a, T: Registered> Editor<'a, T> {
    fn of_state(state: &'a mut T::State, tuning: &'a Tuning, ops: Option<&'a mut Vec<u8>>) -> Self {
        Self {
            target: Target::Plain(state),
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
            target: Target::Replica {
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
        let Target::Plain(state) = &mut self.target else {
            return self.apply_to_replica(op);
        };
        if planted::is(Planted::ForgottenCommit) && planted::now_and_then() {
            return T::execute(T::view(state), op);
        }
        let applied = T::apply(state, op, self.tuning);
        if applied.changed {
            self.changes += 1;
            if let Some(ops) = &mut self.ops {
                T::encode(op, ops);
            }
        }
        applied.reply
    }

    /// Does an operation that is known to change the value, and whose reply
    /// nobody needs.
    #[inline]
    pub fn commit(&mut self, op: &T::Op<'_>) {
        let Target::Plain(state) = &mut self.target else {
            self.apply_to_replica(op);
            return;
        };
        T::commit(state, op, self.tuning);
        self.changes += 1;
        if let Some(ops) = &mut self.ops {
            T::encode(op, ops);
        }
    }

    /// The value as the operations so far have left it.
    #[inline]
    pub fn view(&self) -> T::View<'_> {
        match &self.target {
            Target::Plain(state) => T::view(state),
            Target::Replica { object, .. } => inside::<T>(object)
                // invariant: an editor of a replica is made for the type inside
                .expect("a replica has the plain value inside"),
        }
    }

    /// What is refused answers as if it were done, and changes nothing: the
    /// command's reply is the refusal.
    #[inline(never)]
    fn apply_to_replica(&mut self, op: &T::Op<'_>) -> T::Reply {
        if let (
            Target::Replica {
                object,
                writer,
                refused,
            },
            Some(ops),
        ) = (&mut self.target, &mut self.ops)
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

    /// Whether anything has changed.
    pub fn is_changed(&self) -> bool {
        self.changes > 0
    }
}

impl Shard {
    /// Lets `change` apply operations to the value of a key; where the key is
    /// not there, to an empty one. A value that has no elements afterwards is
    /// not kept.
    #[inline]
    pub fn update<T: Registered, R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
    ) -> Result<R, WrongType> {
        if self.env.observed
            && let Some(keyed) = self.replicated(key)
        {
            return self.update_replica(db, key, keyed, now, change);
        }
        let found = self.dbs[db].live(key, now, &mut self.env);
        if let Some(found) = found {
            let at = &self.dbs[db];
            if at.tag_of(found.handle) != Some(T::TAG) {
                return Err(WrongType);
            }
            if self.env.observed {
                self.dbs[db].capture(found.handle, &mut self.env.snapshot);
            }
        }
        let mut ops = std::mem::take(&mut self.env.ops);
        let wanted = self.env.observed.then_some(&mut ops);
        let at = &mut self.dbs[db];
        let (changes, result) = match found {
            None => at.build::<T, R>(key, now, wanted, change, &mut self.env),
            Some(found) if at.is_packed(found.handle) => {
                at.repack::<T, R>(found, key, now, wanted, change, &mut self.env)
            }
            Some(found) => at.revise::<T, R>(found, key, now, wanted, change, &mut self.env)?,
        };
        self.env.counters.changes += changes;
        if changes > 0 && self.env.observed {
            let effect = Effect::Update {
                db: db as u8,
                key: key.bytes,
                tag: T::TAG,
                ops: &ops,
            };
            self.env.tell(key, db as u8, &effect);
        }
        ops.clear();
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
        if at.tag_of(found.handle) != Some(tag) {
            return Err(NotAnEffect);
        }
        if at.is_packed(found.handle) {
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
    pub(super) fn tag_of(&self, handle: u32) -> Option<Tag> {
        let slot = self.arena.get(handle);
        let head = Head::of(slot);
        match head.kind() {
            PACKED => Some(packed(head.value_part(slot)).0),
            OBJECT => Some(self.objects.get(number(head.value_part(slot))).tag()),
            _ => None,
        }
    }

    pub(super) fn is_packed(&self, handle: u32) -> bool {
        Head::of(self.arena.get(handle)).kind() == PACKED
    }

    /// A key that is not there yet.
    fn build<T: Registered, R>(
        &mut self,
        key: Key<'_>,
        now: Now,
        ops: Option<&mut Vec<u8>>,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
        env: &mut Env,
    ) -> (u64, R) {
        let mut state = T::empty();
        let mut editor = Editor::of_state(&mut state, &env.tuning, ops);
        let result = change(&mut editor);
        let changes = editor.changes;
        if !T::is_empty(T::view(&state)) {
            self.create_object(key, T::wrap(state), now, env);
        }
        (changes, result)
    }

    /// A packed value: changed outside of its record.
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
        self.touch(found.handle, now, env);
        let slot = self.arena.get(found.handle);
        let (_, bytes) = packed(Head::of(slot).value_part(slot));
        let mut buffer = std::mem::take(&mut env.packed);
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let mut state = T::from_packed(buffer);
        let mut editor = Editor::of_state(&mut state, &env.tuning, ops);
        let result = change(&mut editor);
        let changes = editor.changes;
        if changes > 0 {
            if T::is_empty(T::view(&state)) {
                self.remove(found, key.hash, env);
            } else {
                match T::packed(&state).filter(|bytes| fits_packed(bytes)) {
                    Some(bytes) => self.replace_packed(found, key, T::TAG as u8, bytes),
                    None => {
                        marks::hit(Mark::Grew);
                        if !planted::is(Planted::GrowthLosesChange) {
                            self.replace_object(found, key, T::wrap(state), env);
                        }
                        return (changes, result);
                    }
                }
            }
        }
        if let Some(buffer) = T::into_buffer(state) {
            env.packed = buffer;
        }
        (changes, result)
    }

    /// An object: changed where it is.
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
        let mut editor = Editor::of_state(state, &env.tuning, ops);
        let result = change(&mut editor);
        let changes = editor.changes;
        let after = T::heap_bytes(state);
        let is_empty = T::is_empty(T::view(state));
        if changes > 0
            && let Some(waste) = T::take_waste(state)
        {
            env.throw(Outside::Object(T::wrap(waste)));
        }
        self.settle((found, number), key.hash, (before, after), is_empty, env);
        Ok((changes, result))
    }

    pub(super) fn object_mut(&mut self, handle: u32) -> (u32, &mut Object) {
        let slot = self.arena.get(handle);
        let number = number(Head::of(slot).value_part(slot));
        (number, self.objects.get_mut(number))
    }

    /// Keeps account of an object that was changed where it is, and removes it
    /// where nothing is left of it.
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

    /// The record of a packed value gets what became of it.
    fn put_back(&mut self, found: Found, key: Key<'_>, object: Object, env: &mut Env) {
        if object.is_empty() {
            return self.remove(found, key.hash, env);
        }
        match object.packed().filter(|bytes| fits_packed(bytes)) {
            Some(bytes) => self.replace_packed(found, key, object.tag() as u8, bytes),
            None => return self.replace_object(found, key, object, env),
        }
        if let Some(buffer) = object.into_buffer() {
            env.packed = buffer;
        }
    }
}
