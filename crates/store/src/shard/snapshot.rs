//! All data as of an instant, the cut, written out in small steps while
//! commands go on.
//!
//! Every record has a bit, its parity, which the cut reverses for the whole
//! shard: a record with the parity of before is still to be written. A walk
//! writes such records and sets the bit; whoever is about to change or remove
//! one has it written first, so that it goes out as it was. New records get
//! the new parity, and are left alone. So nothing is kept for a key but the
//! bit, and each record of the cut is written exactly once.
//!
//! A database that is flushed before the walk is through with it is set aside,
//! and walked there; its number is the one it had at the cut.
//!
//! Where a snapshot is given up, the walk goes on without writing, until all
//! records have the same parity again.

use super::Shard;
use super::change::PUT_CHUNK;
use super::db::Db;
use super::gone::{is_over, leave_out};
use super::record::{self, PARITY};
use super::types::{Any, Value};
use crate::effect::Effect;
use crate::marks::{self, Mark};
use crate::planted::{self, Planted};
use rufous_base::Garbage;
use rufous_datatype::object::Object;
use rufous_lattice::Stamp;
use std::hint::black_box;

/// What looking at a record costs of a step's budget, apart from its bytes:
/// waiting for the memory takes about as long as copying so many.
const LOOK: usize = 64;
/// Likewise the index, for each batch of records.
const COLLECT: usize = 512;
const BATCH: usize = 64;
/// Bytes of a collection that are written with its key; the rest comes later.
const FIRST_CHUNK: usize = 16 << 10;
/// However little is left of a budget.
const LEAST_CHUNK: usize = 1 << 10;

#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Whether records of the cut must be written before they change.
    pub(super) capturing: bool,
    /// Records written because they were about to change.
    pending: Vec<u8>,
    /// Databases that were flushed.
    frozen: Vec<Db>,
    /// Of large collections, what is still to be written.
    rest: Vec<Rest>,
    written: u64,
    expected: u64,
}

/// A large collection as it was at the cut, and where to go on with it.
#[derive(Debug)]
struct Rest {
    db: u8,
    key: Box<[u8]>,
    object: Object,
    at: u64,
    /// What was written below has gone.
    gone: Stamp,
}

/// Chunks end with the element that makes them so long.
pub(super) fn note_length(chunk: &[u8]) {
    if chunk.len() >= PUT_CHUNK {
        marks::hit(Mark::FullChunk);
    }
}

impl Rest {
    /// Returns whether it is done.
    fn write_on(&mut self, budget: usize, out: &mut Vec<u8>) -> bool {
        let mut chunk = Vec::new();
        let next = self.object.chunk(self.at, budget, &mut chunk);
        marks::hit(Mark::SavedOn);
        note_length(&chunk);
        leave_out(self.object.tag(), self.gone, &mut chunk);
        if !planted::is(Planted::SnapshotLosesChunk) {
            Effect::More {
                db: self.db,
                key: &self.key,
                tag: self.object.tag(),
                chunk: &chunk,
            }
            .encode(out);
        }
        self.at = next.unwrap_or(self.at);
        next.is_none()
    }
}

/// Writes the first of a value of a type; what is large comes later.
fn put(
    (db, key): (u8, &[u8]),
    (value, gone): (Any<'_>, Stamp),
    expire_at: Option<u64>,
    out: &mut Vec<u8>,
    rest: &mut Vec<Rest>,
) {
    let Some(tag) = value.tag() else { return };
    let mut chunk = Vec::new();
    let next = value.chunk(0, FIRST_CHUNK, &mut chunk);
    leave_out(tag, gone, &mut chunk);
    Effect::Put {
        db,
        key,
        tag,
        chunk: &chunk,
        expire_at,
    }
    .encode(out);
    if let (Some(at), Any::Object(object)) = (next, value) {
        rest.push(Rest {
            db,
            key: key.into(),
            object: object.clone(),
            at,
            gone,
        });
    }
}

/// How far a snapshot is, in keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotProgress {
    pub written: u64,
    pub expected: u64,
}

/// Where a step's records go, and what is left of its budget.
struct Sink<'a> {
    /// `None` where nobody wants them.
    out: Option<&'a mut Vec<u8>>,
    /// Of collections, what is still to be written.
    rest: Vec<Rest>,
    entries: Vec<(u32, u32)>,
    left: usize,
    written: u64,
    /// Graves that no file needs.
    left_out: u64,
}

impl Sink<'_> {
    fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

impl Db {
    /// Before a record changes or goes: if it belongs to the cut, it is written.
    #[inline]
    pub(super) fn capture(&mut self, handle: u32, snapshot: &mut Snapshot) {
        if snapshot.capturing && record::parity(self.arena.get(handle)) != self.parity {
            if planted::is(Planted::SnapshotMissesWrite) {
                return record::put_parity(self.arena.get_mut(handle), self.parity);
            }
            self.write_out(handle, &mut snapshot.pending, &mut snapshot.rest);
            snapshot.written += 1;
        }
    }

    fn write_out(&mut self, handle: u32, out: &mut Vec<u8>, rest: &mut Vec<Rest>) {
        let (item, db) = (self.item(handle), self.cut);
        let expire_at = item.expire_at;
        let gone = item.value.gone(self.cut_horizon);
        match item.value.tag() {
            None => Effect::Set {
                db,
                key: item.key,
                value: item.value.string().map_or(b"", Value::bytes),
                expire_at,
            }
            .encode(out),
            Some(_) => put((db, item.key), (item.value, gone), expire_at, out, rest),
        }
        record::put_parity(self.arena.get_mut(handle), self.parity);
    }

    /// Likewise before a grave changes or goes.
    pub(super) fn capture_grave(&mut self, key: &[u8], snapshot: &mut Snapshot) {
        if !snapshot.capturing {
            return;
        }
        if self.graves.parity_of(key).is_some_and(|p| p != self.parity) {
            match self.write_grave(key, &mut snapshot.pending, &mut snapshot.rest) {
                true => snapshot.written += 1,
                false => snapshot.expected -= 1,
            }
        }
    }

    /// Says whether it is in the snapshot, whose end says how many keys it has.
    fn write_grave(&mut self, key: &[u8], out: &mut Vec<u8>, rest: &mut Vec<Rest>) -> bool {
        let grave = self.graves.get(key);
        // Another worker may have forgotten one that all had heard of, and have
        // the key as another type, which says nothing of that in its files.
        let grave = grave.filter(|object| !is_over(object, self.cut_horizon));
        if let Some(object) = &grave {
            let value = (Any::of_object(object), object.gone(self.cut_horizon));
            put((self.cut, key), value, None, out, rest);
        }
        self.graves.put_parity(key, self.parity);
        grave.is_some()
    }

    /// Whether a walk has still to come here.
    pub(super) fn is_walked(&self) -> bool {
        self.walk.is_some() || self.graves.walk.is_some()
    }

    fn walk_graves(&mut self, sink: &mut Sink<'_>) {
        let Some(from) = self.graves.walk.take() else {
            return;
        };
        let count = (sink.left / LOOK).clamp(1, BATCH);
        let (keys, next) = self.graves.keys_from(&from, count);
        sink.spend(COLLECT);
        self.graves.walk = next;
        let (mut done, mut left_out) = (0, 0);
        for key in keys {
            sink.spend(LOOK);
            if self.graves.parity_of(&key) == Some(self.parity) {
                continue;
            }
            // One at least, or there would be no end.
            if done > 0 && sink.left == 0 {
                self.graves.walk = Some(Box::from(&*key));
                break;
            }
            done += 1;
            match &mut sink.out {
                Some(out) => {
                    let before = out.len();
                    let is_written = self.write_grave(&key, out, &mut sink.rest);
                    left_out += u64::from(!is_written);
                    let bytes = out.len() - before;
                    sink.spend(bytes);
                }
                None => self.graves.put_parity(&key, self.parity),
            }
        }
        sink.written += done - left_out;
        sink.left_out += left_out;
    }

    /// Walks over the next few records. Where the budget ends it among them,
    /// it comes to all of them again: what is done has the new parity.
    fn walk_on(&mut self, sink: &mut Sink<'_>) {
        let Some(cursor) = self.walk else {
            return self.walk_graves(sink);
        };
        let count = (sink.left / LOOK).clamp(1, BATCH);
        let mut entries = std::mem::take(&mut sink.entries);
        let next = self.index.collect(cursor, count, &mut entries);
        sink.spend(COLLECT);
        let warm = entries.iter().map(|&(_, handle)| self.arena.warm(handle));
        black_box(warm.sum::<u64>());
        let mut written = 0;
        let mut done = true;
        for &(_, handle) in &entries {
            sink.spend(LOOK);
            if record::parity(self.arena.get(handle)) == self.parity {
                continue;
            }
            // One at least, or there would be no end.
            if written > 0 && sink.left == 0 {
                done = false;
                break;
            }
            written += 1;
            match &mut sink.out {
                Some(out) => {
                    let before = out.len();
                    self.write_out(handle, out, &mut sink.rest);
                    let bytes = out.len() - before;
                    sink.spend(bytes);
                }
                None => record::put_parity(self.arena.get_mut(handle), self.parity),
            }
        }
        if done {
            self.walk = next;
        }
        sink.written += written;
        sink.entries = entries;
    }
}

impl Shard {
    /// Makes this instant the cut. Whatever snapshot was under way is given up,
    /// and what is left of its walk is done here: ask
    /// [`Shard::is_unwinding`] before, where that may take too long.
    pub fn begin_snapshot(&mut self) {
        self.abort_snapshot();
        while self.snapshot_step(usize::MAX, &mut Vec::new()) {}
        for db in &mut self.dbs {
            db.parity ^= PARITY;
            db.cut = db.number;
            db.cut_horizon = self.env.horizon;
            db.walk = (db.len() > 0).then_some(0);
            db.graves.walk = (db.graves.len() > 0).then(Box::default);
        }
        let keys = self
            .dbs
            .iter()
            .map(|db| (db.len() + db.graves.len()) as u64);
        self.env.snapshot = Snapshot {
            capturing: true,
            expected: keys.sum(),
            ..Snapshot::default()
        };
        self.env.update_observed();
    }

    /// Appends records of the cut to `out`, as `Set` effects: all that were
    /// written since the last step because they were about to change, then
    /// what the walk finds, until `budget` bytes are used up (or one record is
    /// written); a record that is only looked at counts as 64 bytes. Returns
    /// whether there may be more; if not, the snapshot is complete. After
    /// [`Shard::abort_snapshot`] it has to be called likewise, and writes nothing.
    pub fn snapshot_step(&mut self, budget: usize, out: &mut Vec<u8>) -> bool {
        let snapshot = &mut self.env.snapshot;
        let mut left = budget.saturating_sub(snapshot.pending.len());
        if out.is_empty() && !snapshot.pending.is_empty() {
            std::mem::swap(out, &mut snapshot.pending);
        } else {
            out.append(&mut snapshot.pending);
        }
        // One batch of the walk may follow in any case: it must come to an end
        // even where writers use up every budget.
        left = left.max(1);
        let mut sink = Sink {
            out: snapshot.capturing.then_some(out),
            rest: std::mem::take(&mut snapshot.rest),
            entries: std::mem::take(&mut self.env.entries),
            left,
            written: 0,
            left_out: 0,
        };
        let mut more = true;
        while more && sink.left > 0 {
            more = self.walk_on(&mut sink);
        }
        self.env.entries = sink.entries;
        self.env.snapshot.rest = sink.rest;
        self.env.snapshot.written += sink.written;
        self.env.snapshot.expected -= sink.left_out;
        if !more {
            self.env.snapshot.capturing = false;
            self.env.snapshot.pending = Vec::new();
            self.env.update_observed();
        }
        more
    }

    fn walk_on(&mut self, sink: &mut Sink<'_>) -> bool {
        if let Some(mut rest) = sink.rest.pop() {
            let done = match &mut sink.out {
                Some(out) => {
                    let before = out.len();
                    let done = rest.write_on(sink.left.clamp(LEAST_CHUNK, PUT_CHUNK), out);
                    let bytes = out.len() - before;
                    sink.spend(bytes);
                    done
                }
                None => true,
            };
            match done {
                false => sink.rest.push(rest),
                true => self.env.throw_rest(rest),
            }
            return true;
        }
        if let Some(mut db) = self.env.snapshot.frozen.pop() {
            db.walk_on(sink);
            if db.is_walked() {
                self.env.snapshot.frozen.push(db);
            } else {
                self.env.throw_db(db);
            }
            return true;
        }
        match self.dbs.iter_mut().find(|db| db.is_walked()) {
            Some(db) => {
                db.walk_on(sink);
                true
            }
            None => false,
        }
    }

    /// Whether a snapshot is under way.
    pub fn is_snapshotting(&self) -> bool {
        self.env.snapshot.capturing
    }

    /// Whether a snapshot was given up and [`Shard::snapshot_step`] still has
    /// to go over what it left.
    pub fn is_unwinding(&self) -> bool {
        !self.env.snapshot.capturing && self.dbs.iter().any(Db::is_walked)
    }

    /// Gives the snapshot up, if there is one.
    pub fn abort_snapshot(&mut self) {
        self.env.snapshot.capturing = false;
        self.env.snapshot.pending = Vec::new();
        for rest in std::mem::take(&mut self.env.snapshot.rest) {
            self.env.throw_rest(rest);
        }
        for db in std::mem::take(&mut self.env.snapshot.frozen) {
            self.env.throw_db(db);
        }
        self.env.update_observed();
    }

    /// Of the snapshot under way, or of the last one.
    pub fn snapshot_progress(&self) -> SnapshotProgress {
        SnapshotProgress {
            written: self.env.snapshot.written,
            expected: self.env.snapshot.expected,
        }
    }

    /// Bytes of records written because they were about to change, which the
    /// next step will hand out: where they pile up, steps should come sooner.
    #[inline]
    pub fn snapshot_backlog_bytes(&self) -> usize {
        self.env.snapshot.pending.len()
    }

    /// What the snapshot keeps in memory besides the data: its backlog,
    /// databases that were flushed, and of large collections about what has
    /// changed since the cut.
    pub fn snapshot_bytes(&self) -> usize {
        let snapshot = &self.env.snapshot;
        let frozen = snapshot.frozen.iter().map(|db| db.memory().total());
        let rest = snapshot.rest.iter();
        let rest = rest.map(|rest| rest.key.len() + rest.object.own_bytes());
        snapshot.pending.capacity() + frozen.sum::<usize>() + rest.sum::<usize>()
    }

    /// A new database in the place of one that was flushed.
    pub(super) fn empty(&mut self, db: usize) {
        let mut new = Db::new(db as u8, self.dbs[db].parity);
        new.elsewhere = self.dbs[db].elsewhere.of_nothing();
        new.by_slot = self.dbs[db].by_slot.of_nothing();
        let old = std::mem::replace(&mut self.dbs[db], new);
        if self.env.snapshot.capturing && old.is_walked() {
            self.env.snapshot.frozen.push(old);
        } else {
            self.env.throw_db(old);
        }
    }
}

impl super::Env {
    /// It gives back what no value shares, mostly little. What a value shares
    /// counts when that is thrown.
    fn throw_rest(&mut self, rest: Rest) {
        self.garbage.push(Garbage {
            bytes: rest.object.own_bytes(),
            what: Box::new(rest.object),
        });
    }

    fn throw_db(&mut self, db: Db) {
        if !db.is_void() {
            self.garbage.push(Garbage {
                bytes: db.memory().total(),
                what: Box::new(db),
            });
        }
    }
}
