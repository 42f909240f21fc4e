//! The limit on open files, which is the limit on connections.

use rustix::process::{Resource, getrlimit, setrlimit};

/// What the process needs beside its clients: listeners, reactors, logs.
const BESIDE_CLIENTS: u64 = 128;

/// What is asked for where the system sets no limit.
const PLENTY: u64 = 1 << 20;

/// `RLIMIT_NOFILE` as found and as raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLimit {
    pub before: u64,
    pub now: u64,
    /// Enough for the clients that the configuration allows.
    pub enough: bool,
}

/// Raises the soft limit as far as this process may, and returns the result.
pub(crate) fn raise_fd_limit(max_clients: usize) -> FdLimit {
    let found = getrlimit(Resource::Nofile);
    let before = found.current.unwrap_or(u64::MAX);
    let most = found.maximum.unwrap_or(PLENTY).max(before);
    let mut now = before;
    if before < most {
        let mut wanted = found;
        wanted.current = Some(most);
        match setrlimit(Resource::Nofile, wanted) {
            Ok(()) => now = most,
            Err(error) => {
                tracing::warn!(%error, before, most, "cannot raise the limit on open files")
            }
        }
    }
    let needed = (max_clients as u64).saturating_add(BESIDE_CLIENTS);
    let enough = now >= needed;
    if enough {
        tracing::debug!(before, now, "open files");
    } else {
        tracing::warn!(
            now,
            needed,
            "too few open files for so many clients; raise `ulimit -n`"
        );
    }
    FdLimit {
        before,
        now,
        enough,
    }
}
