//! All nodes, and what may happen next.

use crate::bounds::Bounds;
use crate::node::{Mark, Node, SLOT};
use crate::rules::Own;
use rufous_base::limits::SLOTS;
use rufous_chain::Envelope;
use rufous_mapping::planner::{self, Held, Learned, Limits, Report, Seen};
use rufous_mapping::{Chain, Chains, Mapping, NodeNo};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// One thing that happens. Nodes are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A client writes at a node that serves the slot.
    Write(usize),
    /// A node's log is synced.
    Sync(usize),
    /// The first message on the way from one node to another arrives.
    Deliver(usize, usize),
    /// The next epoch is planned.
    Plan,
    /// A node acts by the mapping in force.
    TakeUp(usize),
    /// A node ends, and keeps so many records of its log.
    End(usize, usize),
    /// A node that is down comes to have so many records: those of an earlier time, or none.
    Spoil(usize, usize),
    Start(usize),
    /// The coordinator takes a node for dead.
    Miss(usize),
    /// And for alive again.
    Meet(usize),
    /// The link between two nodes breaks, with all messages on it, and works again.
    Break(usize, usize),
    /// The time of a lease passes.
    Pass,
}

/// What is left of the bounds.
#[derive(Clone, Debug)]
pub struct Left {
    pub writes: usize,
    pub ends: usize,
    pub spoils: usize,
    pub suspicions: usize,
    pub breaks: usize,
    pub leases: usize,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct World {
    pub bounds: Arc<Bounds>,
    pub off: Option<Own>,
    pub left: Left,
    pub now_us: u64,
    pub nodes: Vec<Node>,
    pub mapping: Arc<Mapping>,
    /// A number of its ring.
    ring: u64,
    /// The nodes that the coordinator takes for alive, with their starts.
    pub alive: BTreeMap<usize, u64>,
    pub links: BTreeMap<(usize, usize), VecDeque<Envelope>>,
    /// Learners that are complete, and last members that may leave; with the epochs.
    pub learned: BTreeSet<(NodeNo, u64)>,
    pub starts: u64,
    pub writes: u8,
    /// Writes that were acknowledged, or shown by a member that answers reads.
    pub owed: BTreeSet<u8>,
    /// Writes that were lost with logs that are synced later.
    pub lost: BTreeSet<u8>,
}

impl World {
    pub fn new(bounds: &Arc<Bounds>, off: Option<Own>) -> Self {
        Self {
            left: Left {
                writes: bounds.writes,
                ends: bounds.ends,
                spoils: bounds.spoils,
                suspicions: bounds.suspicions,
                breaks: bounds.breaks,
                leases: bounds.leases,
            },
            off,
            now_us: 10_000_000,
            nodes: (0..bounds.nodes as u16).map(Node::new).collect(),
            mapping: Arc::new(Mapping::new(bounds.copies)),
            ring: 0,
            alive: BTreeMap::new(),
            links: BTreeMap::new(),
            learned: BTreeSet::new(),
            starts: 0,
            writes: 0,
            owed: BTreeSet::new(),
            lost: BTreeSet::new(),
            bounds: Arc::clone(bounds),
        }
    }

    pub fn chain(&self) -> &Chain {
        self.mapping.chains.of(SLOT)
    }

    pub fn seen(&self) -> Seen {
        let alive = self.alive.iter().map(|(node, incarnation)| {
            let member = self.nodes[*node].member(*incarnation);
            (member.id, member)
        });
        let mut learned = Learned::default();
        for (no, since) in &self.learned {
            learned.add(SLOT..SLOT + 1, *no, *since);
        }
        let mut held = Held::default();
        for node in &self.nodes {
            let Some(run) = &node.run else {
                continue;
            };
            let mut report = Report::new(node.incarnation, true, false);
            report.keeps_all = node.keeps_all;
            // A node reports what its log has.
            let is_synced = node.synced == node.log.len();
            for (slot, copy) in run.replica.held().filter(|_| is_synced) {
                report.add(slot..slot + 1, copy);
            }
            held.hear(node.no, report);
        }
        // However long ago the others have stopped.
        let away = self.nodes.iter().map(|node| (node.no, u64::MAX));
        Seen {
            alive: alive.collect(),
            away_ms: away.collect(),
            learned,
            held,
            ..Seen::default()
        }
    }

    /// The next epoch, if there is one. Most states share it with others, and it takes long.
    pub fn planned(&self) -> Option<Arc<Mapping>> {
        let seen = self.seen();
        let mut known = numbered(&(&self.mapping.members, self.chain(), &seen));
        known ^= self.ring.rotate_left(1) ^ self.mapping.epoch.rotate_left(32);
        let planned = PLANNED.with_borrow(|all| all.get(&known).cloned());
        planned.unwrap_or_else(|| {
            let planned = plan(&self.mapping, &seen).map(Arc::new);
            PLANNED.with_borrow_mut(|all| all.insert(known, planned.clone()));
            planned
        })
    }

    pub(crate) fn set_mapping(&mut self, mapping: Arc<Mapping>) {
        self.mapping = mapping;
        let ranges = self.mapping.ring.ranges();
        self.ring = numbered(&ranges.collect::<Vec<_>>());
    }

    /// All that may happen now.
    pub fn actions(&self) -> Vec<Action> {
        let mut all = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            match &node.run {
                Some(_) => self.actions_of(at, &mut all),
                None => {
                    all.push(Action::Start(at));
                    if self.left.spoils > 0 && !node.spoilt {
                        let earlier = (0..node.log.len()).filter(|to| self.is_other(at, *to));
                        all.extend(earlier.map(|to| Action::Spoil(at, to)));
                    }
                    if self.alive.contains_key(&at) {
                        all.push(Action::Miss(at));
                    }
                }
            }
        }
        let full = self.links.iter().filter(|(_, link)| !link.is_empty());
        all.extend(full.map(|((from, to), _)| Action::Deliver(*from, *to)));
        if self.left.breaks > 0 {
            let full = self.links.iter().filter(|(_, link)| !link.is_empty());
            let pairs: BTreeSet<_> = full.map(|((a, b), _)| (a.min(b), a.max(b))).collect();
            all.extend(pairs.into_iter().map(|(a, b)| Action::Break(*a, *b)));
        }
        if self.planned().is_some() {
            all.push(Action::Plan);
        }
        if self.left.leases > 0 {
            all.push(Action::Pass);
        }
        all
    }

    /// Whether so many records of a log say something else than all of them.
    fn is_other(&self, at: usize, count: usize) -> bool {
        let log = &self.nodes[at].log;
        let is_whole = |to: usize| matches!(log[to - 1].mark, Mark::Whole(_));
        count == 0 || log[count - 1] != log[log.len() - 1] && is_whole(count)
    }

    fn actions_of(&self, at: usize, all: &mut Vec<Action>) {
        let node = &self.nodes[at];
        let Some(run) = &node.run else {
            return;
        };
        if self.left.writes > 0 && run.replica.serves(SLOT, self.now_us).is_ok() {
            all.push(Action::Write(at));
        }
        if node.synced < node.log.len() {
            all.push(Action::Sync(at));
        }
        if run.replica.epoch() < self.mapping.epoch {
            all.push(Action::TakeUp(at));
        }
        if self.left.ends > 0 {
            let kept = node.synced..=node.log.len();
            all.extend(kept.map(|kept| Action::End(at, kept)));
        }
        if !self.alive.contains_key(&at) {
            all.push(Action::Meet(at));
        } else if self.left.suspicions > 0 {
            all.push(Action::Miss(at));
        }
    }

    /// Equal states have equal numbers; others differ, as far as one can tell.
    pub fn number(&self) -> u64 {
        let state = (&self.left, &self.now_us, &self.nodes, &self.alive);
        let owed = (&self.owed, &self.lost);
        let rest = (&self.links, &self.learned, owed, &self.mapping.epoch);
        numbered(&(state, rest, self.chain()))
    }
}

thread_local! {
    /// Planned epochs, by what they follow from.
    static PLANNED: RefCell<HashMap<u64, Option<Arc<Mapping>>>> = RefCell::default();
}

/// Forgets planned epochs: a rule of the planner has been switched.
pub(crate) fn forget_planned() {
    PLANNED.with_borrow_mut(HashMap::clear);
}

/// The next epoch, with the one slot alone.
fn plan(mapping: &Mapping, seen: &Seen) -> Option<Mapping> {
    let mut next = planner::next(mapping, seen, &Limits::default())?;
    let chain = *next.chains.of(SLOT);
    let rest = SLOT + 1..SLOTS as u16;
    let ranges = [(SLOT..SLOT + 1, chain), (rest, Chain::default())];
    // invariant: these are all slots, in order.
    next.chains = Chains::of_ranges(ranges).expect("all slots");
    let same = (&mapping.members, &mapping.ring, &mapping.chains);
    ((&next.members, &next.ring, &next.chains) != same).then_some(next)
}

fn numbered(value: &impl fmt::Debug) -> u64 {
    struct Into(DefaultHasher);
    impl Write for Into {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut into = Into(DefaultHasher::new());
    let written = write!(into, "{value:?}");
    debug_assert!(written.is_ok(), "a hasher takes all");
    into.0.finish()
}
