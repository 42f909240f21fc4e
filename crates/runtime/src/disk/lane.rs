//! One lane of one worker: a queue and the thread that works it off. While the
//! thread has nothing to do, the worker may do something in its place.

use super::folder::Folder;
use super::ops::Ops;
use crate::inbox::Inbox;
use crate::thread;
use rufous_base::disk::{self, DiskDone, DiskRequest};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Where disk threads share the worker's core, what is large shall not keep
/// requests waiting: the worker goes first as soon as it has something to do.
/// It still gets a tenth of a core that is busy.
const BULK_PRIORITY: i32 = 10;

struct Queue {
    waiting: Mutex<Vec<DiskRequest>>,
    closed: AtomicBool,
    /// Locked by the thread that works on a request.
    ops: Mutex<Ops>,
}

pub(super) struct Lane {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl Lane {
    pub(super) fn start(
        worker: usize,
        lane: disk::Lane,
        folder: &Arc<Folder>,
        inbox: &Arc<Inbox>,
    ) -> io::Result<Self> {
        let name = match lane {
            disk::Lane::Log => "log",
            disk::Lane::Sync => "sync",
            disk::Lane::Bulk => "bulk",
        };
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            closed: AtomicBool::new(false),
            ops: Mutex::new(Ops::new(Arc::clone(folder))),
        });
        let (requests, folder, inbox) = (Arc::clone(&queue), Arc::clone(folder), Arc::clone(inbox));
        let thread = thread::spawn(format!("rufous-disk-{worker}-{name}"), move || {
            folder.join();
            if lane == disk::Lane::Bulk {
                thread::give_way(BULK_PRIORITY);
            }
            work(&requests, &inbox);
        })?;
        Ok(Self { queue, thread })
    }

    /// Wakes the thread only where it had nothing to do: it takes all that
    /// waits at once, and sleeps only after it has found nothing.
    pub(super) fn push(&self, request: DiskRequest) {
        let first = {
            let mut waiting = self.queue.lock();
            waiting.push(request);
            waiting.len() == 1
        };
        if first {
            self.thread.thread().unpark();
        }
    }

    /// Carries out a write in the calling thread, which is the one that pushes,
    /// and has had an answer to all that it pushed. Gives the request back where
    /// more than writing would have to be done.
    pub(super) fn write_here(&self, request: DiskRequest) -> Result<DiskDone, DiskRequest> {
        match self.queue.ops.try_lock() {
            Ok(mut ops) if ops.only_writes(&request.op) => Ok(ops.carry_out(request)),
            _ => Err(request),
        }
    }

    /// What waits is not carried out any more.
    pub(super) fn close(&self) {
        self.queue.closed.store(true, Ordering::Release);
        self.thread.thread().unpark();
    }

    pub(super) fn join(self) {
        // A panic has aborted the process before it could get here.
        let _ = self.thread.join();
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<DiskRequest>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ops(&self) -> std::sync::MutexGuard<'_, Ops> {
        self.ops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

fn work(queue: &Queue, inbox: &Inbox) {
    let mut requests = Vec::new();
    while !queue.is_closed() {
        std::mem::swap(&mut *queue.lock(), &mut requests);
        if requests.is_empty() {
            queue.ops().close_replaced();
            // A token of `unpark` given since the look above ends this at once.
            std::thread::park();
            continue;
        }
        for request in requests.drain(..) {
            if queue.is_closed() {
                return;
            }
            let done = queue.ops().carry_out(request);
            inbox.answer(done);
        }
    }
}
