//! Requests that were given to this node's own workers, and whose keys moved to another node before
//! they ran: they waited for a slot, or for a worker that already had the next epoch. They were not
//! executed, and are forwarded to that node.
//!
//! So that none is overtaken, connections with pending requests run no new ones after a mapping
//! arrives until these are answered.

use super::forward::Asked;
use super::redirect::Door;
use super::words;
use crate::front::{Front, Message};
use rufous_base::{Args, ConnId, Effects, Now};
use rufous_command::Failure;
use rufous_kernel::Header;
use rufous_wire::Bytes;
use std::collections::BTreeMap;

/// A connection, and the number of a request on it.
type Place = (u32, u32, u32);

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    all: Vec<(Header, Bytes)>,
    /// For requests that run here after their keys were at another node: the number of attempts,
    /// and when they are given up.
    tried: BTreeMap<Place, (u32, u64)>,
}

impl Returned {
    /// Returns an error if the request is too large to be forwarded.
    pub(crate) fn take(&mut self, header: &Header, args: &Args<'_>) -> Option<Failure> {
        let refused = words::too_large_by_now(args);
        if refused.is_none() {
            self.all.push((*header, words::write(args)));
        }
        refused
    }

    pub(super) fn note_tried(&mut self, asked: &Asked) {
        let tries = (asked.tries + 1, asked.until_us);
        self.tried.insert(place(&asked.header), tries);
    }

    /// Forgets those whose time is over. Answered ones are not recognised, so they stay until then.
    pub(super) fn forget_late(&mut self, now: Now) {
        self.tried
            .retain(|_, (_, until_us)| now.mono_us < *until_us);
    }
}

fn place(header: &Header) -> Place {
    (header.conn.slot, header.conn.generation, header.seq)
}

impl Front {
    /// Forwards the requests to the nodes that have their keys.
    #[inline]
    pub(super) fn take_back(&mut self, now: Now, fx: &mut Effects<Message>) {
        if !self.forward.returned.all.is_empty() {
            self.take_all_back(now, fx);
        }
    }

    #[cold]
    fn take_all_back(&mut self, now: Now, fx: &mut Effects<Message>) {
        for (header, words) in std::mem::take(&mut self.forward.returned.all) {
            let mut asked = self.asked(&header, words);
            let tried = self.forward.returned.tried.remove(&place(&header));
            (asked.tries, asked.until_us) = tried.unwrap_or_default();
            self.send_later(now, asked, 0, fx);
        }
    }

    /// Slots may have moved to other nodes: requests pending at this node's workers may come back.
    pub(super) fn hold_up_under_way(&mut self, fx: &mut Effects<Message>) {
        let all = self.connections.iter().flatten();
        let waits = all
            .filter(|connection| connection.door() == Door::Plain && !connection.slots.is_empty());
        let waits: Vec<ConnId> = waits.map(|connection| connection.id).collect();
        for conn in waits {
            self.hold_up(conn, fx);
        }
    }
}
