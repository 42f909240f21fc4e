//! Leases: who may answer for a slot, and from when on others may.
//!
//! A member of a chain answers for it only while all other members have
//! granted it a lease. Who learns of a later epoch acknowledges nothing in it
//! before every node that it has granted a lease has said that it knows of
//! that epoch too, or the lease has run out. The later chain cannot go on
//! without one of the earlier chain's members, as only these have its data; so
//! whoever still answers by the earlier one can miss nothing.
//!
//! Clocks are never compared. A request says when it was made by the asker's
//! clock; the asker holds the lease for nine tenths of its length from then on,
//! the grantor keeps to it for all of its length from when it was asked, which
//! was later. Clocks may run a twentieth too fast or too slow.

use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Leases {
    length_us: u64,
    /// Until when others have granted one.
    held: BTreeMap<NodeNo, u64>,
    granted: BTreeMap<NodeNo, u64>,
    /// The latest epoch that each is known to know.
    known: BTreeMap<NodeNo, u64>,
}

impl Leases {
    pub fn new(length_us: u64) -> Self {
        Self {
            length_us,
            held: BTreeMap::new(),
            granted: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// How often to ask for one.
    pub fn period_us(&self) -> u64 {
        self.length_us / 4
    }

    pub fn holds(&self, from: NodeNo, mono_us: u64) -> bool {
        self.held.get(&from).is_some_and(|until| mono_us < *until)
    }

    /// Grants one, if the asker knows of all epochs that are known here. A
    /// later epoch's lease would prolong what this one is waiting to see end.
    pub fn on_ask(&mut self, from: NodeNo, epoch: u64, mono_us: u64) -> bool {
        let grants = self.known(from) >= epoch;
        if grants {
            self.granted.insert(from, mono_us + self.length_us);
        }
        grants
    }

    /// Was granted one that was asked for at that time.
    pub fn on_grant(&mut self, from: NodeNo, asked_us: u64) {
        let until = self.held.entry(from).or_default();
        *until = (*until).max(asked_us + self.length_us / 10 * 9);
    }

    /// A node knows of an epoch.
    pub fn on_epoch(&mut self, from: NodeNo, epoch: u64) {
        let known = self.known.entry(from).or_default();
        *known = (*known).max(epoch);
    }

    pub fn known(&self, node: NodeNo) -> u64 {
        self.known.get(&node).copied().unwrap_or(0)
    }

    /// Until when somebody may answer by an epoch before this one.
    pub fn outwait(&self, epoch: u64, mono_us: u64) -> Option<u64> {
        let others = self
            .granted
            .iter()
            .filter(|(node, _)| self.known(**node) < epoch);
        let until = others.map(|(_, until)| *until).max()?;
        (until > mono_us).then_some(until)
    }
}
