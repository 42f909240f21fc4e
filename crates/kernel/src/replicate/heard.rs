//! How far each worker has heard of the others, and what that allows to be
//! forgotten [Anna §VII-A].
//!
//! A worker that says *up to t* has sent before that all its changes with a
//! stamp of t or less, and will make no more of them. It also says the least
//! it has heard up to itself. The least of what all have said, their own
//! included, is the **horizon**: everybody has every change up to it, and
//! knows what each of these did, so that no state that was not merged with
//! them is under way. What only says that something was removed before the
//! horizon can be forgotten.
//!
//! A horizon that another has found is not taken over: its sender may know of
//! messages that are still on their way here. A worker goes by its own hearing
//! only, which comes after these.
//!
//! Nor is a worker's own horizon enough to forget. Who has forgotten a key may
//! begin anew with it, from nothing, and must not meet others who take that for
//! something older than the removal that they still know. So a worker also says
//! its horizon, and what is forgotten lies before all of these.
//!
//! Who may still make changes with older stamps, as it has promised a time to
//! others, says that it is up to no more than that. What changes may depend on is
//! another matter: how much of what the sender of others has *sent*, whatever
//! stamps are in it, has come.
//!
//! With other nodes all of their workers are heard as one's own are. What they
//! say stays true when they are away, and when they start again: their files
//! have what they have said to know. A node of which nobody knows how many
//! workers it has has said nothing. One that the mapping has dropped is waited
//! for until everybody acts by a mapping without it and has told what it had of it.

use super::batch::Report;
use super::member;
use crate::planted::{self, Planted};
use std::collections::BTreeSet;

/// What one worker knows of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    own: u16,
    /// The workers of this node: the first replica, and the one behind the last.
    here: (u16, u16),
    /// In the order of their replicas; this worker is not among them.
    others: Vec<Other>,
    /// Nodes that are waited for, of which nothing is known yet.
    silent: BTreeSet<u16>,
    /// Nodes that are no longer heard; their numbers are never used again.
    dropped: BTreeSet<u16>,
    /// Of the mapping that this worker acts by; 0 without one.
    epoch: u64,
    /// The horizon was there, or others have forgotten up to there.
    passed: u64,
    /// Up to where other nodes had forgotten when they began to speak.
    forgotten: u64,
}

/// What is known of another worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Other {
    replica: u16,
    /// Up to where it has been heard.
    upto: u64,
    /// The date of its last epoch that has come.
    sent: u64,
    /// The least that it has heard up to, and its horizon, as it has said.
    least: u64,
    horizon: u64,
    /// Of the mapping by which it has said so.
    epoch: u64,
    /// Its node was dropped by the mapping of this epoch.
    dropped_at: Option<u64>,
}

impl Other {
    fn new(replica: u16) -> Self {
        Self {
            replica,
            ..Self::default()
        }
    }
}

impl Heard {
    /// `own` is the replica of a worker, the `workers` of its node have those from
    /// `first` on.
    pub fn new(own: u16, first: u16, workers: usize) -> Self {
        let end = first.saturating_add(workers as u16);
        assert!((first..end).contains(&own), "a worker is one of them");
        let others = (first..end).filter(|&replica| replica != own);
        Self {
            own,
            here: (first, end),
            others: others.map(Other::new).collect(),
            silent: BTreeSet::new(),
            dropped: BTreeSet::new(),
            epoch: 0,
            passed: 0,
            forgotten: 0,
        }
    }

    pub fn is_here(&self, replica: u16) -> bool {
        (self.here.0..self.here.1).contains(&replica)
    }

    /// Whether there is nobody else.
    pub fn is_alone(&self) -> bool {
        self.others.is_empty() && self.silent.is_empty()
    }

    /// Replicas that are known, this one included.
    #[expect(clippy::len_without_is_empty, reason = "this worker is always there")]
    pub fn len(&self) -> usize {
        self.others.len() + self.silent.len() + 1
    }

    /// Whether it is heard at all.
    pub fn knows(&self, replica: u16) -> bool {
        self.place(replica).is_ok()
    }

    /// Whether it is of a node that the mapping has dropped.
    pub fn is_dropped(&self, replica: u16) -> bool {
        !self.is_here(replica) && self.dropped.contains(&member::node_of(replica))
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    fn place(&self, replica: u16) -> Result<usize, usize> {
        self.others.binary_search_by_key(&replica, |of| of.replica)
    }

    fn other(&mut self, replica: u16) -> Option<&mut Other> {
        let at = self.place(replica).ok()?;
        self.others.get_mut(at)
    }

    /// The other nodes by the mapping of this epoch, in which the numbers from
    /// `next` on have not been given to anybody.
    pub fn act_by(&mut self, epoch: u64, nodes: &BTreeSet<u16>, next: u16) {
        self.epoch = self.epoch.max(epoch);
        let own = member::node_of(self.own);
        let mut known: BTreeSet<u16> = self.silent.clone();
        for other in &mut self.others {
            let node = member::node_of(other.replica);
            if (self.here.0..self.here.1).contains(&other.replica) {
                continue;
            }
            known.insert(node);
            if !nodes.contains(&node) && node < next && other.dropped_at.is_none() {
                other.dropped_at = Some(epoch);
            }
        }
        let gone = known.iter().filter(|node| **node < next);
        self.dropped
            .extend(gone.filter(|node| !nodes.contains(node)));
        self.silent.retain(|node| !self.dropped.contains(node));
        for &node in nodes {
            if node != own && !known.contains(&node) && !self.dropped.contains(&node) {
                self.silent.insert(node);
            }
        }
        self.let_go();
    }

    /// A node has said how many workers it has. One that this worker's mapping does
    /// not have yet is waited for all the same.
    pub fn meet(&mut self, node: u16, workers: usize) {
        let Some(first) = member::first_of(node) else {
            return;
        };
        let is_other = !self.is_here(first) && !self.dropped.contains(&node);
        if !is_other || workers == 0 || workers > member::MOST_WORKERS {
            return;
        }
        self.silent.remove(&node);
        let all = first..first + workers as u16;
        self.others
            .retain(|of| member::node_of(of.replica) != node || all.contains(&of.replica));
        for replica in all {
            if let Err(at) = self.place(replica) {
                self.others.insert(at, Other::new(replica));
            }
        }
    }

    /// Nodes that were dropped are waited for no more when everybody acts by a
    /// mapping without them: what they had said to some, these have told by then.
    fn let_go(&mut self) {
        let stay = self.others.iter().filter(|of| of.dropped_at.is_none());
        let least = stay.map(|of| of.epoch).min().unwrap_or(u64::MAX);
        let least = match self.silent.is_empty() {
            true => least.min(self.epoch),
            false => 0,
        };
        self.others
            .retain(|of| of.dropped_at.is_none_or(|epoch| epoch > least));
    }

    /// What `from` has said: it has sent everything up to a time, and has heard
    /// up to another. What was said before stays true.
    pub fn hear(&mut self, from: u16, report: &Report) {
        let Some(other) = self.other(from) else {
            return;
        };
        other.upto = other.upto.max(report.upto);
        other.sent = other.sent.max(report.sent);
        other.least = other.least.max(report.least);
        other.horizon = other.horizon.max(report.horizon);
        if report.epoch > other.epoch {
            other.epoch = report.epoch;
            self.let_go();
        }
    }

    /// The horizon has been there: it stays there when others come.
    pub fn pass(&mut self, horizon: u64) {
        self.passed = self.passed.max(horizon);
    }

    /// Others have forgotten up to this time: all had said before that they have
    /// all up to there, and so has this worker, if it was there, in its log; if
    /// not, it is told all that is left of it.
    pub fn forget(&mut self, upto: u64) {
        self.pass(upto);
        self.forgotten = self.forgotten.max(upto);
    }

    /// See [`Heard::forget`].
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The least that all have said of something.
    fn all(&self, said: impl Fn(&Other) -> u64) -> u64 {
        let is_awaited =
            |of: &&Other| !planted::is(Planted::NodeNotAwaited) || self.is_here(of.replica);
        let others = self.others.iter().filter(is_awaited);
        let least = others.map(said).min().unwrap_or(u64::MAX);
        match self.silent.is_empty() || planted::is(Planted::NodeNotAwaited) {
            true => least,
            false => 0,
        }
    }

    /// The least this worker has heard up to, of all others; where it is
    /// alone, everything.
    pub fn least(&self) -> u64 {
        self.all(|of| of.upto)
    }

    /// Likewise of the workers of this node.
    pub fn least_here(&self) -> u64 {
        let here = self.others.iter().filter(|of| self.is_here(of.replica));
        here.map(|of| of.upto).min().unwrap_or(u64::MAX)
    }

    /// Everybody has every change up to this.
    pub fn horizon(&self) -> u64 {
        self.all(|of| of.least).min(self.least()).max(self.passed)
    }

    /// What was removed up to this may be forgotten.
    pub fn settled(&self) -> u64 {
        if planted::is(Planted::ForgottenEarly) {
            return u64::MAX;
        }
        let said = self.all(|of| of.horizon).min(self.horizon());
        said.max(self.forgotten)
    }

    /// The epochs of each that have come, in order.
    pub fn vector(&self) -> Vec<(u16, u64)> {
        self.others.iter().map(|of| (of.replica, of.sent)).collect()
    }

    /// Whether this worker has everything that `after`, the vector of `from`,
    /// says its sender had. (Both know all of their own.) What is said of who is
    /// not heard here, or no more, cannot be waited for.
    pub fn covers(&self, from: u16, after: &[(u16, u64)]) -> bool {
        if planted::is(Planted::CutNotKept) {
            return true;
        }
        after.iter().all(|&(replica, after)| {
            let place = self.place(replica).ok().filter(|_| replica != from);
            place.is_none_or(|at| {
                let other = &self.others[at];
                other.dropped_at.is_some() || other.sent >= after
            })
        })
    }

    /// How far each other node is known to be: the least that its workers have
    /// said up to, 0 where they have said nothing.
    pub fn nodes(&self) -> Vec<(u16, u64)> {
        let mut all: Vec<(u16, u64)> = self.silent.iter().map(|&node| (node, 0)).collect();
        for other in self.others.iter().filter(|of| !self.is_here(of.replica)) {
            let node = member::node_of(other.replica);
            match all.iter_mut().find(|(of, _)| *of == node) {
                Some((_, upto)) => *upto = other.upto.min(*upto),
                None => all.push((node, other.upto)),
            }
        }
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(upto: u64, least: u64, horizon: u64) -> Report {
        Report {
            upto,
            least,
            horizon,
            ..Report::default()
        }
    }

    fn by(epoch: u64, all: u64) -> Report {
        Report {
            epoch,
            ..said(all, all, all)
        }
    }

    fn nodes(all: &[u16]) -> BTreeSet<u16> {
        all.iter().copied().collect()
    }

    /// Worker 1 of node 1 of two workers, in a cluster with nodes 0 and 2.
    fn in_cluster() -> Heard {
        let mut heard = Heard::new(65, 64, 2);
        heard.act_by(1, &nodes(&[0, 1, 2]), 3);
        heard.hear(64, &by(1, 50));
        heard
    }

    #[test]
    fn nothing_is_known_before_every_node_has_spoken() {
        let mut heard = in_cluster();
        assert_eq!((heard.least(), heard.horizon()), (0, 0));
        assert_eq!(heard.least_here(), 50);
        heard.meet(0, 1);
        heard.meet(2, 2);
        heard.hear(0, &by(1, 40));
        heard.hear(128, &by(1, 30));
        assert_eq!(heard.settled(), 0, "the other worker of node 2");
        heard.hear(129, &by(1, 45));
        assert_eq!((heard.least(), heard.settled()), (30, 30));
        assert_eq!(heard.nodes(), [(0, 40), (2, 30)]);
    }

    #[test]
    fn who_is_dropped_is_awaited_until_all_know_and_never_heard_again() {
        let mut heard = in_cluster();
        heard.meet(0, 1);
        heard.meet(2, 1);
        heard.hear(0, &by(1, 40));
        heard.hear(128, &by(1, 10));
        heard.act_by(2, &nodes(&[0, 1]), 3);
        heard.hear(0, &by(1, 41));
        assert_eq!(heard.settled(), 10, "node 0 may tell what it has of node 2");
        heard.hear(0, &by(2, 42));
        assert_eq!(heard.settled(), 10, "so may the other worker here");
        heard.hear(64, &by(2, 60));
        assert_eq!((heard.least(), heard.settled()), (42, 42));
        heard.meet(2, 1);
        assert!(!heard.knows(128));
        // One that comes is awaited, and the horizon does not go back.
        heard.pass(42);
        heard.act_by(3, &nodes(&[0, 1, 3]), 4);
        assert_eq!((heard.least(), heard.horizon()), (0, 42));
        assert_eq!(heard.settled(), 0);
    }

    #[test]
    fn who_comes_before_the_mapping_says_so_is_awaited() {
        let mut heard = in_cluster();
        heard.meet(0, 1);
        heard.meet(2, 1);
        for replica in [0, 128] {
            heard.hear(replica, &by(1, 40));
        }
        assert_eq!(heard.settled(), 40);
        heard.meet(3, 1);
        heard.act_by(1, &nodes(&[0, 1, 2]), 3);
        assert_eq!(heard.settled(), 0);
        heard.hear(192, &by(2, 44));
        assert_eq!(heard.settled(), 40);
        // It came and went between two mappings that were heard of here.
        heard.meet(4, 1);
        heard.act_by(4, &nodes(&[0, 1, 2, 3]), 5);
        assert!(heard.settled() == 0 && heard.knows(256));
        for replica in [0, 64, 128, 192] {
            heard.hear(replica, &by(4, 50));
        }
        assert!(heard.settled() == 50 && !heard.knows(256));
    }

    #[test]
    fn one_worker_alone_forgets_at_once() {
        let heard = Heard::new(0, 0, 1);
        assert_eq!((heard.least(), heard.horizon()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn the_horizon_waits_for_the_slowest_and_for_what_it_says() {
        let mut heard = Heard::new(1, 0, 3);
        heard.hear(0, &said(10, 5, 0));
        assert_eq!((heard.least(), heard.horizon()), (0, 0));
        heard.hear(2, &said(7, 9, 6));
        assert_eq!((heard.least(), heard.horizon()), (7, 5));
        heard.hear(0, &said(9, 8, 3));
        assert_eq!(heard.settled(), 3);
        assert_eq!(
            (heard.least(), heard.horizon()),
            (7, 7),
            "nothing is unsaid"
        );
        heard.hear(1, &said(1, 1, 1));
        assert_eq!(heard.least(), 7, "what it hears of itself means nothing");
    }

    #[test]
    fn what_a_change_may_depend_on_is_covered_or_not() {
        let mut heard = Heard::new(2, 0, 3);
        heard.hear(
            0,
            &Report {
                sent: 10,
                ..Report::default()
            },
        );
        heard.hear(
            1,
            &Report {
                sent: 4,
                ..Report::default()
            },
        );
        heard.hear(1, &said(99, 0, 0));
        assert!(heard.covers(0, &[(0, 99), (1, 4), (2, 99)]));
        assert!(!heard.covers(0, &[(0, 99), (1, 5), (2, 99)]));
        assert!(heard.covers(1, &[(0, 10), (1, 99), (2, 0)]));
        assert!(!heard.covers(1, &[(0, 11), (1, 0), (2, 0)]));
    }

    proptest! {
        /// Changes are given out by a common clock, sent in order on wires of
        /// any speed: whatever is below a worker's horizon, everybody has.
        #[test]
        fn nobody_lacks_what_is_below_a_horizon(
            workers in 2usize..5,
            steps in prop::collection::vec((0usize..5, 0usize..5, 0u8..3), 0..300),
        ) {
            type Said = (u64, u64, u64, Vec<u64>);
            let mut heard: Vec<_> = (0..workers).map(|w| Heard::new(w as u16, 0, workers)).collect();
            let mut wires = vec![vec![std::collections::VecDeque::<Said>::new(); workers]; workers];
            let mut fresh = vec![Vec::<u64>::new(); workers];
            let mut has = vec![BTreeSet::<u64>::new(); workers];
            let mut clock = 0;
            for (a, b, what) in steps {
                let (a, b) = (a % workers, b % workers);
                match what {
                    0 => {
                        clock += 1;
                        fresh[a].push(clock);
                        has[a].insert(clock);
                    }
                    1 => {
                        clock += 1;
                        let changes = std::mem::take(&mut fresh[a]);
                        let said = (clock, heard[a].least(), heard[a].horizon(), changes);
                        for to in (0..workers).filter(|&to| to != a) {
                            wires[a][to].push_back(said.clone());
                        }
                    }
                    _ => if let Some((upto, least, horizon, changes)) = wires[a][b].pop_front() {
                        has[b].extend(changes);
                        heard[b].hear(a as u16, &said(upto, least, horizon));
                    }
                }
                let all: BTreeSet<u64> = has.iter().flatten().copied().collect();
                let horizons = heard.iter().map(Heard::horizon);
                let lowest = horizons.min().unwrap_or(0);
                for heard in &heard {
                    prop_assert!(heard.settled() <= lowest);
                    let below = || all.range(..=heard.horizon());
                    prop_assert!(has.iter().all(|has| below().all(|t| has.contains(t))));
                }
            }
        }
    }
}
