//! The rule that rebalances a ring, place by place.

use super::balance::Balance;
use super::{NOBODY, Owners, Ring};
use crate::member::NodeNo;
use rufous_base::limits::SLOTS;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter;
use std::ops::Range;

pub(super) fn settle(ring: &mut Ring) {
    let places = ring.copies.min(ring.members.len());
    let mut settling = Settling::of(ring);
    for place in 0..places {
        let mut balance = Balance::of(settling.ring, place);
        let slots = settling.ring.slots.iter().copied().enumerate();
        let empty: Vec<_> = slots
            .filter(|(_, owners)| owners[place] == NOBODY)
            .collect();
        settling.even_out(place, &mut balance, false);
        // A member with enough slots takes the places that no other one can.
        if balance.empty > 0 {
            settling.even_out(place, &mut balance, true);
        }
        // Whoever fills a place receives the data, so another member may do so at the same cost; but
        // not where it was filled from a later place.
        let is_new =
            |(slot, before): &(usize, Owners)| !before.contains(&settling.ring.slots[*slot][place]);
        let filled = empty.into_iter().filter(is_new).map(|(slot, _)| slot);
        let filled = filled.collect();
        settling.exchange(place, &mut balance, filled, false);
        if balance.is_uneven() {
            // With zones, imbalance here adds up at the later places.
            let roughly = settling.zones.iter().all(|zone| *zone == 0);
            settling.exchange(place, &mut balance, (0..SLOTS).collect(), roughly);
        }
    }
}

/// Puts a member in a place. If it is in a later place it has the data already: the two are
/// swapped.
fn put(owners: &mut Owners, place: usize, node: NodeNo) {
    if let Some(later) = owners.iter().position(|owner| *owner == node) {
        owners[later] = owners[place];
    }
    owners[place] = node;
}

struct Settling<'a> {
    ring: &'a mut Ring,
    members: Vec<NodeNo>,
    /// By member number; 0 is none.
    zones: Vec<u16>,
}

impl<'a> Settling<'a> {
    fn of(ring: &'a mut Ring) -> Self {
        let members: Vec<NodeNo> = ring.members.keys().copied().collect();
        let mut names: BTreeMap<&str, u16> = [("", 0)].into();
        let mut zones = vec![0; members.last().map_or(0, |no| usize::from(no.0) + 1)];
        for (no, member) in &ring.members {
            let next = names.len() as u16;
            zones[usize::from(no.0)] = *names.entry(&member.zone).or_insert(next);
        }
        Self {
            ring,
            members,
            zones,
        }
    }

    /// Whether no other owner is in the member's zone; or the present owner of the place shares a
    /// zone with another owner as well, so that nothing is lost: there are fewer zones than copies.
    fn is_apart(&self, owners: &Owners, place: usize, node: NodeNo) -> bool {
        let zone = |node: NodeNo| self.zones.get(usize::from(node.0)).copied().unwrap_or(0);
        let is_apart = |node: NodeNo| {
            let mut others = owners.iter().enumerate().filter(|(at, _)| *at != place);
            zone(node) == 0 || others.all(|(_, other)| zone(*other) != zone(node))
        };
        is_apart(node) || (owners[place] != NOBODY && !is_apart(owners[place]))
    }

    /// A member with too many slots gives some to one with too few; if it cannot, since that one has
    /// other copies of them, a third one takes some and gives others. Only these slots may move; with
    /// `roughly` no more of them than are needed for no member to be far off.
    fn exchange(&mut self, place: usize, balance: &mut Balance, slots: Vec<usize>, roughly: bool) {
        let has = |what: &dyn Fn(NodeNo) -> usize| {
            let members = self.members.iter().copied();
            members.filter(|no| what(*no) > 0).collect::<Vec<NodeNo>>()
        };
        let (givers, takers) = (has(&|no| balance.surplus(no)), has(&|no| balance.lack(no)));
        if givers.is_empty() || takers.is_empty() {
            return;
        }
        let mut owned: BTreeMap<NodeNo, Vec<usize>> = BTreeMap::new();
        for slot in slots {
            owned
                .entry(self.ring.slots[slot][place])
                .or_default()
                .push(slot);
        }
        let members = self.members.clone();
        for from in givers {
            for to in takers.iter().copied() {
                let thirds = members.iter().filter(|third| ![from, to].contains(third));
                let over_third = thirds.map(|third| vec![from, *third, to]);
                for path in iter::once(vec![from, to]).chain(over_third) {
                    let wanted = balance.wanted(from, to, roughly);
                    if wanted == 0 {
                        break;
                    }
                    let count = self.pass_on(place, &path, wanted, &mut owned);
                    balance.give(from, to, count);
                }
            }
        }
    }

    /// Moves up to the given number of slots from each member of the path to the next one, the same
    /// number everywhere. Returns the number.
    fn pass_on(
        &mut self,
        place: usize,
        path: &[NodeNo],
        wanted: usize,
        owned: &mut BTreeMap<NodeNo, Vec<usize>>,
    ) -> usize {
        let movable = |from: NodeNo, to: NodeNo| -> Vec<usize> {
            let slots = owned.get(&from).into_iter().flatten().copied();
            let moves = |slot: &usize| {
                let owners = &self.ring.slots[*slot];
                match owners.iter().position(|node| *node == to) {
                    Some(at) => at > place,
                    None => self.is_apart(owners, place, to),
                }
            };
            slots.filter(moves).take(wanted).collect()
        };
        let hops = path.windows(2).map(|hop| (hop[0], hop[1]));
        let slots = hops.clone().map(|(from, to)| movable(from, to));
        let slots: Vec<_> = slots.collect();
        let count = slots.iter().map(Vec::len).min().unwrap_or(0);
        for (slots, (from, to)) in slots.iter().zip(hops) {
            let moved = &slots[..count];
            for slot in moved {
                put(&mut self.ring.slots[*slot], place, to);
            }
            if let Some(had) = owned.get_mut(&from) {
                had.retain(|slot| !moved.contains(slot));
            }
            owned.entry(to).or_default().extend(moved);
        }
        count
    }

    /// Moves slots at a place from members with too many to members with too few; with `fill`, also
    /// gives slots without an owner to any member.
    fn even_out(&mut self, place: usize, balance: &mut Balance, fill: bool) {
        let mut longest = self.runs(place, balance, fill);
        while let Some((len, Reverse(start))) = longest.pop() {
            let from = self.ring.slots[start][place];
            let surplus = balance.surplus(from);
            if surplus == 0 {
                continue;
            }
            let end = start + len;
            let Some(to) = self.taker(place, start..end, balance, fill) else {
                continue;
            };
            let mut taken = len.min(surplus);
            if !fill {
                taken = taken.min(balance.lack(to));
            }
            if from != NOBODY {
                taken = taken.min(balance.piece(to));
            }
            // An empty place is filled from the side of the run of its new owner.
            let slots = &mut self.ring.slots;
            let at_start = start > 0 && slots[start - 1][place] == to && from == NOBODY;
            let (given, kept) = match at_start {
                true => (start..start + taken, start + taken),
                false => (end - taken..end, start),
            };
            for owners in &mut slots[given] {
                put(owners, place, to);
            }
            balance.give(from, to, taken);
            if taken < len {
                longest.push((len - taken, Reverse(kept)));
            }
        }
    }

    /// Runs of slots that may be given away, the longest first.
    fn runs(
        &self,
        place: usize,
        balance: &Balance,
        fill: bool,
    ) -> BinaryHeap<(usize, Reverse<usize>)> {
        let mut longest = Vec::new();
        let mut start = 0;
        for run in self.ring.slots.chunk_by(|a, b| a == b) {
            let (from, end) = (run[0][place], start + run.len());
            let gives = balance.surplus(from) > 0 && (!fill || from == NOBODY);
            let piece = if gives { balance.longest(from) } else { 1 };
            while gives && start < end {
                let len = piece.min(end - start);
                longest.push((len, Reverse(start)));
                start += len;
            }
            start = end;
        }
        longest.into()
    }

    /// The member that takes some of these slots, which all have the same owners: one that is at a
    /// later place and lacks slots here; then a neighbour, so that virtual nodes grow instead of
    /// becoming more; then the one that lacks most. If a member is in a zone of its own, only
    /// such members take them.
    fn taker(
        &self,
        place: usize,
        slots: Range<usize>,
        balance: &Balance,
        fill: bool,
    ) -> Option<NodeNo> {
        let all = &self.ring.slots;
        let owners = &all[slots.start];
        let near = [slots.start.checked_sub(1), Some(slots.end)];
        let near = near.map(|slot| slot.and_then(|slot| all.get(slot)).map(|o| o[place]));
        let mut best = None;
        for node in self.members.iter().copied() {
            if owners[..place].contains(&node) {
                continue;
            }
            let has = owners.contains(&node);
            let apart = has || self.is_apart(owners, place, node);
            let lacks = fill || balance.lack(node) > 0;
            let grows = owners[place] == NOBODY && near.contains(&Some(node));
            let rank = (apart, lacks, has, grows, balance.rank(node), Reverse(node));
            if best.is_none_or(|best| rank > best) {
                best = Some(rank);
            }
        }
        best.and_then(|(_, lacks, .., Reverse(node))| lacks.then_some(node))
    }
}
