//! A worker's disk: what its actor asks for is done by other threads, one per
//! lane, and answered through the worker's inbox.
//!
//! - A lane's thread starts with the lane's first request, and carries out one
//!   request after the other; each gets one answer, failed or not.
//! - A hop costs at most one wake-up each way, and none where the other side
//!   is running; nothing is allocated for it once the queues have grown.
//! - Files stay open in the lane that used them, until they are removed or
//!   replaced, or others were used since ([`files`]).
//!
//! What a request means is said in `rufous_base::disk`.

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

/// While more bytes than this wait to be written, the worker reads from no
/// socket: what comes from there is what makes them.
const WRITING_BYTES: usize = 256 * 1024 * 1024;

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
        }
    }

    /// Sees to it that the request is carried out and answered.
    pub(crate) fn request(&mut self, request: DiskRequest) {
        self.stats.disk_requests.add(1);
        self.under_way += 1;
        if let DiskOp::Write { bytes, .. } = &request.op {
            self.writing_bytes += bytes.len();
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

    /// The actor is about to be given this answer.
    pub(crate) fn answered(&mut self, done: &DiskDone) {
        self.under_way -= 1;
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

/// The answer to a request that nobody can carry out.
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
