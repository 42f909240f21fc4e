//! Leases: which nodes may serve a slot, and from when on others may.
//!
//! A member of a chain serves it only while all other members have granted it a lease. A node that
//! learns of a later epoch acknowledges nothing in it before every peer that it has granted a lease
//! has named that epoch too, or its lease has expired. The later chain cannot go on without one of
//! the earlier chain's members, as only these have its data; so a node that still serves by the
//! earlier chain can miss no write.
//!
//! A lease is between two workers that share a slot, one of each node: a worker may act by a later
//! epoch long before another worker of its node does, which may serve its slots by an earlier one
//! as long.
//!
//! A worker that shares no slot with a peer any more neither asks it nor is asked. It tells the peer
//! each new epoch for as long as a lease may last, by granting once more what it has granted last:
//! otherwise the peer's slots would not be served until the lease has expired.
//!
//! Clocks are never compared. A request carries the time of the asker's clock; the asker holds the
//! lease for nine tenths of its length from then on, the grantor honours it for its whole length
//! from the receipt of the request, which was later. Clocks may run a twentieth too fast or too
//! slow. A restarted node does not know which leases it has granted, and waits for a whole lease
//! before it acts; and it grants none before it has a mapping, which has to be as new as the one
//! that it had when it stopped.

use crate::peer::Peer;
use crate::planted::{self, Planted};
use std::collections::BTreeMap;

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Leases {
    length_us: u64,
    /// Until when leases granted by peers are held.
    held: BTreeMap<Peer, u64>,
    granted: BTreeMap<Peer, Granted>,
    /// The latest epoch that each peer is known to have.
    known: BTreeMap<Peer, u64>,
    /// Until when leases may last that were granted before the node started.
    before_us: u64,
}

/// A lease that a peer has from here.
#[derive(Clone, Copy, Debug)]
struct Granted {
    until_us: u64,
    /// The time of the peer's clock at which it asked.
    asked_us: u64,
}

impl Leases {
    /// `started_us`: the current time, if this node may have granted leases before it started.
    pub fn new(length_us: u64, started_us: Option<u64>) -> Self {
        let started_us = started_us.filter(|_| !planted::is(Planted::GrantsForgotten));
        Self {
            before_us: started_us.map_or(0, |us| us + length_us),
            length_us,
            held: BTreeMap::new(),
            granted: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// How often to ask for a lease.
    pub fn period_us(&self) -> u64 {
        self.length_us / 4
    }

    pub fn holds(&self, from: Peer, mono_us: u64) -> bool {
        self.held
            .get(&key(from))
            .is_some_and(|until| mono_us < *until)
    }

    /// Grants a lease, if the asker knows all epochs known here. A lease to an asker with an
    /// earlier epoch would prolong what the later epoch waits to see expire.
    pub fn on_ask(&mut self, from: Peer, epoch: u64, asked_us: u64, mono_us: u64) -> bool {
        let grants = self.known(from) >= epoch;
        if grants {
            let until_us = mono_us + self.length_us;
            self.granted
                .insert(key(from), Granted { until_us, asked_us });
        }
        grants
    }

    /// The peers that may still wait for a lease of this worker to expire, with the time of their
    /// clocks at which they last asked for one themselves. Two peers ask each other as often.
    pub fn recent(&self, mono_us: u64) -> impl Iterator<Item = (Peer, u64)> {
        let recent = move |granted: &Granted| granted.until_us + self.length_us > mono_us;
        let all = self.granted.iter();
        all.filter(move |(_, granted)| recent(granted))
            .map(|(peer, granted)| (*peer, granted.asked_us))
    }

    /// A lease that was asked for at that time was granted.
    pub fn on_grant(&mut self, from: Peer, asked_us: u64) {
        let until = self.held.entry(key(from)).or_default();
        *until = (*until).max(asked_us + self.length_us / 10 * 9);
    }

    /// A peer has named an epoch.
    pub fn on_epoch(&mut self, from: Peer, epoch: u64) {
        let known = self.known.entry(key(from)).or_default();
        *known = (*known).max(epoch);
    }

    pub fn known(&self, peer: Peer) -> u64 {
        self.known.get(&key(peer)).copied().unwrap_or(0)
    }

    /// Until when a peer may serve by an epoch before this one.
    pub fn outwait(&self, epoch: u64, mono_us: u64) -> Option<u64> {
        let others = self
            .granted
            .iter()
            .filter(|(peer, _)| self.known(**peer) < epoch);
        let until = others
            .map(|(_, granted)| granted.until_us)
            .fold(self.before_us, u64::max);
        (until > mono_us).then_some(until)
    }
}

fn key(peer: Peer) -> Peer {
    match planted::is(Planted::LeaseOfNode) {
        true => Peer { worker: 0, ..peer },
        false => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rufous_mapping::NodeNo;

    const HOLDER: Peer = of_node(1);
    const GRANTOR: Peer = of_node(2);
    const LENGTH_US: u64 = 1_000_000;

    const fn of_node(no: u16) -> Peer {
        let (node, worker) = (NodeNo(no), 3);
        Peer { node, worker }
    }

    /// Tries every order and distance, on a grid, of these: the holder asks, the grantor grants,
    /// learns of a later epoch, restarts; clocks are wrong by the given rates, in thousandths.
    /// Returns whether the holder ever holds its lease while the grantor acts in the later epoch.
    fn overlaps(holder_rate: u64, grantor_rate: u64, forgets: bool) -> bool {
        // Clocks start at arbitrary values.
        let holder_clock = |us: u64| 777 + us * holder_rate / 1000;
        let grantor_clock = |us: u64| 5_000_000 + us * grantor_rate / 1000;
        let step = 50_000;
        for way in (0..=400_000).step_by(step) {
            for until_epoch in (0..=1_200_000).step_by(step) {
                for restarts in [false, true] {
                    let (asked, came) = (0, way as u64);
                    let mut grantor = Leases::new(LENGTH_US, None);
                    let mut holder = Leases::new(LENGTH_US, None);
                    grantor.on_epoch(HOLDER, 1);
                    assert!(grantor.on_ask(HOLDER, 1, 0, grantor_clock(came)));
                    holder.on_grant(GRANTOR, holder_clock(asked));
                    let later = came + until_epoch as u64;
                    if restarts {
                        let started = (!forgets).then(|| grantor_clock(later));
                        grantor = Leases::new(LENGTH_US, started);
                    }
                    // The later epoch is 2, and the holder never learns of it.
                    assert!(!grantor.on_ask(HOLDER, 2, 0, grantor_clock(later)));
                    for now in (later..4_000_000).step_by(1_000) {
                        let acts = grantor.outwait(2, grantor_clock(now)).is_none();
                        if acts && holder.holds(GRANTOR, holder_clock(now)) {
                            return true;
                        }
                    }
                }
            }
        }
        false
    }

    #[test]
    fn no_lease_outlives_what_its_grantor_waits_for() {
        for holder in [950, 1000, 1050] {
            for grantor in [950, 1000, 1050] {
                assert!(!overlaps(holder, grantor, false), "{holder}, {grantor}");
            }
        }
    }

    #[test]
    fn the_bound_of_clocks_is_one() {
        assert!(overlaps(900, 1100, false), "a tenth is too much");
        assert!(!overlaps(1100, 900, false), "and harmless the other way");
    }

    #[test]
    fn a_start_that_forgets_its_grants_is_too_early() {
        assert!(overlaps(1000, 1000, true));
    }

    #[test]
    fn what_a_worker_knows_and_has_granted_is_its_own() {
        let beside = Peer {
            worker: 4,
            ..HOLDER
        };
        let mut leases = Leases::new(LENGTH_US, None);
        leases.on_epoch(HOLDER, 1);
        assert!(leases.on_ask(HOLDER, 1, 0, 0) && !leases.on_ask(beside, 1, 0, 0));
        leases.on_epoch(beside, 2);
        assert_eq!(leases.outwait(2, 1), Some(LENGTH_US));
        leases.on_epoch(HOLDER, 2);
        assert_eq!(leases.outwait(2, 1), None);
        leases.on_grant(HOLDER, 0);
        assert!(leases.holds(HOLDER, 1) && !leases.holds(beside, 1));
    }
}
