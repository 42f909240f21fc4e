//! The segments of a log: those being written and synced, and those made ahead.
//!
//! Segments are listed in the order in which frames are written to them. A completed one stays
//! listed until all of its frames are synced, so that the frames known to be synced are always the
//! log's beginning.

use super::super::file::{DataFile, HEADER_BYTES};
use super::SECOND_US;
use rufous_base::disk::{DiskDone, DiskError, DiskErrorKind, DiskOp, DiskRequest, FileName, Lane};
use rufous_base::time::Now;
use std::collections::VecDeque;

/// A file to which frames are, or were, written.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) file: FileName,
    pub(super) generation: u64,
    pub(super) index: u32,
    /// The bytes that the file was made with.
    pub(super) reserved: u64,
    /// The offset of the next write.
    pub(super) bytes: u64,
    first_seq: u64,
    /// Frames below this number were written to this segment or earlier ones.
    end_seq: u64,
    /// Frames below this number are synced, as far as they are in this segment.
    synced_seq: u64,
    /// The bytes that are synced.
    synced_bytes: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// No more writes go to it.
    Left,
    /// No more writes or syncs go to it: a sync has failed.
    GivenUp,
}

impl Segment {
    pub(super) fn wrote(&mut self, bytes: u64, end_seq: u64) {
        self.bytes += bytes;
        self.end_seq = end_seq;
    }

    /// Frames below `covers`, and so many bytes of the file, are synced.
    pub(super) fn synced(&mut self, covers: u64, bytes: u64) {
        if self.state != State::GivenUp {
            self.synced_seq = self.synced_seq.max(covers.min(self.end_seq));
            self.synced_bytes = self.synced_bytes.max(bytes);
        }
    }

    pub(super) fn end_seq(&self) -> u64 {
        self.end_seq
    }

    fn is_dirty(&self) -> bool {
        self.state != State::GivenUp && self.synced_seq < self.end_seq
    }
}

/// A segment that is being made: with its space and its name synced.
#[derive(Debug)]
struct Ahead {
    file: FileName,
    generation: u64,
    index: u32,
    reserve: u64,
    /// The first id of its requests, and how many have no result yet.
    id: u64,
    waits: u64,
    error: Option<DiskError>,
}

/// Create the file, sync it, sync the names.
const STEPS: u64 = 3;

#[derive(Debug)]
struct Counter {
    generation: u64,
    next_index: u32,
}

#[derive(Debug)]
pub(super) struct Segments {
    segment_bytes: u64,
    worker: u16,
    /// Oldest first; the last one may be open.
    list: VecDeque<Segment>,
    /// Frames below this number are synced.
    synced: u64,
    /// Generations with current or future writes, oldest first.
    counters: Vec<Counter>,
    ahead: Vec<Ahead>,
    removes: Vec<FileName>,
    /// No segment is made before this time.
    retry_at_us: u64,
    blocked: bool,
    /// There was not enough space for a whole segment.
    scarce: bool,
}

impl Segments {
    pub(super) fn new(worker: u16, segment_bytes: u64) -> Self {
        Self {
            segment_bytes,
            worker,
            list: VecDeque::new(),
            synced: 0,
            counters: Vec::new(),
            ahead: Vec::new(),
            removes: Vec::new(),
            retry_at_us: 0,
            blocked: false,
            scarce: false,
        }
    }

    pub(super) fn start(&mut self, generation: u64, index: u32, seq: u64) {
        self.synced = seq;
        self.counters.push(Counter {
            generation,
            next_index: index,
        });
    }

    pub(super) fn prepare(&mut self, generation: u64) {
        if self
            .counters
            .iter()
            .all(|counter| counter.generation != generation)
        {
            self.counters.push(Counter {
                generation,
                next_index: 0,
            });
        }
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// The segment that is being written.
    pub(super) fn current(&mut self) -> Option<&mut Segment> {
        self.list
            .back_mut()
            .filter(|segment| segment.state == State::Open)
    }

    pub(super) fn named(&mut self, file: &FileName) -> Option<&mut Segment> {
        self.list.iter_mut().find(|segment| segment.file == *file)
    }

    fn is_open(&self, generation: u64) -> bool {
        let last = self.list.back();
        last.is_some_and(|last| last.state == State::Open && last.generation == generation)
    }

    fn ready(&self, generation: u64) -> Option<usize> {
        let ready = |ahead: &Ahead| ahead.generation == generation && ahead.waits == 0;
        self.ahead.iter().position(ready)
    }

    pub(super) fn can_write(&self, generation: u64) -> bool {
        self.is_open(generation) || self.ready(generation).is_some()
    }

    /// Whether there is a segment of this generation that would survive a loss of power.
    pub(super) fn is_ready(&self, generation: u64) -> bool {
        let has = |segment: &Segment| segment.generation == generation;
        self.list.iter().any(has) || self.ready(generation).is_some()
    }

    /// The segment for frames from `first_seq` on: the current one or, if that is full, the next
    /// one. None if that does not exist yet.
    pub(super) fn for_write(
        &mut self,
        generation: u64,
        first_seq: u64,
        bytes: usize,
    ) -> Option<&Segment> {
        let open = self.is_open(generation);
        let full = self.list.back().is_some_and(|segment| {
            segment.bytes > 0 && segment.bytes + bytes as u64 > self.segment_bytes
        });
        if !open || full {
            match self.ready(generation) {
                Some(next) => {
                    let ahead = self.ahead.remove(next);
                    self.leave();
                    self.list.push_back(Segment {
                        file: ahead.file,
                        generation,
                        index: ahead.index,
                        reserved: ahead.reserve,
                        bytes: 0,
                        first_seq,
                        end_seq: first_seq,
                        synced_seq: first_seq,
                        synced_bytes: 0,
                        state: State::Open,
                    });
                }
                // A segment that is too large is better than a delay.
                None if open => {}
                None => return None,
            }
        }
        self.list.back()
    }

    /// Ends the writing of the current segment.
    pub(super) fn leave(&mut self) {
        if let Some(current) = self.current() {
            current.state = State::Left;
        }
        self.settle();
    }

    /// Gives up a segment, which is never trusted again: the one of this name, or the current one.
    /// Returns its generation.
    pub(super) fn give_up(&mut self, file: Option<&FileName>) -> Option<u64> {
        let segment = match file {
            Some(file) => self.named(file),
            None => self.current(),
        };
        let generation = segment.map(|segment| {
            segment.state = State::GivenUp;
            segment.generation
        });
        self.settle();
        generation
    }

    /// A file no longer exists: the one of this name, or the current one.
    pub(super) fn lose(&mut self, file: Option<&FileName>) {
        let segment = match file {
            Some(file) => self.named(file),
            None => self.current(),
        };
        if let Some(segment) = segment {
            segment.synced_seq = segment.first_seq;
        }
        self.give_up(file);
    }

    /// Whether written frames may be lost.
    pub(super) fn has_lost(&self) -> bool {
        let lost = |s: &Segment| s.state == State::GivenUp && s.synced_seq < s.end_seq;
        self.list.iter().any(lost)
    }

    /// Determines the synced beginning of the log.
    pub(super) fn settle(&mut self) {
        while let Some(first) = self.list.front() {
            self.synced = self.synced.max(first.synced_seq);
            if first.state == State::Open || first.synced_seq < first.end_seq {
                return;
            }
            self.list.pop_front();
        }
    }

    /// Frames below `seq`, which are of earlier generations, are in a snapshot.
    pub(super) fn forget_before(&mut self, generation: u64, seq: u64) {
        self.list.retain(|segment| segment.generation >= generation);
        self.counters
            .retain(|counter| counter.generation >= generation);
        self.synced = self.synced.max(seq);
        self.settle();
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.list.iter().any(Segment::is_dirty)
    }

    /// The segment to sync next. The current segment only if it is due; others at once.
    pub(super) fn to_sync(&self, due: bool) -> Option<&Segment> {
        let wanted = |s: &&Segment| s.is_dirty() && (due || s.state == State::Left);
        self.list.iter().find(wanted)
    }

    /// The bytes that are written and not synced, and may be.
    pub(super) fn unsynced_bytes(&self) -> u64 {
        let dirty = self.list.iter().filter(|segment| segment.is_dirty());
        dirty.map(|s| s.bytes - s.synced_bytes).sum()
    }

    pub(super) fn retry_at_us(&self) -> Option<u64> {
        self.blocked.then_some(self.retry_at_us)
    }

    /// Makes the segments that will be needed: frames of generations `oldest` to `newest` are to be
    /// written, and more of `newest` will follow.
    pub(super) fn poll(
        &mut self,
        now: Now,
        (oldest, newest): (u64, u64),
        next_id: &mut u64,
        out: &mut Vec<DiskRequest>,
    ) {
        self.counters.retain(|counter| counter.generation >= oldest);
        // Their files stay: until the manifest changes, even an empty log must exist.
        self.ahead
            .retain(|ahead| ahead.generation >= oldest || ahead.waits > 0);
        self.blocked = false;
        for counter in 0..self.counters.len() {
            let generation = self.counters[counter].generation;
            let half = self
                .list
                .back()
                .is_some_and(|last| last.bytes >= self.segment_bytes / 2);
            let wanted = !self.is_open(generation) || (half && generation == newest);
            if !wanted
                || self
                    .ahead
                    .iter()
                    .any(|ahead| ahead.generation == generation)
            {
                continue;
            }
            if now.mono_us < self.retry_at_us {
                self.blocked = true;
                continue;
            }
            let index = self.counters[counter].next_index;
            self.counters[counter].next_index += 1;
            self.make(generation, index, next_id, out);
        }
    }

    /// Removes the files that nothing needs.
    pub(super) fn remove(&mut self, next_id: &mut u64, out: &mut Vec<DiskRequest>) {
        for file in self.removes.drain(..) {
            *next_id += 1;
            out.push(bulk(*next_id, DiskOp::Remove { file }));
        }
    }

    fn make(&mut self, generation: u64, index: u32, next_id: &mut u64, out: &mut Vec<DiskRequest>) {
        let worker = self.worker;
        let file = DataFile::Log {
            generation,
            worker,
            index,
        }
        .name();
        let id = *next_id + 1;
        *next_id += STEPS;
        // No loss of power may leave less than a header: a file that has less counts as shortened.
        let reserve = if self.scarce {
            HEADER_BYTES as u64
        } else {
            self.segment_bytes
        };
        let create = DiskOp::Create {
            file: file.clone(),
            reserve,
        };
        out.push(bulk(id, create));
        out.push(bulk(id + 1, DiskOp::Sync { file: file.clone() }));
        out.push(bulk(id + 2, DiskOp::SyncNames));
        self.ahead.push(Ahead {
            file,
            generation,
            index,
            reserve,
            id,
            waits: STEPS,
            error: None,
        });
    }

    /// Fails if a segment could not be made.
    pub(super) fn on_done(&mut self, now: Now, done: DiskDone) -> Result<(), DiskError> {
        let steps = |ahead: &Ahead| (ahead.id..ahead.id + STEPS).contains(&done.id);
        let Some(at) = self.ahead.iter().position(steps) else {
            return Ok(());
        };
        let ahead = &mut self.ahead[at];
        ahead.waits -= 1;
        if let Err(error) = done.result {
            ahead.error.get_or_insert(error);
        }
        if ahead.waits > 0 {
            return Ok(());
        }
        let Some(error) = ahead.error.take() else {
            self.scarce = false;
            return Ok(());
        };
        // It is made again under the same name: indices have no gaps.
        let ahead = self.ahead.remove(at);
        let mut counters = self.counters.iter_mut();
        match counters.find(|counter| counter.generation == ahead.generation) {
            Some(counter) => counter.next_index = ahead.index,
            None => self.removes.push(ahead.file),
        }
        if error.kind == DiskErrorKind::Full && !self.scarce {
            self.scarce = true;
            return Ok(());
        }
        self.retry_at_us = now.mono_us + SECOND_US;
        Err(error)
    }
}

fn bulk(id: u64, op: DiskOp) -> DiskRequest {
    let lane = Lane::Bulk;
    DiskRequest { id, lane, op }
}
