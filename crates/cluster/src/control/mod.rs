//! Which mapping a node applies, which workers still have to be told of it, and the next epoch if
//! this node is the leader.
//!
//! [`Control::decide`] is pure: a [`View`] and the time go in, [`Action`]s come out. The caller
//! carries them out in order and reports their outcomes ([`Control::on_told`],
//! [`Control::on_proposed`]).
//!
//! Invariants:
//! 1. A mapping is checked before any worker is told of it: the coordinator stores bytes that
//!    any client of it could have written.
//! 2. The leader is a hint. Of two proposals for one epoch the coordinator takes one. So another
//!    node plans for a leader whose process has ended, until the coordinator names the next one.
//! 3. No request waits for the control.
//! 4. No mapping is applied that is not one of those that followed the last known one: a coordinator
//!    that was restored to an earlier state hands out epochs a second time. From then on nothing is
//!    applied or proposed until it has the last known mapping again.

mod forgetting;
mod halted;
mod judged;
mod reach;
#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod tests;

pub use halted::{Continues, Halted};
use judged::{draining, has_all, is_time, judge, note_away, unfit};
use reach::Reach;
use rufous_base::limits::CAUGHT_UP_US;
use rufous_kernel::planted::{self, Planted};
use rufous_mapping::planner::{self, Asked, Health, Held, Learned, Limits, Seen};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo, Phase};
use rufous_wire::mapping::{decode, decode_member};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Epochs follow one another so many times sooner while chains wait.
const SOONER: u64 = 8;

/// What a node's control is configured with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub me: NodeId,
    /// Of this start.
    pub incarnation: u64,
    /// Copies of each key, in a cluster that has no mapping yet.
    pub copies: usize,
    pub workers: usize,
    /// Least time between two epochs; see `limits::EPOCHS_APART_US` in `crates/base`.
    pub apart_us: u64,
    pub limits: Limits,
    /// What the node has kept of its earlier run.
    pub kept: Kept,
}

/// What a node keeps of mappings beside its data.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The last one that it applied.
    pub mapping: Option<Arc<Mapping>>,
    /// Whether the coordinator did not have that one when it was last seen.
    pub is_behind: bool,
}

/// What the coordinator has stored, not checked yet.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    pub epoch: u64,
    pub mapping: &'a [u8],
}

/// Whether the data folder belongs to this cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Data {
    #[default]
    Claimed,
    /// It was written by a node outside of any cluster.
    Unclaimed,
    /// It was written in a cluster, of which no mapping is kept.
    OfLostMapping,
}

/// What the node observes of its cluster.
#[derive(Clone, Debug, Default)]
pub struct View<'a> {
    /// Whether the connection to the coordinator works.
    pub is_current: bool,
    /// Whether the coordinator counts this node as alive.
    pub is_member: bool,
    pub leader: Option<NodeId>,
    /// Starts of members that have ended, as this node knows: the coordinator may count them as alive still.
    pub ended: BTreeMap<NodeNo, u64>,
    pub stored: Option<Stored<'a>>,
    /// The epoch that the coordinator has now, if that of `stored` is one that it had earlier.
    pub behind: Option<u64>,
    /// Live nodes as they announce themselves; [`announced`] checks them.
    pub alive: BTreeMap<NodeId, Member>,
    /// What live nodes say of their health.
    pub health: BTreeMap<NodeId, Health>,
    /// Members that will not come back and leave for good, though they cannot announce it.
    pub removed: BTreeSet<NodeId>,
    /// Members that an operator wants this node to remove: they are gone for good.
    pub forgets: BTreeSet<NodeId>,
    pub data: Data,
    /// Progress of learners, as this node and others have reported it.
    pub learned: Learned,
    /// What nodes have of slots whose chains are halted.
    pub held: Held,
}

/// What the caller has to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The folder's data cannot belong to this cluster: stop the node. No action follows.
    Stop,
    /// Note that the folder's data is the cluster's, before the actions that follow; stop the
    /// node if that fails.
    Claim,
    /// This mapping is in force.
    Adopted {
        mapping: Arc<Mapping>,
        /// This node's number, if it differs from that of an earlier mapping.
        numbered: Option<NodeNo>,
    },
    /// The coordinator has lost mappings, or has others now: log that, and keep it beside the data.
    WentBack { found: u64, known: u64 },
    /// The coordinator has the last known mapping again: log that, and keep it beside the data.
    CaughtUp { epoch: u64 },
    /// The coordinator has an invalid mapping; the node keeps the last valid one.
    Refused { epoch: u64, why: &'static str },
    /// A worker has not been told of the mapping yet.
    Tell {
        worker: usize,
        mapping: Arc<Mapping>,
    },
    /// Send this node's reports on learners to the leader.
    Report { to: NodeNo },
    /// Drop what other nodes have reported: this node is not the leader.
    ForgetReports,
    /// Log which members others replace although they are alive, and why.
    Unfit {
        before: BTreeMap<NodeNo, String>,
        now: BTreeMap<NodeNo, String>,
    },
    /// What an operator wanted forgotten leaves, or is kept for this reason.
    Forgotten { id: NodeId, kept: Option<String> },
    /// Log that a member was away for too long, and leaves by the proposal that follows.
    Outstayed { no: NodeNo, id: NodeId },
    /// Log the slots of which all copies have stopped, and what they wait for.
    Halted(Halted),
    /// Propose this mapping as the epoch after `expected`; `continues`: halted slots that continue by it.
    Propose {
        expected: u64,
        next: Mapping,
        continues: Continues,
    },
}

/// The outcome of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Taken,
    /// Another proposal was first, or the node does not count as alive: the next view shows which.
    Passed,
    Failed(String),
}

/// See the module's description.
#[derive(Debug)]
pub struct Control {
    settings: Settings,
    mapping: Option<Arc<Mapping>>,
    /// The epoch that each worker was told of.
    told: Vec<u64>,
    /// Since when members have been away.
    away: BTreeMap<NodeNo, u64>,
    /// Which members hear one another.
    reach: Reach,
    /// Which reports of copies count.
    asked: Asked,
    /// The members that others replace, with the reason, as the leader last logged them.
    unfit: BTreeMap<NodeNo, String>,
    /// What becomes of halted chains, as the leader last logged it.
    halted: Halted,
    /// When a proposal of this node last took effect.
    proposed_us: Option<u64>,
    /// The last problem that was logged, so that it is logged once.
    said: String,
    /// Whether the coordinator has lost mappings that this node knows.
    is_behind: bool,
    /// Other nodes may not have seen yet that it has them again.
    quiet_until_us: u64,
}

impl Control {
    pub fn new(settings: Settings) -> Self {
        Self {
            told: vec![0; settings.workers],
            mapping: None,
            away: BTreeMap::new(),
            reach: Reach::default(),
            asked: Asked::default(),
            unfit: BTreeMap::new(),
            halted: Halted::default(),
            proposed_us: None,
            said: String::new(),
            is_behind: settings.kept.is_behind,
            quiet_until_us: 0,
            settings,
        }
    }

    /// The mapping in force.
    pub fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.mapping.as_ref()
    }

    /// The epoch that each worker was told of; 0 for none.
    pub fn told(&self) -> &[u64] {
        &self.told
    }

    /// Since when members have been away, as the leader has seen it.
    pub fn away(&self) -> &BTreeMap<NodeNo, u64> {
        &self.away
    }

    /// The other members that announce that they serve lattice keys.
    pub fn serving(&self, view: &View<'_>) -> BTreeSet<NodeNo> {
        let serving = view.health.iter().filter(|(_, health)| health.serves);
        let others = serving.filter(|(id, _)| **id != self.settings.me);
        let number = |id| self.mapping.as_ref()?.number_of(id);
        others.filter_map(|(id, _)| number(*id)).collect()
    }

    pub fn decide(&mut self, now_us: u64, view: &View<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.look_back(view, &mut actions) {
            self.quiet_until_us = now_us + CAUGHT_UP_US;
        }
        if !self.is_behind {
            self.follow(view, &mut actions);
        }
        if actions.last() == Some(&Action::Stop) {
            return actions;
        }
        self.tell(&mut actions);
        self.report(view, &mut actions);
        if !self.forget(view, &mut actions) && now_us >= self.quiet_until_us {
            self.plan(now_us, view, &mut actions);
        }
        actions
    }

    /// A worker has this mapping, or has ended.
    pub fn on_told(&mut self, worker: usize, epoch: u64) {
        if let Some(told) = self.told.get_mut(worker) {
            *told = epoch.max(*told);
        }
    }

    /// Returns an error that has to be logged, unless the last one was the same.
    pub fn on_proposed(&mut self, now_us: u64, outcome: Outcome) -> Option<String> {
        match outcome {
            Outcome::Taken => self.proposed_us = Some(now_us),
            Outcome::Passed => {}
            Outcome::Failed(error) => return self.is_news(&error).then_some(error),
        }
        None
    }

    /// Whether the coordinator has the last known mapping again, which it had lost.
    fn look_back(&mut self, view: &View<'_>, actions: &mut Vec<Action>) -> bool {
        let known = self
            .mapping
            .as_ref()
            .or(self.settings.kept.mapping.as_ref());
        let Some(known) = known.filter(|_| view.is_current) else {
            return false;
        };
        let stored = view.stored.filter(|_| view.behind.is_none());
        let found = stored.map_or(view.behind.unwrap_or(0), |stored| stored.epoch);
        // Once it has gone back, a later epoch may be another one than that of the same number.
        let has_known = |stored: Stored<'_>| {
            stored.epoch == known.epoch && decode(stored.mapping).is_ok_and(|has| has == **known)
        };
        let is_behind = if self.is_behind {
            !stored.is_some_and(has_known)
        } else {
            found < known.epoch
        };
        if is_behind == self.is_behind || planted::is(Planted::WentBackUnnoticed) {
            return false;
        }
        self.is_behind = is_behind;
        let known = known.epoch;
        actions.push(if is_behind {
            Action::WentBack { found, known }
        } else {
            Action::CaughtUp { epoch: known }
        });
        !is_behind
    }

    /// Applies the stored mapping, if it is newer and valid.
    fn follow(&mut self, view: &View<'_>, actions: &mut Vec<Action>) {
        let known = self.mapping.as_deref();
        let epoch = known.map_or(0, |mapping| mapping.epoch);
        let kept = self.settings.kept.mapping.as_deref();
        let kept = kept.filter(|_| !planted::is(Planted::WentBackUnnoticed));
        let least = kept.map_or(0, |kept| kept.epoch);
        let is_new = |stored: &Stored<'_>| stored.epoch > epoch && stored.epoch >= least;
        let Some(stored) = view.stored.filter(is_new) else {
            return;
        };
        let mapping = match judge(&stored, known.or(kept)) {
            Ok(mapping) => mapping,
            Err(why) => {
                let epoch = stored.epoch;
                if self.is_news(&format!("epoch {epoch}: {why}")) {
                    actions.push(Action::Refused { epoch, why });
                }
                return;
            }
        };
        let me = self.settings.me;
        if known.is_none() && view.data != Data::Claimed {
            let was_in = view.data == Data::OfLostMapping && self.was_in(&mapping);
            if !was_in && !has_all(&mapping, me) {
                actions.push(Action::Stop);
                return;
            }
            actions.push(Action::Claim);
        }
        let before = known.and_then(|known| known.number_of(me));
        let numbered = mapping.number_of(me).filter(|no| before != Some(*no));
        let mapping = Arc::new(mapping);
        self.mapping = Some(Arc::clone(&mapping));
        actions.push(Action::Adopted { mapping, numbered });
    }

    /// Whether the mapping names an earlier start of this node.
    fn was_in(&self, mapping: &Mapping) -> bool {
        let no = mapping.number_of(self.settings.me);
        let member = no.and_then(|no| mapping.members.get(&no));
        member.is_some_and(|member| member.incarnation < self.settings.incarnation)
    }

    fn tell(&self, actions: &mut Vec<Action>) {
        let Some(mapping) = &self.mapping else {
            return;
        };
        let told = self.told.iter().enumerate();
        let behind = told.filter(|(_, told)| **told != mapping.epoch);
        actions.extend(behind.map(|(worker, _)| Action::Tell {
            worker,
            mapping: Arc::clone(mapping),
        }));
    }

    /// The node that plans.
    pub fn leader(&self, view: &View<'_>) -> Option<NodeId> {
        judged::planners(self.mapping.as_deref(), view).next()
    }

    /// The tail of a chain knows what its learner has; the leader needs this.
    fn report(&self, view: &View<'_>, actions: &mut Vec<Action>) {
        let leader = self.leader(view);
        let leader = leader.filter(|leader| *leader != self.settings.me);
        let mapping = self.mapping.as_ref();
        let to = leader.and_then(|leader| mapping?.number_of(leader));
        actions.extend(to.map(|to| Action::Report { to }));
    }

    /// Proposes the next epoch, if this node is the leader and there is one.
    fn plan(&mut self, now_us: u64, view: &View<'_>, actions: &mut Vec<Action>) {
        if !self.leads(now_us, view) {
            // A later term as leader measures from its own start.
            self.away.clear();
            self.unfit.clear();
            self.asked.forget();
            self.halted = Halted::default();
            actions.push(Action::ForgetReports);
            return;
        }
        let empty;
        let mapping = match (&self.mapping, &view.stored) {
            (Some(mapping), Some(stored)) if mapping.epoch == stored.epoch => &**mapping,
            (None, None) => {
                empty = Mapping::new(self.settings.copies);
                &empty
            }
            // The stored mapping is invalid: no epoch may be built on it.
            _ => return,
        };
        note_away(&mut self.away, mapping, &view.alive, now_us);
        self.reach.look(mapping, &view.alive, &view.health, now_us);
        let unfit = unfit(mapping, view, &self.reach);
        let is_new = unfit.keys().any(|no| !self.unfit.contains_key(no));
        if unfit != self.unfit {
            actions.push(Action::Unfit {
                before: std::mem::replace(&mut self.unfit, unfit.clone()),
                now: unfit.clone(),
            });
        }
        let mut chains = mapping.chains.ranges();
        // Slots are not served meanwhile.
        let waits = chains.any(|(_, chain)| chain.phase != Phase::Acts);
        let apart_us = self.settings.apart_us / if waits { SOONER } else { 1 };
        if !is_new && !is_time(self.proposed_us, &self.away, apart_us, now_us) {
            return;
        }
        let asked = self.mapping.as_ref();
        let asked = asked.map_or(0, |mapping| self.asked.look(mapping));
        let away = self.away.iter();
        let seen = Seen {
            alive: view.alive.clone(),
            away_ms: away
                .map(|(no, since)| (*no, now_us.saturating_sub(*since) / 1_000))
                .collect(),
            learned: view.learned.clone(),
            held: view.held.clone().since(asked),
            draining: draining(mapping, view),
            unfit: unfit.into_keys().collect(),
            apart: self.reach.apart(),
        };
        let limits = &self.settings.limits;
        if let Some(next) = forgetting::outstayed(mapping, &seen.away_ms, limits, actions) {
            // No slots continue by it.
            return propose(mapping, next, Continues::default(), actions);
        }
        let next = planner::next(mapping, &seen, limits);
        let (halted, continues) = halted::of(mapping, &seen, &self.settings.limits);
        if halted != self.halted {
            self.halted = halted.clone();
            actions.push(Action::Halted(halted));
        }
        if let Some(next) = next {
            propose(mapping, next, continues, actions);
        }
    }

    /// Whether this node plans. The next that would do so has to know which members have heard one
    /// another.
    fn leads(&mut self, now_us: u64, view: &View<'_>) -> bool {
        let planners = judged::planners(self.mapping.as_deref(), view);
        let own = planners.take(2).position(|id| id == self.settings.me);
        let takes_part = view.is_current && view.is_member && !self.is_behind;
        match (own.filter(|_| takes_part), &self.mapping) {
            (Some(0), _) => return true,
            (Some(_), Some(mapping)) => {
                let (alive, health) = (&view.alive, &view.health);
                self.reach.look(mapping, alive, health, now_us);
            }
            _ => self.reach.forget(),
        }
        false
    }

    fn is_news(&mut self, what: &str) -> bool {
        let is_news = self.said != what;
        what.clone_into(&mut self.said);
        is_news
    }
}

fn propose(before: &Mapping, next: Mapping, continues: Continues, actions: &mut Vec<Action>) {
    actions.push(Action::Propose {
        expected: before.epoch,
        next,
        continues,
    });
}

/// A live node's announcement, if it is valid and of this incarnation.
pub fn announced(id: NodeId, incarnation: u64, about: &[u8]) -> Option<Member> {
    let member = decode_member(about).ok()?;
    (member.id == id && member.incarnation == incarnation).then_some(member)
}
