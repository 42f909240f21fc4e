//! A worker's disk: other threads, one per lane, carry out the actor's requests
//! and answer through the worker's inbox.
//!
//! - A lane's thread starts with the lane's first request and carries out one
//!   request after the other; each gets one answer, failed or not.
//! - A hop costs at most one wake-up each way, and none while the other side
//!   is running. It allocates nothing once the queues have grown.
//! - Files stay open in the lane that used them, until they are removed,
//!   replaced, or closed in favour of others ([`files`]).
//! - A small write that is not synced may be carried out by the worker itself
//!   ([`Disk::writes_here`]): it goes to the page cache, which takes less time
//!   than waking another thread and being woken by it.
//!
//! `rufous_base::disk` defines the requests.

mod ahead;
mod files;
mod folder;
mod lane;
mod ops;

pub(crate) use folder::Folder;

use crate::inbox::Inbox;
use crate::stats::WorkerStats;
use lane::Lane;
use rufous_base::disk::{self, DiskDone, DiskError, DiskErrorKind, DiskOp, DiskReply, DiskRequest};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// While more bytes than this wait to be written, the worker reads from no
/// socket, because what it reads causes further writes.
const WRITING_BYTES: usize = 256 * 1024 * 1024;

/// Larger writes are another thread's.
const HERE_BYTES: usize = 128 * 1024;

/// Where a write has taken the worker longer than this, others write for it
/// for a while. It is more than a worker has to wait for its core now and then.
const HERE_TIME: Duration = Duration::from_millis(5);
const ELSEWHERE_TIME: Duration = Duration::from_secs(1);

pub(crate) struct Disk {
    worker: usize,
    folder: Arc<Folder>,
    inbox: Arc<Inbox>,
    stats: Arc<WorkerStats>,
    lanes: [Option<Lane>; disk::Lane::ALL.len()],
    /// Requests without an answer that the actor has taken.
    under_way: usize,
    /// Bytes of writes among them.
    writing_bytes: usize,
    /// Requests without an answer on the lane of the log, and on that of syncs.
    logging: Vec<u64>,
    syncing: Vec<u64>,
    /// The worker does not write before then.
    elsewhere_until: Option<Instant>,
    /// Answers to what it did itself.
    done_here: Vec<DiskDone>,
}

impl Disk {
    pub(crate) fn new(
        worker: usize,
        folder: Arc<Folder>,
        inbox: Arc<Inbox>,
        stats: Arc<WorkerStats>,
    ) -> Self {
        Self {
            worker,
            folder,
            inbox,
            stats,
            lanes: [const { None }; disk::Lane::ALL.len()],
            under_way: 0,
            writing_bytes: 0,
            logging: Vec::new(),
            syncing: Vec::new(),
            elsewhere_until: None,
            done_here: Vec::new(),
        }
    }

    /// Sees to it that the request is carried out and answered.
    pub(crate) fn request(&mut self, request: DiskRequest) {
        self.stats.disk_requests.add(1);
        self.under_way += 1;
        if let DiskOp::Write { bytes, .. } = &request.op {
            self.writing_bytes += bytes.len();
        }
        let request = match self.write_here(request) {
            Ok(()) => return,
            Err(request) => request,
        };
        match request.lane {
            disk::Lane::Log => self.logging.push(request.id),
            disk::Lane::Sync => self.syncing.push(request.id),
            disk::Lane::Bulk => {}
        }
        let place = &mut self.lanes[request.lane.index()];
        let lane = match place {
            Some(lane) => lane,
            None => {
                let started = Lane::start(self.worker, request.lane, &self.folder, &self.inbox);
                match started {
                    Ok(lane) => place.insert(lane),
                    Err(error) => {
                        let text = format!("cannot start a thread: {error}");
                        return self.inbox.answer(refused(request, text));
                    }
                }
            }
        };
        lane.push(request);
    }

    /// Whether the worker may carry out a request itself: its lane has no pending
    /// request, and it is a small write. A sync may block writers of its file,
    /// and a slow disk may do so at other times too.
    fn writes_here(&self, request: &DiskRequest) -> bool {
        let DiskOp::Write { bytes, sync, .. } = &request.op else {
            return false;
        };
        request.lane == disk::Lane::Log
            && !sync
            && bytes.len() <= HERE_BYTES
            && self.logging.is_empty()
            && self.syncing.is_empty()
    }

    fn write_here(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        let Some(lane) = &self.lanes[request.lane.index()] else {
            return Err(request);
        };
        if !self.writes_here(&request) {
            return Err(request);
        }
        let began = Instant::now();
        if self.elsewhere_until.is_some_and(|until| began < until) {
            return Err(request);
        }
        self.done_here.push(lane.write_here(request)?);
        self.elsewhere_until = (began.elapsed() > HERE_TIME).then(|| began + ELSEWHERE_TIME);
        Ok(())
    }

    /// Takes the answers to what the worker has done itself.
    pub(crate) fn take_done_here(&mut self, answers: &mut Vec<DiskDone>) {
        answers.append(&mut self.done_here);
    }

    /// The actor is about to be given this answer.
    pub(crate) fn answered(&mut self, done: &DiskDone) {
        self.under_way -= 1;
        self.logging.retain(|id| *id != done.id);
        self.syncing.retain(|id| *id != done.id);
        match &done.result {
            Ok(DiskReply::Wrote(bytes)) => self.writing_bytes -= bytes.len(),
            Ok(_) => {}
            Err(error) => self.writing_bytes -= error.bytes.len(),
        }
    }

    /// Whether an answer is still to come.
    pub(crate) fn is_awaited(&self) -> bool {
        self.under_way > 0
    }

    /// Whether so much waits to be written that no more should be taken in.
    pub(crate) fn is_behind(&self) -> bool {
        self.writing_bytes > WRITING_BYTES
    }

    /// Ends the threads. Requests that wait are dropped, those that are being
    /// carried out are waited for: nothing touches the folder afterwards.
    pub(crate) fn end(&mut self) {
        for lane in self.lanes.iter().flatten() {
            lane.close();
        }
        for lane in self.lanes.iter_mut().filter_map(Option::take) {
            lane.join();
        }
    }
}

/// The answer to a request that cannot be carried out.
fn refused(request: DiskRequest, text: String) -> DiskDone {
    let bytes = match request.op {
        DiskOp::Write { bytes, .. } => bytes,
        _ => Vec::new(),
    };
    DiskDone {
        id: request.id,
        result: Err(DiskError {
            kind: DiskErrorKind::Io,
            text,
            bytes,
        }),
    }
}
