//! The next epoch: a pure function of the mapping and the observed members. The leader of the
//! cluster calls it and proposes the result to the coordinator; nodes apply only stored mappings.
//!
//! In each epoch a chain changes in one way at most (`rules.rs`):
//! 1. It loses the members that are gone, or that have lost their memory in a restart, as long as
//!    one is left. Those that are left confirm that they have the chain in their logs before they
//!    act; until then the lost members keep their copies, and count as below. If none is left, the
//!    chain is halted: members that are back take part in the cluster, but not in this chain, and
//!    report what they have of its slots. When all have reported, the one with the best copy
//!    continues (`held.rs`), and the others learn from it once it has confirmed. If there is no copy, and
//!    the slot may begin again, it is born again at one of them.
//! 2. A complete learner becomes the last member.
//! 3. If it has all members that the ring wants, it takes the ring's order, and surplus members
//!    leave; a surplus head first becomes the last member, which leaves when it has reported that
//!    no client waits for its writes. A draining node stays a member without slots until it stops, so
//!    that requests of its clients are forwarded; one that was only silent becomes one again.
//! 4. A node that the ring wants and the chain lacks becomes its learner, if that node does not
//!    learn too many slots already, was a member in the epoch before, and the members and it hear
//!    one another: heads wait for its leases.
//!
//! A member that is alive and unfit ([`Seen::unfit`]) is treated as one that is gone, and comes back
//! as a learner.
//!
//! Slots are planned in ranges within which nothing differs.

mod asked;
mod forget;
mod heed;
mod held;
mod rules;
mod seen;
#[cfg(test)]
mod tests;

pub use asked::Asked;
pub use forget::{Kept, forget, outstayed};
pub use held::{Copy, Held, Loss, Report, Verdict};
pub use seen::{Health, Learned, Limits, Seen};

use crate::chains::{Chain, Chains, Phase};
use crate::mapping::Mapping;
use crate::member::{MAX_MEMBERS, Member, NodeNo};
use crate::ring::Ring;
use rufous_base::limits::SLOTS;
use rules::{Learning, MemberStates};
use std::collections::BTreeSet;
use std::ops::Range;

/// The next epoch, or `None` if nothing has to change, or changes have to wait.
pub fn next(mapping: &Mapping, seen: &Seen, limits: &Limits) -> Option<Mapping> {
    let mut next = Mapping {
        epoch: mapping.epoch + 1,
        members: mapping.members.clone(),
        next: mapping.next,
        ring: mapping.ring.clone(),
        chains: Chains::with_room_for(mapping.chains.ranges().len()),
    };
    let mut changed = admit(&mut next, seen) | heed::heed(&mut next, seen);
    let state = MemberStates::of(&next, seen);
    let without;
    let wanted = match state.away.iter().any(|no| next.ring.has(*no)) {
        true => {
            without = without_away(&next.ring, &state);
            &without
        }
        false => &next.ring,
    };
    let mut learning = Learning::of(&mapping.chains, limits.learning);
    let mut ranges = mapping.chains.ranges().peekable();
    for slots in pieces(&mapping.chains, wanted, seen) {
        while ranges
            .next_if(|(range, _)| range.end <= slots.start)
            .is_some()
        {}
        let Some((_, chain)) = ranges.peek() else {
            break;
        };
        let owners = wanted.owners(slots.start);
        match state.plan(chain, &slots, owners, limits) {
            None => next.chains.push(slots.start, **chain),
            Some(mut planned) => {
                if !planned.is_same(chain) {
                    planned.since = next.epoch;
                }
                planned.be_born(next.epoch);
                let begins = planned.learner.filter(|_| planned.learner != chain.learner);
                let room = match begins {
                    // A new node first connects to the others: heads wait for its leases.
                    Some(no) if !mapping.members.contains_key(&no) => 0,
                    Some(no) => learning.take(no, slots.len()),
                    None => slots.len(),
                };
                if room > 0 {
                    changed = true;
                    next.chains.push(slots.start, planned);
                }
                if room < slots.len() {
                    next.chains.push(slots.start + room as u16, **chain);
                }
            }
        }
    }
    let waiting = mapping.chains.ranges().map(|(_, chain)| chain);
    let waiting = waiting.filter(|chain| chain.phase != Phase::Acts);
    let holders: BTreeSet<NodeNo> = waiting.flat_map(Chain::holders).collect();
    // Where chains act, copies have been renewed.
    let members = next.members.iter_mut();
    let renewed = members.filter(|(no, _)| !holders.contains(no));
    renewed.for_each(|(_, member)| member.folder.renew());
    note_whole(&mut next);
    changed |= settle(&mut next, &state);
    if !changed {
        return None;
    }
    debug_assert_eq!(next.check(), Ok(()));
    debug_assert_eq!(next.follows(mapping), Ok(()));
    Some(next)
}

/// What becomes of the halted chains of a mapping, as [`next`] decides it.
pub fn verdicts(mapping: &Mapping, seen: &Seen, limits: &Limits) -> Vec<(Range<u16>, Verdict)> {
    let state = MemberStates::of(mapping, seen);
    let mut verdicts: Vec<(Range<u16>, Verdict)> = Vec::new();
    if !mapping.chains.ranges().any(|(_, chain)| chain.is_halted()) {
        return verdicts;
    }
    for slots in pieces(&mapping.chains, &mapping.ring, seen) {
        let chain = mapping.chains.of(slots.start);
        if !chain.is_halted() {
            continue;
        }
        let verdict = state.verdict(chain, slots.start, limits);
        match verdicts.last_mut() {
            Some((last, known)) if last.end == slots.start && *known == verdict => {
                last.end = slots.end;
            }
            _ => verdicts.push((slots, verdict)),
        }
    }
    verdicts
}

/// Ranges of slots within which nothing differs.
fn pieces(chains: &Chains, wanted: &Ring, seen: &Seen) -> impl Iterator<Item = Range<u16>> {
    let mut starts = [0u64; SLOTS / 64 + 1];
    let mut mark = |slot: u16| {
        if let Some(word) = starts.get_mut(usize::from(slot) / 64) {
            *word |= 1 << (slot % 64);
        }
    };
    chains.ranges().for_each(|(slots, _)| mark(slots.start));
    wanted.ranges().for_each(|(slots, _)| mark(slots.start));
    for slots in seen.learned.ranges().chain(seen.held.ranges()) {
        mark(slots.start);
        mark(slots.end);
    }
    mark(SLOTS as u16);
    let mut word = 0;
    let mut following = move || {
        while starts[word] == 0 {
            word += 1;
            if word == starts.len() {
                return None;
            }
        }
        let slot = word * 64 + starts[word].trailing_zeros() as usize;
        starts[word] &= starts[word] - 1;
        Some(slot as u16)
    };
    let mut start = following();
    std::iter::from_fn(move || {
        let end = following()?;
        let slots = start?..end;
        start = Some(end);
        Some(slots)
    })
}

/// Adds new nodes, and removes draining ones from the ring. True if anything changes.
fn admit(next: &mut Mapping, seen: &Seen) -> bool {
    let mut changed = false;
    let known: BTreeSet<_> = next.members.values().map(|member| member.id).collect();
    for (id, node) in seen.alive.iter().filter(|(id, _)| !known.contains(*id)) {
        let full = next.members.len() >= MAX_MEMBERS || next.next == u16::MAX;
        if full || node.id != *id || node.check().is_err() {
            continue;
        }
        // It had drained, was silent and goes on: a member without slots again. The slots need an owner.
        if node.drains && next.ring.is_empty() {
            continue;
        }
        let no = NodeNo(next.next);
        next.next += 1;
        next.members.insert(no, node.clone());
        changed = true;
        if !node.drains {
            next.ring.join(no, node.weight, &node.zone);
        }
    }
    for no in &seen.draining {
        if let Some(member) = next.members.get_mut(no) {
            changed |= !member.drains;
            member.drains = true;
            // The last one stays: the slots need an owner.
            if next.ring.len() > 1 && next.ring.has(*no) {
                next.ring.leave(*no);
                changed = true;
            }
        }
    }
    changed
}

/// Members with other folders than they had may have all their copies by now.
fn note_whole(next: &mut Mapping) {
    let (chains, ring) = (&next.chains, &next.ring);
    let members = next.members.iter_mut();
    for (no, member) in members.filter(|(_, member)| member.folder.lacks_copies()) {
        let has = |slot: u16| chains.of(slot).members.contains(no);
        if (0..SLOTS as u16).all(|slot| !ring.owners(slot).contains(no) || has(slot)) {
            member.folder.has_all();
        }
    }
}

/// Updates the members themselves, after their chains. True if anything changes.
fn settle(next: &mut Mapping, state: &MemberStates<'_>) -> bool {
    let drained = next.members.iter().filter(|(_, member)| member.drains);
    let drained: Vec<NodeNo> = drained.map(|(no, _)| *no).collect();
    if drained.is_empty() && state.restarted.is_empty() {
        return false;
    }
    let (mut named, mut waits) = (BTreeSet::new(), BTreeSet::new());
    for (_, chain) in next.chains.ranges() {
        if !drained.is_empty() {
            named.extend(chain.named().chain(chain.former()));
        }
        // While it is in a chain that acts, its lost data is not dealt with yet.
        if !state.restarted.is_empty() && chain.since != next.epoch && !chain.is_halted() {
            waits.extend(chain.members.iter().copied());
        }
    }
    let mut changed = false;
    for no in drained {
        // While it runs it stays a member without slots: it passes requests of its clients on.
        if state.is_gone(next, no) && !next.ring.has(no) && !named.contains(&no) {
            next.members.remove(&no);
            changed = true;
        }
    }
    for (no, now) in &state.restarted {
        if let Some(member) = next.members.get_mut(no).filter(|_| !waits.contains(no)) {
            let drains = member.drains;
            let folder = member.folder.follow(now.folder, member.incarnation);
            *member = Member {
                drains,
                folder,
                ..(*now).clone()
            };
            changed = true;
        }
    }
    changed
}

/// The ring without the members that are away: others have their slots meanwhile.
fn without_away(ring: &Ring, state: &MemberStates<'_>) -> Ring {
    let mut wanted = ring.clone();
    if ring.members().keys().any(|no| !state.away.contains(no)) {
        wanted.leave_all(state.away.iter().copied());
    }
    wanted
}
