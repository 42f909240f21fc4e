//! A thread of low priority that drops what is large, so that freeing a
//! million elements keeps no client waiting.

use crate::thread;
use rufous_base::Garbage;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// What may wait to be dropped; beyond that the worker drops it itself, so
/// that deleting faster than freeing does not fill the memory.
const WAITING: usize = 1024;

/// The same limit in bytes. While less than this waits, garbage of any size is
/// accepted: its memory was in use until now, and freeing it would stop a worker
/// for a long time.
const WAITING_BYTES: usize = 256 * 1024 * 1024;

/// A worker's way to the reaper.
#[derive(Clone, Debug)]
pub(crate) struct Reaper {
    queue: SyncSender<Garbage>,
    /// Of all workers, what is being dropped included.
    waiting_bytes: Arc<AtomicUsize>,
}

impl Reaper {
    /// The thread ends when every `Reaper` is gone.
    pub(crate) fn start() -> std::io::Result<(Self, JoinHandle<()>)> {
        let (queue, receiver) = sync_channel(WAITING);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&waiting_bytes);
        let thread = std::thread::Builder::new()
            .name("rufous-reaper".into())
            .spawn(move || reap(&receiver, &waiting))?;
        let reaper = Self {
            queue,
            waiting_bytes,
        };
        Ok((reaper, thread))
    }

    pub(crate) fn drop_later(&self, garbage: Garbage) {
        if self.waiting_bytes.load(Ordering::Relaxed) >= WAITING_BYTES {
            return drop(garbage);
        }
        let bytes = garbage.bytes;
        // Before it can be taken away again on the other side.
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        match self.queue.try_send(garbage) {
            Ok(()) => {}
            Err(TrySendError::Full(garbage) | TrySendError::Disconnected(garbage)) => {
                self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                drop(garbage);
            }
        }
    }
}

fn reap(receiver: &Receiver<Garbage>, waiting_bytes: &AtomicUsize) {
    thread::give_way(19);
    while let Ok(Garbage { bytes, what }) = receiver.recv() {
        drop(what);
        waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use std::thread::ThreadId;

    struct Tell(Sender<ThreadId>);

    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().id());
        }
    }

    /// Keeps its thread from going on until told.
    struct Stick(Receiver<()>);

    impl Drop for Stick {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    fn garbage(bytes: usize, what: impl std::any::Any + Send) -> Garbage {
        Garbage {
            bytes,
            what: Box::new(what),
        }
    }

    #[test]
    fn garbage_is_dropped_by_another_thread() {
        let (reaper, thread) = Reaper::start().expect("a thread");
        let (tell, told) = channel();
        reaper.drop_later(garbage(1, Tell(tell)));
        let by = told.recv().expect("dropped");
        assert_eq!(by, thread.thread().id());
        drop(reaper);
        thread.join().expect("ends when nobody can send any more");
    }

    #[test]
    fn beyond_so_many_bytes_a_worker_drops_its_garbage_itself() {
        let (reaper, thread) = Reaper::start().expect("a thread");
        let (go_on, wait) = channel();
        let (tell, told) = channel();
        let me = std::thread::current().id();
        reaper.drop_later(garbage(1, Stick(wait)));
        reaper.drop_later(garbage(WAITING_BYTES, Tell(tell.clone())));
        assert!(
            told.try_recv().is_err(),
            "the first is taken, however large"
        );
        for _ in 0..3 {
            reaper.drop_later(garbage(1, Tell(tell.clone())));
            assert_eq!(told.try_recv(), Ok(me));
        }
        go_on.send(()).expect("it waits");
        assert_eq!(told.recv(), Ok(thread.thread().id()));
        // What was dropped counts no more, and nothing was counted twice.
        while reaper.waiting_bytes.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        reaper.drop_later(garbage(1, Tell(tell)));
        assert_eq!(told.recv(), Ok(thread.thread().id()));
        drop(reaper);
        thread.join().expect("ends when nobody can send any more");
    }
}
