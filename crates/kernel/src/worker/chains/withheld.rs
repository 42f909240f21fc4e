//! Replies, and messages between workers of the node, that wait until all copies have the writes that
//! they depend on: those of their own slots, and no others.
//!
//! Invariants:
//! 1. What depends on a slot leaves once the slot's chain has acknowledged all that was written to the
//!    slot before, in the open frame included.
//! 2. What depends on one slot leaves in order.
//! 3. If this node leaves a slot's chain first, or that takes too long, the outcome of what depends on
//!    the slot is unknown.

use crate::batch::Header;
use crate::worker::Message;
use rufous_base::{Output, Until, WorkerId};
use rufous_chain::planted::{self, Planted};
use std::collections::{BTreeMap, VecDeque};

/// What waits.
#[derive(Debug)]
pub(in crate::worker) enum Item {
    /// The reply to a request of a worker, which may be this one.
    Reply {
        origin: WorkerId,
        header: Header,
        reply: Output,
    },
    /// A message to a worker, which may be this one, and what else it waits for.
    Message(WorkerId, (Until, Message)),
}

impl Item {
    /// The size of the replies in it.
    fn size(&self) -> usize {
        match self {
            Item::Reply { reply, .. } => reply.held_bytes(),
            Item::Message(_, (_, Message::Replies(batch))) => batch.replies.held_bytes(),
            Item::Message(..) => 0,
        }
    }
}

/// How long an item may wait: much longer than until a node that fails is replaced.
const MOST_US: u64 = 10_000_000;

/// How the wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Fate {
    Acknowledged,
    /// This node is not in the chain any more, or has waited too long.
    Lost,
}

/// An item in the line of a slot.
#[derive(Debug)]
struct Place {
    item: u64,
    /// The write of the slot that has to be acknowledged; not known before the open frame ends.
    write: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    item: Item,
    /// The number of lines that it waits in.
    lines: usize,
    since_us: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(in crate::worker) struct Withheld {
    lines: BTreeMap<u16, VecDeque<Place>>,
    /// In order of arrival.
    items: BTreeMap<u64, Waiting>,
    now_us: u64,
    next: u64,
    /// The size of replies among them.
    bytes: usize,
    /// Slots whose lines end with items of the open frame.
    open: Vec<u16>,
    ended: Vec<(Item, Fate)>,
    /// The node stops, and waits for no other.
    is_over: bool,
}

impl Withheld {
    /// An item depends on these slots.
    pub(super) fn on_item(&mut self, slots: &[u16], item: Item) {
        if self.is_over && !planted::is(Planted::StopWaitsAgain) {
            return self.ended.push((item, Fate::Lost));
        }
        self.next += 1;
        self.bytes += item.size();
        let (lines, since_us) = (slots.len(), self.now_us);
        let waiting = Waiting {
            item,
            lines,
            since_us,
        };
        self.items.insert(self.next, waiting);
        for slot in slots {
            let (item, write) = (self.next, None);
            let line = self.lines.entry(*slot).or_default();
            line.push_back(Place { item, write });
            if self.open.last() != Some(slot) {
                self.open.push(*slot);
            }
        }
    }

    /// What has been written so far is in the chains: `last` is the last write of a slot. Returns the slots whose items know
    /// by now what they wait for; it may be acknowledged already.
    pub(super) fn on_append(&mut self, last: impl Fn(u16) -> u64) -> Vec<u16> {
        let slots = std::mem::take(&mut self.open);
        for slot in slots.iter().copied() {
            let Some(line) = self.lines.get_mut(&slot) else {
                continue;
            };
            let open = line.iter_mut().rev();
            let open = open.take_while(|place| place.write.is_none());
            let write = Some(last(slot));
            open.for_each(|place| place.write = write);
        }
        slots
    }

    /// The chain of a slot has acknowledged its writes up to this one; `None`: this node is not in
    /// it.
    pub(super) fn on_acknowledged(&mut self, slot: u16, upto: Option<u64>) {
        let Some(line) = self.lines.get_mut(&slot) else {
            return;
        };
        let Some(upto) = upto else {
            let line = std::mem::take(line);
            self.lines.remove(&slot);
            for place in line {
                self.end(place.item, Fate::Lost);
            }
            return;
        };
        let is_due = |place: &mut Place| place.write.is_some_and(|write| write <= upto);
        let mut due = Vec::new();
        while let Some(place) = line.pop_front_if(is_due) {
            // It may have waited for another slot, too, which was lost.
            let waits = self.items.get_mut(&place.item);
            let is_last = waits.is_some_and(|waiting| {
                waiting.lines -= 1;
                waiting.lines == 0
            });
            if is_last {
                due.push(place.item);
            }
        }
        if line.is_empty() {
            self.lines.remove(&slot);
        }
        for item in due {
            self.end(item, Fate::Acknowledged);
        }
    }

    fn end(&mut self, item: u64, fate: Fate) {
        if let Some(Waiting { item, .. }) = self.items.remove(&item) {
            self.bytes -= item.size();
            self.ended.push((item, fate));
        }
    }

    /// Time has passed: gives up what has waited too long. To be called periodically.
    pub(super) fn on_time(&mut self, now_us: u64) {
        self.now_us = now_us;
        if planted::is(Planted::NotGivenUp) {
            return;
        }
        let is_old = |waiting: &Waiting| now_us >= waiting.since_us + MOST_US;
        while let Some((number, _)) = self.items.first_key_value().filter(|(_, of)| is_old(of)) {
            let number = *number;
            self.end(number, Fate::Lost);
        }
    }

    /// The node stops: gives up everything, and all later items at once. Returns how many items that were.
    pub(super) fn give_up(&mut self) -> usize {
        self.is_over = true;
        let all: Vec<u64> = self.items.keys().copied().collect();
        for item in &all {
            self.end(*item, Fate::Lost);
        }
        all.len()
    }

    /// Likewise of all slots that anything waits for.
    pub(super) fn on_chains(&mut self, upto: impl Fn(u16) -> Option<u64>) {
        for slot in self.lines.keys().copied().collect::<Vec<_>>() {
            self.on_acknowledged(slot, upto(slot));
        }
    }

    /// Items whose wait has ended, in order.
    pub(super) fn take_ended(&mut self) -> Vec<(Item, Fate)> {
        std::mem::take(&mut self.ended)
    }

    /// The size of the replies that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: WorkerId = WorkerId(0);

    fn message(multi: u64) -> Item {
        Item::Message(HERE, (Until::Logged, Message::Committed { multi }))
    }

    fn ended(withheld: &mut Withheld) -> Vec<(u64, Fate)> {
        let ended = withheld.take_ended().into_iter();
        let named = ended.map(|(item, fate)| match item {
            Item::Message(HERE, (_, Message::Committed { multi })) => (multi, fate),
            other => panic!("{other:?}"),
        });
        named.collect()
    }

    #[test]
    fn an_item_waits_for_its_own_slot_alone() {
        let mut withheld = Withheld::default();
        withheld.on_item(&[1], message(10));
        withheld.on_item(&[2], message(20));
        withheld.on_acknowledged(2, Some(99));
        assert_eq!(ended(&mut withheld), [], "its frame is open");
        withheld.on_append(|slot| u64::from(slot) * 5);
        withheld.on_acknowledged(2, Some(9));
        assert_eq!(ended(&mut withheld), []);
        withheld.on_acknowledged(2, Some(10));
        assert_eq!(ended(&mut withheld), [(20, Fate::Acknowledged)]);
        withheld.on_chains(|_| Some(5));
        assert_eq!(ended(&mut withheld), [(10, Fate::Acknowledged)]);
        assert!(withheld.is_empty() && withheld.lines.is_empty());
    }

    #[test]
    fn an_item_of_two_slots_waits_for_both() {
        let mut withheld = Withheld::default();
        withheld.on_item(&[1, 2], message(1));
        withheld.on_append(|_| 3);
        withheld.on_item(&[2], message(2));
        withheld.on_append(|_| 4);
        withheld.on_acknowledged(2, Some(4));
        assert_eq!(ended(&mut withheld), [(2, Fate::Acknowledged)]);
        withheld.on_acknowledged(1, Some(3));
        assert_eq!(ended(&mut withheld), [(1, Fate::Acknowledged)]);
    }

    #[test]
    fn what_waits_too_long_is_given_up() {
        let mut withheld = Withheld::default();
        withheld.on_time(5);
        withheld.on_item(&[1, 2], message(1));
        withheld.on_append(|_| 3);
        withheld.on_time(5 + MOST_US - 1);
        withheld.on_item(&[2], message(2));
        withheld.on_append(|_| 4);
        assert_eq!(ended(&mut withheld), []);
        withheld.on_time(5 + MOST_US);
        assert_eq!(ended(&mut withheld), [(1, Fate::Lost)]);
        withheld.on_chains(|_| Some(4));
        assert_eq!(ended(&mut withheld), [(2, Fate::Acknowledged)]);
        assert!(withheld.is_empty() && withheld.lines.is_empty());
    }

    #[test]
    fn a_node_that_stops_gives_up_everything() {
        let mut withheld = Withheld::default();
        withheld.on_item(&[1, 2], message(1));
        withheld.on_append(|_| 3);
        withheld.on_item(&[2], message(2));
        assert_eq!(withheld.give_up(), 2);
        assert_eq!(ended(&mut withheld), [(1, Fate::Lost), (2, Fate::Lost)]);
        withheld.on_append(|_| 4);
        withheld.on_chains(|_| Some(4));
        assert!(withheld.is_empty() && withheld.lines.is_empty());
        assert_eq!((ended(&mut withheld), withheld.give_up()), (vec![], 0));
        withheld.on_item(&[1], message(3));
        assert_eq!(ended(&mut withheld), [(3, Fate::Lost)], "at once");
    }

    #[test]
    fn the_outcome_is_unknown_where_a_slot_moves_away() {
        let mut withheld = Withheld::default();
        withheld.on_item(&[1, 2], message(1));
        withheld.on_item(&[2], message(2));
        withheld.on_append(|_| 3);
        withheld.on_chains(|slot| (slot == 2).then_some(2));
        assert_eq!(ended(&mut withheld), [(1, Fate::Lost)]);
        withheld.on_acknowledged(2, Some(3));
        assert_eq!(ended(&mut withheld), [(2, Fate::Acknowledged)]);
        assert!(withheld.is_empty() && withheld.lines.is_empty());
    }
}
