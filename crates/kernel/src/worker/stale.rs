//! Requests that were in transit while the table of keyspaces changed: they were checked and routed
//! by an outdated table.
//!
//! A request that waited at the worker of its own connection is executed over the workers that have
//! its keys now. A request from another worker whose keys that worker would now route elsewhere,
//! even to its own replicas, is not executed, and the client is told to send it again: if it were
//! sent back, a later request of the same connection could overtake it, and if it were executed
//! here, a connection would write to one replica and read another. A request that lattice keys do
//! not support is refused.

use super::store::Store;
use crate::batch::Header;
use crate::program::Program;
use rufous_base::{Args, Output, WorkerId};

const AGAIN: &str = "was on its way while the keyspaces were changed, and was not done: \
                     send it again";

impl Store<'_> {
    /// Whether this worker serves a key for connections of `origin`, which may be this worker.
    pub(super) fn is_here(&self, origin: WorkerId, key: &[u8]) -> bool {
        let placement = self.placement.clone().seen_by(origin);
        placement.owner(key) == self.id
    }

    /// Whether a request that was checked by another table must not be executed; then appends the
    /// reply.
    pub(super) fn refuses_stale<P: Program>(
        &self,
        origin: WorkerId,
        header: &Header,
        args: &Args<'_>,
        mut keys: impl Iterator<Item = impl AsRef<[u8]>>,
        out: &mut Output,
    ) -> bool {
        if P::refuse_on_lattice(header.command, args, self.placement, header.resp3, out) {
            return true;
        }
        let is_elsewhere = keys.any(|key| !self.is_here(origin, key.as_ref()));
        if is_elsewhere {
            P::refuse(header.command, AGAIN, header.resp3, out);
        }
        is_elsewhere
    }
}
