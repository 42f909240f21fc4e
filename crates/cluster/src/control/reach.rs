//! Members that do not hear one another, as they announce it, and which of them others replace.
//!
//! A chain needs each of its members to hear the others: heads wait for leases of all, and writes
//! for acknowledgements. So of two members that stay apart one is replaced: the one that more
//! members do not hear, and of equal ones the one that joined last. A node that has ended is such a
//! one, too: what it has announced last says that it hears all, until its lease at the coordinator
//! ends. The member is taken back once all hear it again, after a time that doubles with each
//! replacement, so that a link that comes and goes does not move slots each time.

use rufous_mapping::planner::Health;
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use std::collections::{BTreeMap, BTreeSet};

/// The lower number first.
pub(super) type Pair = (NodeNo, NodeNo);

/// How long a pair that has met may be apart. What nodes announce is delayed already: see
/// `limits::HEARING_US` in `crates/base`.
const PATIENCE_US: u64 = 300_000;
/// The same for a pair that has yet to meet: a node that has just joined dials the others first.
const FIRST_PATIENCE_US: u64 = 5_000_000;
/// How long a member stays replaced, at least: doubled each time, from the first value to the
/// second.
const REPLACED_US: (u64, u64) = (5_000_000, 320_000_000);

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// Pairs of live members that are apart.
    apart: BTreeMap<Pair, Apart>,
    /// Pairs that have heard one another.
    met: BTreeSet<Pair>,
    replaced: BTreeMap<NodeNo, Replaced>,
}

#[derive(Clone, Copy, Debug)]
struct Apart {
    since_us: u64,
    /// Whether the member with the lower number is not heard by the other, and the other way round.
    unheard: (bool, bool),
}

#[derive(Clone, Copy, Debug)]
struct Replaced {
    /// The incarnation that was replaced.
    incarnation: u64,
    until_us: u64,
    times: u32,
    is_over: bool,
}

impl Reach {
    /// Takes what live nodes announce.
    pub(super) fn look(
        &mut self,
        mapping: &Mapping,
        alive: &BTreeMap<NodeId, Member>,
        health: &BTreeMap<NodeId, Health>,
        now_us: u64,
    ) {
        let here: BTreeMap<NodeNo, (u64, Option<&Health>)> = mapping
            .members
            .iter()
            .filter_map(|(no, member)| {
                let now = alive.get(&member.id)?;
                (now.incarnation == member.incarnation)
                    .then(|| (*no, (now.incarnation, health.get(&member.id))))
            })
            .collect();
        let hears = |by: &NodeNo, other: &NodeNo| {
            let said = here[by].1.and_then(|health| health.hears.as_ref());
            said.is_none_or(|hears| hears.contains(other))
        };
        let pairs = here.keys().flat_map(|low| {
            let above = here.range(NodeNo(low.0.saturating_add(1))..);
            above.map(|(high, _)| (*low, *high))
        });
        let (met, apart): (Vec<Pair>, Vec<Pair>) =
            pairs.partition(|(low, high)| hears(low, high) && hears(high, low));
        let are_here = |pair: &Pair| here.contains_key(&pair.0) && here.contains_key(&pair.1);
        self.met.retain(are_here);
        self.met.extend(met);
        let before = std::mem::take(&mut self.apart);
        let apart = apart.into_iter().map(|pair| {
            let known = before.get(&pair);
            let apart = Apart {
                since_us: known.map_or(now_us, |known| known.since_us),
                unheard: (!hears(&pair.1, &pair.0), !hears(&pair.0, &pair.1)),
            };
            (pair, apart)
        });
        self.apart = apart.collect();
        self.take_back(&here, now_us);
        self.replace(&here, now_us);
    }

    fn take_back(&mut self, here: &BTreeMap<NodeNo, (u64, Option<&Health>)>, now_us: u64) {
        let apart = &self.apart;
        self.replaced.retain(|no, replaced| {
            let is_same = here.get(no).is_none_or(|now| now.0 == replaced.incarnation);
            let is_heard = !apart.keys().any(|(low, high)| low == no || high == no);
            replaced.is_over |= is_heard && now_us >= replaced.until_us;
            is_same
        });
    }

    /// Of each pair that is apart for too long, one is replaced.
    fn replace(&mut self, here: &BTreeMap<NodeNo, (u64, Option<&Health>)>, now_us: u64) {
        loop {
            let mut counts: BTreeMap<NodeNo, usize> = BTreeMap::new();
            for ((low, high), unheard) in self.late(now_us) {
                for (no, is_unheard) in [(low, unheard.0), (high, unheard.1)] {
                    *counts.entry(no).or_default() += usize::from(is_unheard);
                }
            }
            let worst = counts.iter().max_by_key(|(no, count)| (**count, **no));
            let Some((no, _)) = worst.map(|(no, count)| (*no, *count)) else {
                return;
            };
            let times = self.replaced.get(&no).map_or(0, |before| before.times) + 1;
            let length_us = REPLACED_US.0 << (times - 1).min(16);
            let replaced = Replaced {
                incarnation: here.get(&no).map_or(0, |now| now.0),
                until_us: now_us + length_us.min(REPLACED_US.1),
                times,
                is_over: false,
            };
            self.replaced.insert(no, replaced);
        }
    }

    /// Pairs that have been apart for too long, of which none is replaced.
    fn late(&self, now_us: u64) -> Vec<(Pair, (bool, bool))> {
        let patience = |pair: &Pair| {
            if self.met.contains(pair) {
                PATIENCE_US
            } else {
                FIRST_PATIENCE_US
            }
        };
        let is_in = |no: &NodeNo| !self.is_replaced(*no);
        let late = self.apart.iter().filter(|(pair, apart)| {
            let lasts_us = now_us.saturating_sub(apart.since_us);
            lasts_us >= patience(pair) && is_in(&pair.0) && is_in(&pair.1)
        });
        late.map(|(pair, apart)| (*pair, apart.unheard)).collect()
    }

    fn is_replaced(&self, no: NodeNo) -> bool {
        let replaced = self.replaced.get(&no);
        replaced.is_some_and(|replaced| !replaced.is_over)
    }

    /// Members that others replace.
    pub(super) fn replaced(&self) -> impl Iterator<Item = NodeNo> {
        let all = self.replaced.iter();
        all.filter(|(_, replaced)| !replaced.is_over)
            .map(|(no, _)| *no)
    }

    /// Pairs that do not hear one another now.
    pub(super) fn apart(&self) -> BTreeSet<Pair> {
        self.apart.keys().copied().collect()
    }

    /// This node leads no longer.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
