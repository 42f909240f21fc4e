//! Replies that end the wait of a client in a blocking command.
//!
//! The kernel records which clients wait for which keys (`worker::waiting`), the forwarding which of them
//! wait at other nodes (`crates/cluster/src/forward/waits.rs`), and the connection that it does: it runs
//! no other request, it is read within bounds so that its end is noticed, and it resumes when data
//! arrives, on timeout, by `CLIENT UNBLOCK`, or when the node stops.

use rufous_base::Output;
use rufous_cluster::forward::error_of;
use rufous_command::{Failure, Reply};
use rufous_kernel::worker::WaitEnd;
use rufous_wire::message::How;
use std::borrow::Cow;

/// The reply to a waiting client of another node when this node stops.
const STOPPING: &str = "UNBLOCKED the node that has the key is shutting down";
/// The end of a wait of a client of another node where too many of them wait here.
const TOO_MANY: &str =
    "ERR too many clients of this node wait for data at the node that has the key: connect there";

/// The end of a wait of another node where too many wait here.
pub(crate) fn too_many() -> WaitEnd {
    error(TOO_MANY)
}

/// The end of a wait of another node's client when this node stops.
pub(super) fn stopping() -> WaitEnd {
    error(STOPPING)
}

fn error(text: &'static str) -> WaitEnd {
    let mut out = Output::default();
    Reply::new(&mut out, false).error(&Failure(Cow::Borrowed(text)));
    WaitEnd::Reply(out)
}

/// The end of a wait in the kernel.
pub(crate) fn end_of(how: How) -> WaitEnd {
    error_of(how).map_or(WaitEnd::TimedOut, error)
}
