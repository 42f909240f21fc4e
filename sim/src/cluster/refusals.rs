//! What nodes may refuse: a request for a slot that no node serves waits first.

use super::clients::Door;
use super::wires::node_of;
use super::wishes::Wish;
use super::world::World;
use crate::history::Outcome;
use rufous_base::limits::SLOT_PATIENCE_US;

/// How refusals begin for slots that no node has served for too long.
const UNSERVED: [&str; 5] = [
    "TRYAGAIN The transaction's keys ",
    "CLUSTERDOWN Hash slot not served",
    "CLUSTERDOWN The node has started",
    "CLUSTERDOWN A node with a copy of the slot was lost",
    "CLUSTERDOWN All copies of the slot have stopped",
];
/// The clocks of nodes may run faster.
const LEAST_US: u64 = SLOT_PATIENCE_US / 10 * 9;

/// Whether a node has refused a request, which was sent so long ago, too early. Only for clients that send one at a
/// time: one behind a request that has waited in vain does not wait again.
fn is_early(text: &str, waited_us: Option<u64>) -> bool {
    let is_unserved = UNSERVED.iter().any(|begin| text.starts_with(begin));
    is_unserved && waited_us.is_some_and(|us| us < LEAST_US)
}

impl World {
    /// A client was refused what it asked for.
    pub(super) fn on_refused(&mut self, client: usize, wish: Wish, text: &str) {
        let found = &mut self.clients[client];
        let slot = wish.slot();
        if let Some(slot) = slot {
            found.known.remove(&slot);
        }
        let at = found.connection.as_ref().map(|connection| connection.at);
        let door = at.map(|at| at.door);
        let waited_us = found.asked_us.map(|us| self.engine.now_us - us);
        let stops = at.is_some_and(|at| self.nodes[at.node].may_give_up(self.engine.now_us));
        // Nothing is planned for a while after a restored coordinator, and slots are not served for too long.
        let is_judged = door == Some(Door::Redirecting) && !self.plan.restores();
        if is_judged && !stops && is_early(text, waited_us) {
            return self.fail(format!("client {client}: {wish:?} has not waited: {text}"));
        }
        let pause = match text.split(' ').collect::<Vec<_>>()[..] {
            ["MOVED", told, to] if door == Some(Door::Redirecting) => {
                let is_asked = |slot: &u16| told == slot.to_string();
                let node = node_of(to).zip(slot.filter(is_asked));
                let Some((node, slot)) = node else {
                    return self.fail(format!("client {client} is sent nowhere: {text}"));
                };
                found.known.insert(slot, node);
                self.reach("a client was sent elsewhere");
                // Two nodes may send it to and fro while they know different epochs.
                self.clients[client].random.skewed(10, 20_000)
            }
            [
                "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MISCONF" | "UNBLOCKED",
                ..,
            ] => {
                self.reach("a client was told to try again");
                self.clients[client].random.skewed(5_000, 200_000)
            }
            ["UNKNOWNRESULT", ..]
                if door == Some(Door::Plain) && (wish.writes() || wish.is_spread()) =>
            {
                self.reach("who has passed a request on does not know what became of it");
                return self.record(client, wish, Outcome::Open);
            }
            _ => return self.fail(format!("client {client} is refused {wish:?}: {text}")),
        };
        // Copies are read where they are when all is quiet; the last ones may move even then.
        let has_copy = wish
            .at
            .zip(slot)
            .is_none_or(|(at, slot)| self.has_copy(at.node, slot));
        let found = &mut self.clients[client];
        found.pause_us = found.pause_us.max(pause);
        if has_copy && !wish.aim.is_guarded() {
            found.again.push_back(wish);
        }
    }

    /// Whether the node is in the slot's chain.
    fn has_copy(&self, node: usize, slot: u16) -> bool {
        let no = self.coordinator.number_of(self.nodes[node].id);
        let chain = self.coordinator.mapping.chains.of(slot);
        no.is_some_and(|no| chain.names(no))
    }
}
