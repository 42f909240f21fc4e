//! A thread of low priority that drops what is large, so that freeing a
//! million elements keeps no client waiting.

use rufous_base::Garbage;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// What may wait to be dropped; beyond that the worker drops it itself, so
/// that deleting faster than freeing does not fill the memory.
const WAITING: usize = 1024;

/// A worker's way to the reaper.
#[derive(Clone, Debug)]
pub(crate) struct Reaper {
    queue: SyncSender<Garbage>,
}

impl Reaper {
    /// The thread ends when every `Reaper` is gone.
    pub(crate) fn start() -> std::io::Result<(Self, JoinHandle<()>)> {
        let (queue, receiver) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("rufous-reaper".into())
            .spawn(move || reap(&receiver))?;
        Ok((Self { queue }, thread))
    }

    pub(crate) fn drop_later(&self, garbage: Garbage) {
        match self.queue.try_send(garbage) {
            Ok(()) => {}
            Err(TrySendError::Full(garbage) | TrySendError::Disconnected(garbage)) => drop(garbage),
        }
    }
}

fn reap(receiver: &Receiver<Garbage>) {
    // Linux keeps a priority per thread: the process's other threads keep theirs.
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19) {
        tracing::debug!(%error, "the reaper keeps the usual priority");
    }
    while let Ok(garbage) = receiver.recv() {
        drop(garbage);
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

    #[test]
    fn garbage_is_dropped_by_another_thread() {
        let (reaper, thread) = Reaper::start().expect("a thread");
        let (tell, told) = channel();
        reaper.drop_later(Box::new(Tell(tell)));
        let by = told.recv().expect("dropped");
        assert_eq!(by, thread.thread().id());
        drop(reaper);
        thread.join().expect("ends when nobody can send any more");
    }
}
