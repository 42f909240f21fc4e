//! Clients: they append values of their own to lists, and read lists, at any
//! node that answers.

use super::SLOTS;
use super::node::{KEYS, ListStore, Lists, Node, effect};
use crate::replica::{Replica, Store};
use rufous_base::rng::Rng;
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

#[derive(Debug)]
enum What {
    Append(u32),
    Read(Vec<u32>),
}

/// A request that waits for what it tells of to be acknowledged.
#[derive(Debug)]
struct Waiting {
    position: u64,
    /// Which of its replies had come when it began.
    began: usize,
    place: (u16, u8),
    what: What,
}

/// What a place shows for sure.
#[derive(Debug, Default)]
struct Known {
    /// The longest list that was read, or acknowledged.
    list: Vec<u32>,
    acknowledged: Vec<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Clients {
    next: u32,
    waiting: BTreeMap<NodeNo, Vec<Waiting>>,
    /// By place: each reply's list, in the order of replies. An append that is
    /// acknowledged is a list of one that has to be contained.
    known: BTreeMap<(u16, u8), Known>,
    /// What was known of a place when requests began.
    replies: Vec<((u16, u8), What)>,
    pub(super) stop: bool,
}

impl Clients {
    pub(super) fn acknowledged(&self) -> u64 {
        self.known
            .values()
            .map(|known| known.acknowledged.len() as u64)
            .sum()
    }

    /// Sends a request to a node, which answers it, or does not.
    pub(super) fn act(
        &mut self,
        no: NodeNo,
        now: u64,
        local: u64,
        replica: &mut Replica,
        store: &mut ListStore,
        rng: &mut Rng,
    ) {
        let _ = now;
        let place = (
            SLOTS[rng.below(3) as usize],
            rng.below(u64::from(KEYS)) as u8,
        );
        let (slot, key) = place;
        let began = self.replies.len();
        let serves = replica.serves(slot, local).is_ok();
        if self.stop || rng.below(3) != 0 {
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
        self.waiting.entry(no).or_default().push(Waiting {
            position,
            began,
            place,
            what,
        });
    }

    /// The node has stopped: nobody knows what becomes of its requests.
    pub(super) fn lose(&mut self, no: NodeNo) {
        self.waiting.remove(&no);
    }

    /// Replies that may leave.
    pub(super) fn settle(&mut self, now: u64, nodes: &mut BTreeMap<NodeNo, Node>) {
        for (no, node) in nodes.iter_mut().filter(|(_, node)| node.runs(now)) {
            if node.replica.take_lost() {
                self.waiting.remove(no);
            }
            let settled = node.replica.settled();
            let waiting = self.waiting.entry(*no).or_default();
            let (done, still) = std::mem::take(waiting)
                .into_iter()
                .partition::<Vec<_>, _>(|request| request.position <= settled);
            *waiting = still;
            for request in done {
                self.reply(request);
            }
        }
    }

    /// Compares a reply with those that had come before its request began.
    fn reply(&mut self, request: Waiting) {
        if let What::Read(list) = &request.what {
            for (place, earlier) in &self.replies[..request.began] {
                if *place != request.place {
                    continue;
                }
                match earlier {
                    What::Append(value) => {
                        assert!(
                            list.contains(value),
                            "{place:?}: {value} is not in {list:?}"
                        );
                    }
                    What::Read(earlier) => {
                        assert!(
                            list.starts_with(earlier),
                            "{place:?}: {earlier:?}, then {list:?}"
                        );
                    }
                }
            }
        }
        let known = self.known.entry(request.place).or_default();
        match &request.what {
            What::Append(value) => known.acknowledged.push(*value),
            What::Read(list) if list.len() > known.list.len() => known.list = list.clone(),
            What::Read(_) => (),
        }
        self.replies.push((request.place, request.what));
    }

    /// After quiet: nothing is missing, nothing is twice.
    pub(super) fn judge(&self, slot: u16, lists: Lists) {
        for (place, known) in self.known.iter().filter(|(place, _)| place.0 == slot) {
            let list = lists.get(&place.1).cloned().unwrap_or_default();
            assert!(
                list.starts_with(&known.list),
                "{place:?}: {:?}, then {list:?}",
                known.list
            );
            let lost = known
                .acknowledged
                .iter()
                .find(|value| !list.contains(value));
            assert_eq!(lost, None, "{place:?}: acknowledged and lost");
            let mut once = list.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), list.len(), "{place:?}: twice in {list:?}");
        }
    }
}
