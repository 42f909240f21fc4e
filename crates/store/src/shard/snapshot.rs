//! All data as of an instant, the cut, written in small steps while commands run.
//!
//! Every record has a parity bit, whose meaning the cut reverses for the whole shard: a record with the old parity is
//! still to be written. A walk writes such records and sets the bit. Before a record is changed or removed it is
//! written first, in its state at the cut. New records get the new parity and are skipped. So a key needs no state
//! but the bit, and each record of the cut is written exactly once.
//!
//! If a database is flushed before the walk has finished it, it is set aside and walked there, under the number that
//! it had at the cut.
//!
//! If a snapshot is aborted, the walk continues without writing, until all records have the same parity again.

use super::db::Db;
use super::garbage::GarbageList;
use super::observers::{PUT_CHUNK, note_length};
use super::remains::{is_over, leave_out};
use super::types::{Any, Value};
use crate::effect::Effect;
use crate::marks::{self, Mark};
use crate::planted::{self, Planted};
use rufous_base::Garbage;
use rufous_datatype::object::Object;
use rufous_lattice::Stamp;

/// The cost of examining a record in a step's budget, apart from its bytes: waiting for the memory takes about as
/// long as copying this many bytes.
const LOOK: usize = 64;
/// The cost of the index for each batch of records.
const COLLECT: usize = 512;
const BATCH: usize = 64;
/// Bytes of a collection that are written with its key; further chunks follow later.
const FIRST_CHUNK: usize = 16 << 10;
/// The least size of a chunk, however little is left of the budget.
const LEAST_CHUNK: usize = 1 << 10;

/// The walk of a snapshot, and what it has not handed out yet; see the module's description.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Whether records of the cut must be written before they change.
    capturing: bool,
    /// Records written because they were about to change.
    pending: Vec<u8>,
    /// Databases that were flushed during the snapshot.
    frozen: Vec<Db>,
    /// Large collections that are not completely written.
    rest: Vec<Rest>,
    /// Reused: hash and handle of the entries that a walk visits.
    entries: Vec<(u32, u32)>,
    written: u64,
    expected: u64,
}

/// A large collection as it was at the cut, and the position of its next chunk.
#[derive(Debug)]
struct Rest {
    db: u8,
    key: Box<[u8]>,
    object: Object,
    at: u64,
    /// Writes below this stamp have gone.
    gone: Stamp,
}

impl Rest {
    /// Writes the next chunk. Returns whether it was the last.
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

    /// Its bytes are only those that no value shares, mostly few. What a value shares counts when that value is
    /// dropped.
    fn throw(self, garbage: &mut GarbageList) {
        garbage.push(Garbage {
            bytes: self.object.own_bytes(),
            what: Box::new(self.object),
        });
    }
}

/// Writes the first chunk of a value of a type; later ones follow if it is large.
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

/// The progress of a snapshot, in keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotProgress {
    pub written: u64,
    pub expected: u64,
}

/// The output of a step, and the rest of its budget.
struct Sink<'a> {
    /// `None` if the snapshot was aborted.
    out: Option<&'a mut Vec<u8>>,
    /// Large collections that are not completely written.
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

    /// Walks over the next few records of a database, or its graves. If the budget ends it among them, the next step
    /// starts with the same records: those already written are visited.
    fn walk_on(&mut self, db: &mut Db) {
        let Some(cursor) = db.records.walk() else {
            return self.walk_graves(db);
        };
        let count = (self.left / LOOK).clamp(1, BATCH);
        let mut entries = std::mem::take(&mut self.entries);
        let next = db.records.collect(cursor, count, &mut entries);
        self.spend(COLLECT);
        db.records.warm_all(&entries);
        let mut written = 0;
        let mut done = true;
        for &(_, handle) in &entries {
            self.spend(LOOK);
            if !db.records.is_ahead(handle) {
                continue;
            }
            // At least one record, or the walk would not end.
            if written > 0 && self.left == 0 {
                done = false;
                break;
            }
            written += 1;
            match &mut self.out {
                Some(out) => {
                    let before = out.len();
                    write_out(db, handle, out, &mut self.rest);
                    let bytes = out.len() - before;
                    self.spend(bytes);
                }
                None => db.records.set_visited(handle),
            }
        }
        if done {
            db.records.set_walk(next);
        }
        self.written += written;
        self.entries = entries;
    }

    fn walk_graves(&mut self, db: &mut Db) {
        let Some(from) = db.graves.walk() else {
            return;
        };
        let count = (self.left / LOOK).clamp(1, BATCH);
        let (keys, mut next) = db.graves.keys_from(from, count);
        self.spend(COLLECT);
        let (mut done, mut left_out) = (0, 0);
        for key in keys {
            self.spend(LOOK);
            if !db.graves.is_ahead(&key) {
                continue;
            }
            // At least one key, or the walk would not end.
            if done > 0 && self.left == 0 {
                next = Some(Box::from(&*key));
                break;
            }
            done += 1;
            match &mut self.out {
                Some(out) => {
                    let before = out.len();
                    let is_written = write_grave(db, &key, out, &mut self.rest);
                    left_out += u64::from(!is_written);
                    let bytes = out.len() - before;
                    self.spend(bytes);
                }
                None => db.graves.set_visited(&key),
            }
        }
        db.graves.set_walk(next);
        self.written += done - left_out;
        self.left_out += left_out;
    }
}

/// Writes a record of the cut.
fn write_out(db: &mut Db, handle: u32, out: &mut Vec<u8>, rest: &mut Vec<Rest>) {
    let (item, number) = (db.records.item(handle), db.cut.number);
    let expire_at = item.expire_at;
    let gone = item.value.gone(db.cut.horizon);
    match item.value.tag() {
        None => Effect::Set {
            db: number,
            key: item.key,
            value: item.value.string().map_or(b"", Value::bytes),
            expire_at,
        }
        .encode(out),
        Some(_) => put((number, item.key), (item.value, gone), expire_at, out, rest),
    }
    db.records.set_visited(handle);
}

/// Writes a grave of the cut. Returns whether it is in the snapshot, whose end states its number of keys.
fn write_grave(db: &mut Db, key: &[u8], out: &mut Vec<u8>, rest: &mut Vec<Rest>) -> bool {
    let grave = db.graves.get(key);
    // A grave that all nodes had received may be forgotten by another worker, which may have the key as another
    // type, and whose files say nothing of the grave.
    let grave = grave.filter(|object| !is_over(object, db.cut.horizon));
    if let Some(object) = &grave {
        let value = (Any::of_object(object), object.gone(db.cut.horizon));
        put((db.cut.number, key), value, None, out, rest);
    }
    db.graves.set_visited(key);
    grave.is_some()
}

impl Snapshot {
    /// Before a record is changed or removed: writes it if it belongs to the cut.
    #[inline]
    pub(super) fn capture(&mut self, db: &mut Db, handle: u32) {
        if self.capturing && db.records.is_ahead(handle) {
            if planted::is(Planted::SnapshotMissesWrite) {
                return db.records.set_visited(handle);
            }
            write_out(db, handle, &mut self.pending, &mut self.rest);
            self.written += 1;
        }
    }

    /// Before a grave is changed or removed: writes it if it belongs to the cut.
    pub(super) fn capture_grave(&mut self, db: &mut Db, key: &[u8]) {
        if self.capturing && db.graves.is_ahead(key) {
            if write_grave(db, key, &mut self.pending, &mut self.rest) {
                self.written += 1;
            } else {
                self.expected -= 1;
            }
        }
    }

    /// Makes this instant the cut; all nodes have received everything up to `horizon`. An earlier snapshot must have
    /// been completed or unwound.
    pub(super) fn begin(&mut self, dbs: &mut [Db], horizon: u64) {
        for db in &mut *dbs {
            db.begin_walk(horizon);
        }
        let keys = dbs.iter().map(|db| (db.len() + db.graves.len()) as u64);
        *self = Self {
            capturing: true,
            expected: keys.sum(),
            ..Self::default()
        };
    }

    pub(super) fn step(
        &mut self,
        dbs: &mut [Db],
        garbage: &mut GarbageList,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut left = budget.saturating_sub(self.pending.len());
        if out.is_empty() && !self.pending.is_empty() {
            std::mem::swap(out, &mut self.pending);
        } else {
            out.append(&mut self.pending);
        }
        // At least one batch of the walk follows, so that it ends even if writers use up every budget.
        left = left.max(1);
        let mut sink = Sink {
            out: self.capturing.then_some(out),
            rest: std::mem::take(&mut self.rest),
            entries: std::mem::take(&mut self.entries),
            left,
            written: 0,
            left_out: 0,
        };
        let mut more = true;
        while more && sink.left > 0 {
            more = self.walk_on(dbs, garbage, &mut sink);
        }
        self.entries = sink.entries;
        self.rest = sink.rest;
        self.written += sink.written;
        self.expected -= sink.left_out;
        if !more {
            self.capturing = false;
            self.pending = Vec::new();
        }
        more
    }

    fn walk_on(&mut self, dbs: &mut [Db], garbage: &mut GarbageList, sink: &mut Sink<'_>) -> bool {
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
                true => rest.throw(garbage),
            }
            return true;
        }
        if let Some(mut db) = self.frozen.pop() {
            sink.walk_on(&mut db);
            if db.is_walked() {
                self.frozen.push(db);
            } else {
                throw(db, garbage);
            }
            return true;
        }
        match dbs.iter_mut().find(|db| db.is_walked()) {
            Some(db) => {
                sink.walk_on(db);
                true
            }
            None => false,
        }
    }

    pub(super) fn abort(&mut self, garbage: &mut GarbageList) {
        self.capturing = false;
        self.pending = Vec::new();
        for rest in std::mem::take(&mut self.rest) {
            rest.throw(garbage);
        }
        for db in std::mem::take(&mut self.frozen) {
            throw(db, garbage);
        }
    }

    /// Takes a flushed database: it is kept until its records of the cut are written.
    pub(super) fn take_flushed(&mut self, db: Db, garbage: &mut GarbageList) {
        if self.capturing && db.is_walked() {
            self.frozen.push(db);
        } else {
            throw(db, garbage);
        }
    }

    /// Whether a snapshot is under way.
    #[inline(always)]
    pub fn is_running(&self) -> bool {
        self.capturing
    }

    pub fn progress(&self) -> SnapshotProgress {
        SnapshotProgress {
            written: self.written,
            expected: self.expected,
        }
    }

    #[cfg(test)]
    pub(super) fn backlog_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Memory of the snapshot besides the data: its backlog, databases that were flushed, and approximately what has
    /// changed of large collections since the cut.
    pub fn bytes(&self) -> usize {
        let frozen = self.frozen.iter().map(|db| db.memory().total());
        let rest = self.rest.iter();
        let rest = rest.map(|rest| rest.key.len() + rest.object.own_bytes());
        self.pending.capacity() + frozen.sum::<usize>() + rest.sum::<usize>()
    }
}

fn throw(db: Db, garbage: &mut GarbageList) {
    if !db.is_void() {
        garbage.push(Garbage {
            bytes: db.memory().total(),
            what: Box::new(db),
        });
    }
}
