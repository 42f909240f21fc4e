//! Threads whose panic ends the process, and their priority.

use std::io;
use std::thread::JoinHandle;

/// A broken invariant stops the process: the other threads would wait for ever
/// for the one that is gone.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Lowers the calling thread's priority to that niceness.
pub(crate) fn give_way(niceness: i32) {
    // Linux keeps a priority per thread: the process's other threads keep theirs.
    let thread = Some(rustix::thread::gettid());
    if let Err(error) = rustix::process::setpriority_process(thread, niceness) {
        tracing::debug!(%error, "a thread keeps the usual priority");
    }
}

pub(crate) fn spawn(
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(|| {
        let guard = AbortOnPanic;
        run();
        drop(guard);
    })
}
