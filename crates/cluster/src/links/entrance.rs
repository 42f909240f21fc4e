//! Connections of which the node at the other end is not known yet: what their sessions need, and how
//! many there may be.

use super::link::Link;
use rufous_base::{Origin, WorkerId};
use rufous_wire::proof::{Auth, Proving, Role};
use std::collections::BTreeMap;

/// Limit on accepted connections of a worker without a known node. When there is one more, the oldest
/// is closed: a node needs a few round trips to prove itself, and is not kept out by connections that
/// say nothing.
pub(super) const MAX_STRANGERS: usize = 128;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Entrance {
    /// Connections so far: each has a nonce of its own.
    count: u64,
}

impl Entrance {
    /// What a new connection needs to prove the secret, if there is one.
    pub(super) fn proving(
        &mut self,
        auth: Option<&Auth>,
        worker: WorkerId,
        origin: Origin,
    ) -> Option<Proving> {
        self.count += 1;
        let role = match origin {
            Origin::Dialled { .. } => Role::Dialler,
            _ => Role::Acceptor,
        };
        auth.map(|auth| auth.connection(role, worker.0, self.count))
    }
}

/// The connection that makes room for another one.
pub(super) fn oldest_of_too_many(links: &BTreeMap<u32, Link>) -> Option<u32> {
    let strangers = || {
        let all = links.iter();
        all.filter(|(_, link)| link.up.is_none() && link.dialled.is_none())
    };
    if strangers().count() < MAX_STRANGERS {
        return None;
    }
    let oldest = strangers().min_by_key(|(_, link)| (link.opened_us, link.conn.slot));
    oldest.map(|(slot, _)| *slot)
}
