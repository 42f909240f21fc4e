//! How frames reach the disk: writes, syncs, and the handling of their errors.

use super::super::entry;
use super::super::file::{FileHeader, HEADER_BYTES};
use super::{Closing, Fsync, LogWriter, Outcome, SECOND_US};
use rufous_base::disk::{DiskError, DiskErrorKind, DiskOp, DiskReply, DiskRequest, FileName, Lane};
use rufous_base::time::Now;
use rufous_store::planted::{self, Planted};

/// Frames are collected in buffers of about this size; one is written at a time.
pub(super) const BATCH_BYTES: usize = 2 << 20;
/// Larger buffers are not kept.
pub(super) const KEEP_BYTES: usize = 2 * BATCH_BYTES;

/// Frames of one generation that are written in one write.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) generation: u64,
    pub(super) first_seq: u64,
    pub(super) end_seq: u64,
    pub(super) bytes: Vec<u8>,
}

/// The write in progress. The disk has the bytes, and returns them.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: u64,
    pub(super) generation: u64,
    pub(super) first_seq: u64,
    pub(super) end_seq: u64,
    /// A segment's header in front of the frames.
    pub(super) header: usize,
    pub(super) bytes: usize,
    pub(super) sync: bool,
    pub(super) started_us: u64,
}

#[derive(Debug)]
pub(super) struct SyncFlight {
    pub(super) id: u64,
    pub(super) file: FileName,
    /// Frames below this number were written when the sync was requested.
    pub(super) covers: u64,
    /// Likewise the bytes of the file.
    pub(super) bytes: u64,
    /// Whether it covers every frame that was written then.
    pub(super) whole: bool,
    pub(super) started_us: u64,
}

impl LogWriter {
    pub(super) fn poll_write(&mut self, now: Now, out: &mut Vec<DiskRequest>) {
        if self.flight.is_some() || now.mono_us < self.retry_at_us {
            return;
        }
        let Some(batch) = self.batches.front() else {
            return;
        };
        let (generation, first_seq) = (batch.generation, batch.first_seq);
        let Some(segment) = self
            .segments
            .for_write(generation, first_seq, batch.bytes.len())
        else {
            return;
        };
        let (file, at) = (segment.file.clone(), segment.bytes);
        let (index, reserved) = (segment.index, segment.reserved);
        let Some(mut batch) = self.batches.pop_front() else {
            return;
        };
        let mut header = 0;
        if at == 0 {
            let first = FileHeader {
                index,
                first_seq,
                reserved,
                ..self.header(generation)
            };
            header = HEADER_BYTES;
            batch.bytes.splice(..0, first.encode());
        }
        let sync = self.config.fsync == Fsync::Always || self.closing == Closing::Mark;
        let id = self.id();
        self.flight = Some(Flight {
            id,
            generation,
            first_seq,
            end_seq: batch.end_seq,
            header,
            bytes: batch.bytes.len(),
            sync,
            started_us: now.mono_us,
        });
        let bytes = batch.bytes;
        let op = DiskOp::Write {
            file,
            at,
            bytes,
            sync,
        };
        let lane = Lane::Log;
        out.push(DiskRequest { id, lane, op });
    }

    pub(super) fn on_written(
        &mut self,
        now: Now,
        flight: Flight,
        result: Result<DiskReply, DiskError>,
    ) -> Outcome {
        if flight.generation < self.covered {
            self.gauges.pending_bytes -= (flight.bytes - flight.header) as u64;
            return Outcome::Fine;
        }
        match result {
            Ok(reply) => {
                let bytes = match reply {
                    DiskReply::Wrote(bytes) => bytes,
                    _ => Vec::new(),
                };
                self.gauges.writes += 1;
                self.gauges.bytes_written += flight.bytes as u64;
                let Some(segment) = self.segments.current() else {
                    // The segment was given up during the write: it is not trusted.
                    self.take_back(flight, bytes);
                    return Outcome::Fine;
                };
                segment.wrote(flight.bytes as u64, flight.end_seq);
                self.written = self.written.max(flight.end_seq);
                if flight.sync {
                    segment.synced(flight.end_seq, segment.bytes);
                    self.count_sync(now, flight.started_us);
                } else {
                    self.unsynced_since_us.get_or_insert(flight.started_us);
                    self.commit_written(now);
                }
                self.gauges.pending_bytes -= (flight.bytes - flight.header) as u64;
                self.trouble = None;
                self.settle();
                self.recycle(bytes);
                Outcome::Fine
            }
            Err(mut error) => {
                self.gauges.failures += 1;
                let bytes = std::mem::take(&mut error.bytes);
                self.take_back(flight, bytes);
                match error.kind {
                    DiskErrorKind::Sync => self.give_up(None, &error),
                    // The file was removed: even synced frames are gone.
                    DiskErrorKind::NotFound => {
                        self.segments.lose(None);
                        self.give_up(None, &error);
                    }
                    // The place on the disk may be bad, and another one better.
                    DiskErrorKind::Io => self.segments.leave(),
                    DiskErrorKind::Full | DiskErrorKind::Denied => {}
                }
                self.fail(now, &error)
            }
        }
    }

    /// Puts uncommitted frames back at the front of the queue.
    fn take_back(&mut self, flight: Flight, mut bytes: Vec<u8>) {
        debug_assert_eq!(bytes.len(), flight.bytes, "the disk gives back what it got");
        bytes.drain(..flight.header.min(bytes.len()));
        self.batches.push_front(Batch {
            generation: flight.generation,
            first_seq: flight.first_seq,
            end_seq: flight.end_seq,
            bytes,
        });
    }

    pub(super) fn fail(&mut self, now: Now, error: &DiskError) -> Outcome {
        self.retry_at_us = now.mono_us + SECOND_US;
        self.trouble = Some(format!("the log cannot be written: {error}"));
        Outcome::Failed
    }

    /// Gives up a segment (the current one, if `None`), which is never trusted again.
    fn give_up(&mut self, file: Option<&FileName>, error: &DiskError) {
        let generation = self.segments.give_up(file);
        self.suspect = self.suspect.max(generation);
        if self.segments.has_lost() {
            self.lost = Some(format!(
                "the log could not be synced ({error}), and a snapshot is not yet written"
            ));
        }
        self.settle();
    }

    /// Written frames are committed, unless too much is not synced.
    fn commit_written(&mut self, now: Now) {
        let behind = self.is_behind(now);
        self.gauges.delayed += u64::from(behind && !self.behind);
        self.behind = behind;
        if !behind {
            self.committed = self.committed.max(self.written);
        }
    }

    fn is_behind(&self, now: Now) -> bool {
        let bounds = self.config.bounds;
        let since = self.unsynced_since_us;
        let late = since.is_some_and(|since| now.mono_us >= since.saturating_add(bounds.us));
        let much = self.segments.unsynced_bytes() > bounds.bytes;
        let is_kept = !planted::is(Planted::BoundNotKept);
        self.config.fsync == Fsync::EverySec && (late || much) && is_kept
    }

    /// Synced frames may now be committed, too.
    pub(super) fn settle(&mut self) {
        self.segments.settle();
        self.committed = self.committed.max(self.segments.synced());
    }

    fn recycle(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < 2 && bytes.capacity() <= KEEP_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    fn count_sync(&mut self, now: Now, started_us: u64) {
        self.gauges.syncs += 1;
        self.gauges.last_sync_us = now.mono_us.saturating_sub(started_us);
    }

    /// When frames in the current segment must be synced.
    pub(super) fn sync_due_us(&self) -> Option<u64> {
        if self.closing != Closing::No || self.config.fsync == Fsync::Always || self.behind {
            return Some(0);
        }
        let last = self.last_sync_at_us;
        (self.config.fsync == Fsync::EverySec).then(|| last.map_or(0, |last| last + SECOND_US))
    }

    pub(super) fn poll_sync(&mut self, now: Now, out: &mut Vec<DiskRequest>) {
        // With `always`, the write in progress also syncs earlier bytes of the file.
        let covered = self.flight.as_ref().is_some_and(|flight| flight.sync);
        let due = !covered && self.sync_due_us().is_some_and(|due| due <= now.mono_us);
        if self.sync_flight.is_some() {
            return;
        }
        let Some(segment) = self.segments.to_sync(due) else {
            return;
        };
        let (file, covers) = (segment.file.clone(), segment.end_seq());
        let bytes = segment.bytes;
        let id = self.id();
        self.last_sync_at_us = Some(now.mono_us);
        self.sync_flight = Some(SyncFlight {
            id,
            file: file.clone(),
            covers,
            bytes,
            whole: covers >= self.written,
            started_us: now.mono_us,
        });
        let (lane, op) = (Lane::Sync, DiskOp::Sync { file });
        out.push(DiskRequest { id, lane, op });
    }

    pub(super) fn on_synced(
        &mut self,
        now: Now,
        sync: &SyncFlight,
        result: Result<DiskReply, DiskError>,
    ) -> Outcome {
        match result {
            Ok(_) => {
                if let Some(segment) = self.segments.named(&sync.file) {
                    segment.synced(sync.covers, sync.bytes);
                }
                self.count_sync(now, sync.started_us);
                self.settle();
                if !self.segments.is_dirty() {
                    self.unsynced_since_us = None;
                } else if sync.whole {
                    // What is not synced was written after the sync had begun.
                    self.unsynced_since_us = Some(sync.started_us);
                }
                if self.behind {
                    self.commit_written(now);
                }
                Outcome::Fine
            }
            Err(error) => {
                self.gauges.failures += 1;
                if error.kind == DiskErrorKind::NotFound {
                    self.segments.lose(Some(&sync.file));
                }
                self.give_up(Some(&sync.file), &error);
                if !self.segments.is_dirty() {
                    self.unsynced_since_us = None;
                }
                // Frames that waited for this sync wait for a snapshot now.
                if self.behind && self.committed < self.written {
                    Outcome::Failed
                } else {
                    Outcome::Fine
                }
            }
        }
    }

    pub(super) fn poll_close(&mut self) {
        if !self.batches.is_empty() || self.flight.is_some() {
            return;
        }
        match self.closing {
            // The end mark must not be written, as frames may be lost.
            Closing::Frames | Closing::Mark if self.segments.has_lost() => {
                self.closing = Closing::Closed;
            }
            Closing::Frames if self.synced() == self.appended => {
                let mut mark = Vec::new();
                entry::put_clean_end(&mut mark);
                self.push(&mark);
                self.closing = Closing::Mark;
            }
            Closing::Mark if self.synced() == self.appended => self.closing = Closing::Closed,
            _ => {}
        }
    }
}
