//! The log of one worker: accepts frames, has them written in order, and reports how far they are
//! committed.
//!
//! A state machine: [`LogWriter::append`] collects frames, [`LogWriter::poll`] makes the disk
//! requests that are due and [`LogWriter::on_done`] handles their results; call `poll` after either
//! of the others, and at [`LogWriter::wake_at_us`].
//!
//! Invariants:
//! 1. One write is in progress; frames that are appended meanwhile form the next one (group
//!    commit).
//! 2. A frame is committed when it is written (`everysec`, `no`) or when it and all earlier ones
//!    are synced (`always`). With `everysec` it also waits for a sync where more than the
//!    [`Bounds`] is written and not synced. Frames are committed in order, over segments and
//!    generations.
//! 3. A frame states that others are synced only if they are.
//! 4. A segment is written to only when its name and its space would survive a loss of power.
//! 5. A frame is kept until it is committed. A failed write is tried again each second; a segment
//!    whose sync failed is given up, and its uncommitted frames go to the next one.
//! 6. A failed sync requests a snapshot, even if every committed frame was synced: the failed write
//!    went to the block in which the last of them ends, and may have destroyed its end.

mod flow;
mod segments;
#[cfg(test)]
mod tests;

use super::file::{FileHeader, FileKind};
use super::frame;
use super::ids;
use flow::{BATCH_BYTES, Batch, Flight, SyncFlight};
use rufous_base::disk::{DiskDone, DiskRequest};
use rufous_base::time::Now;
use segments::Segments;
use std::collections::VecDeque;

/// When frames are synced, and whether a commit waits for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Before any reply.
    Always,
    /// Once a second, while replies continue within the [`Bounds`].
    EverySec,
    /// When the operating system decides; and when a segment is full.
    No,
}

/// The limits of what is committed and not synced, with [`Fsync::EverySec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub bytes: u64,
    /// Of the time since the oldest of it was written.
    pub us: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            us: 3 * SECOND_US,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    pub fsync: Fsync,
    pub bounds: Bounds,
    /// The approximate size at which the next segment is begun.
    pub segment_bytes: u64,
}

/// The identity of a log, as written into each segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub worker: u16,
    pub workers: u16,
    /// Increases with every start.
    pub run: u64,
    /// [`super::file::salt`] of the node's hash seed.
    pub salt: u32,
}

/// The effect of a result of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    Fine,
    /// Uncommitted frames may stay uncommitted for a long time, and may yet be found after a crash:
    /// no reply that waits for one can be sent.
    Failed,
}

/// The gauges of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogGauges {
    pub bytes_written: u64,
    pub writes: u64,
    pub syncs: u64,
    pub failures: u64,
    /// The duration of the last sync, or of the last write with one.
    pub last_sync_us: u64,
    /// The bytes of frames that are not written.
    pub pending_bytes: u64,
    /// The bytes that are written and not synced.
    pub unsynced_bytes: u64,
    /// How often frames had to wait for a sync, although they are committed once written.
    pub delayed: u64,
    /// The bytes of the current generation, including those not written yet.
    pub generation_bytes: u64,
}

const SECOND_US: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// Everything must be written and synced, then the end mark.
    Frames,
    Mark,
    Closed,
}

#[derive(Debug)]
pub struct LogWriter {
    config: LogConfig,
    identity: Identity,
    /// The generation of further frames, and the seed of their checksums.
    generation: u64,
    seed: u32,
    appended: u64,
    /// Frames below this number were written.
    written: u64,
    committed: u64,
    /// No later than when the oldest frame was written that is not synced.
    unsynced_since_us: Option<u64>,
    /// Written frames wait for a sync.
    behind: bool,
    batches: VecDeque<Batch>,
    spare: Vec<Vec<u8>>,
    flight: Option<Flight>,
    sync_flight: Option<SyncFlight>,
    last_sync_at_us: Option<u64>,
    /// No write is tried before this time.
    retry_at_us: u64,
    segments: Segments,
    /// The error, while writing fails.
    trouble: Option<String>,
    /// The reason, while frames may be lost.
    lost: Option<String>,
    /// The newest generation in which a sync has failed, until a snapshot replaces its frames.
    suspect: Option<u64>,
    /// The beginnings of generations that no snapshot in the manifest covers.
    cuts: Vec<(u64, u64)>,
    /// Frames of earlier generations than this are in a snapshot.
    covered: u64,
    closing: Closing,
    next_id: u64,
    gauges: LogGauges,
}

impl LogWriter {
    /// A log that accepts frames after [`LogWriter::start`].
    pub fn new(config: LogConfig, identity: Identity) -> Self {
        Self {
            config,
            identity,
            generation: 0,
            seed: 0,
            appended: 0,
            written: 0,
            committed: 0,
            unsynced_since_us: None,
            behind: false,
            batches: VecDeque::new(),
            spare: Vec::new(),
            flight: None,
            sync_flight: None,
            last_sync_at_us: None,
            retry_at_us: 0,
            segments: Segments::new(identity.worker, config.segment_bytes),
            trouble: None,
            lost: None,
            suspect: None,
            cuts: Vec::new(),
            covered: 0,
            closing: Closing::No,
            next_id: ids::LOG,
            gauges: LogGauges::default(),
        }
    }

    /// Continues a generation with frame `seq` in its segment `index`, which does not exist yet.
    /// All earlier frames are synced.
    pub fn start(&mut self, generation: u64, index: u32, seq: u64) {
        debug_assert!(self.batches.is_empty() && self.flight.is_none());
        self.appended = seq;
        self.written = seq;
        self.committed = seq;
        self.segments.start(generation, index, seq);
        self.enter(generation);
    }

    /// Requests to the disk have higher numbers than this one.
    pub fn number_from(&mut self, id: u64) {
        self.next_id = self.next_id.max(id);
    }

    /// The number of the last request to the disk.
    pub fn last_id(&self) -> u64 {
        self.next_id
    }

    /// Adds a frame; returns its number.
    pub fn append(&mut self, payload: &[u8]) -> u64 {
        debug_assert!(matches!(self.closing, Closing::No), "the log is closed");
        self.push(payload)
    }

    fn push(&mut self, payload: &[u8]) -> u64 {
        let (seq, generation) = (self.appended, self.generation);
        let full = |batch: &Batch| {
            batch.generation != generation || batch.bytes.len() + payload.len() > BATCH_BYTES
        };
        if self.batches.back().is_none_or(full) {
            self.batches.push_back(Batch {
                generation,
                first_seq: seq,
                end_seq: seq,
                bytes: self.spare.pop().unwrap_or_default(),
            });
        }
        let synced = self.segments.synced();
        if let Some(batch) = self.batches.back_mut() {
            let before = batch.bytes.len();
            frame::encode(&mut batch.bytes, self.seed, seq, synced, payload);
            batch.end_seq = seq + 1;
            let bytes = (batch.bytes.len() - before) as u64;
            self.gauges.pending_bytes += bytes;
            self.gauges.generation_bytes += bytes;
        }
        self.appended = seq + 1;
        seq
    }

    /// Frames below this number were appended.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// Frames below this number are committed. Never decreases.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Frames below this number are known to be synced, or are in a snapshot that is. Never
    /// decreases.
    pub fn synced(&self) -> u64 {
        self.segments.synced()
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn fsync(&self) -> Fsync {
        self.config.fsync
    }

    /// Sets the mode for frames that are written from now on.
    pub fn set_fsync(&mut self, fsync: Fsync, bounds: Bounds) {
        self.config.fsync = fsync;
        self.config.bounds = bounds;
    }

    /// Whether so much is written and not synced that no more requests should be accepted.
    pub fn is_far_behind(&self) -> bool {
        self.behind && self.segments.unsynced_bytes() > self.config.bounds.bytes.saturating_mul(2)
    }

    /// Makes the first segment of a future generation, so that frames need not wait for it.
    pub fn prepare_generation(&mut self, generation: u64) {
        debug_assert!(generation > self.generation);
        self.segments.prepare(generation);
    }

    /// The cut: frames appended from now on belong to this generation.
    pub fn begin_generation(&mut self, generation: u64) {
        debug_assert!(generation > self.generation);
        self.segments.prepare(generation);
        self.cuts.push((generation, self.appended));
        self.enter(generation);
    }

    fn enter(&mut self, generation: u64) {
        self.generation = generation;
        self.seed = self.header(generation).frame_seed();
        self.gauges.generation_bytes = 0;
    }

    /// Whether the newest generation has the segment that [`LogWriter::prepare_generation`] or
    /// [`LogWriter::begin_generation`] requested. A manifest may name only such generations.
    pub fn generation_ready(&self, generation: u64) -> bool {
        self.segments.is_ready(generation)
    }

    /// A snapshot of this generation is in the manifest: it contains all earlier frames of the log,
    /// including those not written yet.
    pub fn snapshot_installed(&mut self, generation: u64) {
        let Some(&(_, seq)) = self.cuts.iter().find(|cut| cut.0 == generation) else {
            return;
        };
        self.cuts.retain(|cut| cut.0 > generation);
        self.covered = generation;
        let pending = &mut self.gauges.pending_bytes;
        self.batches.retain(|batch| {
            let keep = batch.generation >= generation;
            if !keep {
                *pending -= batch.bytes.len() as u64;
            }
            keep
        });
        self.segments.forget_before(generation, seq);
        self.committed = self.committed.max(seq);
        self.settle();
        if self.batches.is_empty() {
            self.trouble = None;
        }
        if !self.segments.has_lost() {
            self.lost = None;
        }
        self.suspect = self.suspect.filter(|suspect| *suspect >= generation);
    }

    /// Why writes must be refused: a full or failing disk, or frames that may
    /// be lost until there is a new snapshot.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref().or(self.lost.as_deref())
    }

    /// Whether frames cannot be written now.
    pub fn is_stuck(&self) -> bool {
        self.trouble.is_some()
    }

    /// Committed frames could not be synced, and may be lost with the power: only a snapshot of a
    /// new generation makes the data durable again.
    pub fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether a snapshot should be written because a sync failed.
    pub fn needs_snapshot(&self) -> bool {
        self.has_lost() || self.suspect.is_some()
    }

    pub fn gauges(&self) -> LogGauges {
        LogGauges {
            unsynced_bytes: self.segments.unsynced_bytes(),
            ..self.gauges
        }
    }

    /// Writes and syncs everything, and a mark of an orderly end of the log.
    pub fn close(&mut self) {
        if self.closing == Closing::No {
            self.closing = Closing::Frames;
        }
    }

    /// Whether the log is closed. A failing disk may delay that for ever.
    pub fn is_closed(&self) -> bool {
        self.closing == Closing::Closed
    }

    /// The latest time at which [`LogWriter::poll`] must be called.
    pub fn wake_at_us(&self) -> Option<u64> {
        let waits = !self.batches.is_empty() && self.flight.is_none();
        let retry = (waits && self.trouble.is_some()).then_some(self.retry_at_us);
        let sync = match self.sync_flight {
            None if self.segments.is_dirty() => self.sync_due_us(),
            _ => None,
        };
        let segment = self.segments.retry_at_us().filter(|_| !self.is_closed());
        let wakes = [retry, sync, segment];
        wakes.into_iter().flatten().min()
    }

    /// Makes the disk requests that are due.
    pub fn poll(&mut self, now: Now, out: &mut Vec<DiskRequest>) {
        self.poll_close();
        self.poll_write(now, out);
        self.segments.remove(&mut self.next_id, out);
        if !self.is_closed() {
            let generations = (self.oldest_generation(), self.generation);
            self.segments.poll(now, generations, &mut self.next_id, out);
        }
        self.poll_sync(now, out);
    }

    /// Handles the result of a request of this log.
    pub fn on_done(&mut self, now: Now, done: DiskDone) -> Outcome {
        if self
            .flight
            .as_ref()
            .is_some_and(|flight| flight.id == done.id)
        {
            return match self.flight.take() {
                Some(flight) => self.on_written(now, flight, done.result),
                None => Outcome::Fine,
            };
        }
        if let Some(sync) = self.sync_flight.take_if(|sync| sync.id == done.id) {
            return self.on_synced(now, &sync, done.result);
        }
        let Err(error) = self.segments.on_done(now, done) else {
            return Outcome::Fine;
        };
        self.gauges.failures += 1;
        // Only if frames wait for the segment.
        if self.flight.is_some()
            || self.batches.is_empty()
            || self.segments.can_write(self.oldest_generation())
        {
            return Outcome::Fine;
        }
        self.fail(now, &error)
    }

    fn oldest_generation(&self) -> u64 {
        let flight = self.flight.as_ref().map(|flight| flight.generation);
        let batch = self.batches.front().map(|batch| batch.generation);
        flight.or(batch).unwrap_or(self.generation)
    }

    /// The header of a segment without its place in the log.
    fn header(&self, generation: u64) -> FileHeader {
        FileHeader {
            kind: FileKind::Log,
            generation,
            worker: self.identity.worker,
            workers: self.identity.workers,
            index: 0,
            run: self.identity.run,
            first_seq: 0,
            salt: self.identity.salt,
            reserved: 0,
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}
