//! Threads whose panic ends the process.

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
