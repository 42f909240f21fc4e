//! Clients: they append values of their own to lists, and read lists, at any
//! node that answers.

use super::SLOTS;
use super::node::{ALL_KEYS, KEYS, Node, Worker, deletion, effect};
use super::oracle::{Operation, What};
use rufous_base::rng::Rng;
use rufous_base::slot::worker_of_slot;
use rufous_chain::{Peer, Store};
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// Slot and key: a list.
pub type Place = (u16, u8);

/// A request whose operation waits to be acknowledged.
#[derive(Debug)]
struct Waiting {
    position: u64,
    place: Place,
    /// Which operation on the place it is.
    operation: usize,
}

#[derive(Debug, Default)]
pub(super) struct Clients {
    next: u32,
    /// Counts whatever clients do.
    time: u64,
    waiting: BTreeMap<Peer, Vec<Waiting>>,
    pub(super) operations: BTreeMap<Place, Vec<Operation>>,
    pub(super) acknowledged: u64,
    pub(super) reads: u64,
    pub(super) hash: u64,
    pub(super) stop: bool,
}

impl Clients {
    /// Sends a request to one of so many workers, which answers it, or does not.
    pub(super) fn act(
        &mut self,
        (peer, count): (Peer, u16),
        worker: &mut Worker,
        local: u64,
        rng: &mut Rng,
    ) {
        let slot = SLOTS[rng.below(SLOTS.len() as u64) as usize];
        let key = rng.below(u64::from(KEYS)) as u8;
        let is_its = worker_of_slot(slot, count.into()).0 == peer.worker;
        if self.stop || rng.below(3) != 0 || !is_its {
            return;
        }
        let (replica, store) = (&mut worker.replica, &mut worker.store);
        let serves = replica.serves(slot, local).is_ok();
        if serves && rng.below(4) == 0 {
            // No client asks for this one; all members are compared after quiet.
            let key = KEYS + rng.below(u64::from(ALL_KEYS - KEYS)) as u8;
            let effect = match rng.below(3) {
                0 => deletion(key),
                _ => effect(key, 0),
            };
            store.apply(slot, &effect);
            replica.append(slot, effect.into(), store);
            return;
        }
        let (position, what) = if serves && rng.below(2) == 0 {
            self.next += 1;
            let effect = effect(key, self.next);
            store.apply(slot, &effect);
            let position = replica.append(slot, effect.into(), store);
            (position, What::Append(self.next))
        } else if serves {
            (replica.position(), What::Read(store.list(slot, key)))
        } else if replica.may_read(slot, local) {
            (0, What::Read(store.list(slot, key)))
        } else {
            return;
        };
        self.time += 1;
        let operations = self.operations.entry((slot, key)).or_default();
        operations.push(Operation {
            what,
            began: self.time,
            ended: None,
        });
        self.waiting.entry(peer).or_default().push(Waiting {
            position,
            place: (slot, key),
            operation: operations.len() - 1,
        });
    }

    /// The node has stopped: the outcome of its requests is unknown.
    pub(super) fn lose(&mut self, no: NodeNo) {
        self.waiting.retain(|peer, _| peer.node != no);
    }

    /// Replies that may leave.
    pub(super) fn settle(&mut self, now: u64, nodes: &mut BTreeMap<NodeNo, Node>) {
        for node in nodes.values_mut().filter(|node| node.runs(now)) {
            for (worker, n) in node.workers.iter_mut().zip(0..) {
                let peer = Peer {
                    node: node.no,
                    worker: n,
                };
                if worker.runs(now) {
                    self.settle_worker(peer, worker);
                }
            }
        }
    }

    fn settle_worker(&mut self, peer: Peer, worker: &mut Worker) {
        if worker.replica.take_lost() {
            self.waiting.remove(&peer);
        }
        let settled = worker.replica.settled();
        let waiting = std::mem::take(self.waiting.entry(peer).or_default());
        for request in waiting {
            if request.position <= settled {
                self.reply(&request);
            } else {
                self.waiting.entry(peer).or_default().push(request);
            }
        }
    }

    fn reply(&mut self, request: &Waiting) {
        self.time += 1;
        let operations = self.operations.entry(request.place).or_default();
        let operation = &mut operations[request.operation];
        operation.ended = Some(self.time);
        let seen = match &operation.what {
            What::Append(value) => {
                self.acknowledged += 1;
                u64::from(*value)
            }
            What::Read(list) => {
                self.reads += 1;
                list.iter()
                    .fold(1 << 40, |hash, value| mixed(hash ^ u64::from(*value)))
            }
        };
        self.hash = mixed(self.hash ^ seen);
    }
}

/// A number that depends on all bits of another one.
pub(super) fn mixed(number: u64) -> u64 {
    Rng::new(number).next_u64()
}
