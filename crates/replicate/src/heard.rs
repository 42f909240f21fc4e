//! What each worker has received from the others, and what that allows it to forget [Anna §VII-A].
//!
//! A worker that reports *up to t* has already sent all its changes with a stamp of t or less, and will make no more
//! of them. It also reports the least time up to which it has received the changes of all others. The minimum of what
//! all have reported, this worker included, is the **horizon**: every worker has every change up to it, so that no
//! state made without these changes is in transit. State that only records a removal before the horizon can be
//! forgotten.
//!
//! The horizon of another worker is not taken over: its sender may have received messages that are still in transit
//! to this one. A worker computes its horizon only from reports that it has received itself, which follow those
//! messages. What other nodes had forgotten is taken over, since it is the first message of their streams; but what
//! they have sent is judged by what each of them has reported to have received ([`Heard::known_to`]).
//!
//! A worker's own horizon does not suffice to forget, either. A worker that has forgotten a key may create it again
//! from nothing, and others that still have the removal must not take that for older state. So a worker also reports
//! its horizon, and forgets only what lies before the horizons of all.
//!
//! A worker that has promised a time to others, and so may still make changes with older stamps, reports no more than
//! that time. The dependencies of changes are tracked separately: by how much of each sender's *sent* epochs was
//! received, whatever stamps are in them.
//!
//! Workers of other nodes are treated like those of this node. Their reports stay true when they fail and start
//! again: their files have what they reported to have received. A node whose number of workers is unknown has
//! reported nothing. A worker of a cluster that does not know the mapping yet has no horizon: it does not know
//! which other nodes there are. A node that the mapping has dropped is waited for until all act by a mapping without it
//! and have sent what they had received from it.

#[cfg(test)]
mod tests;

use super::batch::Report;
use super::member;
use super::vector::Vector;
use rufous_base::WorkerId;
use rufous_store::planted::{self, Planted};
use std::collections::BTreeSet;

/// An odd factor without structure, which spreads each part of a state over a sum.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// One worker's knowledge of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    own: u16,
    /// The replicas of this node's workers: the first one, and the end of the range.
    here: (u16, u16),
    /// In the order of their replicas, without this worker.
    others: Vec<Other>,
    /// Nodes that are waited for and have not sent anything yet.
    silent: BTreeSet<u16>,
    /// Nodes that were dropped; their numbers are never reused.
    dropped: BTreeSet<u16>,
    /// Nodes that are away, without whose state this worker may serve.
    excused: BTreeSet<u16>,
    /// The epoch of this worker's mapping; 0 without one.
    epoch: u64,
    /// No node has had a number from here on yet.
    next: u16,
    /// The node is in a cluster and has no mapping yet: other nodes may lack anything.
    awaits_mapping: bool,
    /// The highest horizon so far, including what others have forgotten.
    passed: u64,
    /// The time up to which other nodes had forgotten when their streams began.
    forgotten: u64,
}

/// What is known about another worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Other {
    replica: u16,
    /// Its changes were received up to this time.
    upto: u64,
    /// The date of its last epoch that was received.
    sent: u64,
    /// The date of the last one that it has sent here itself: others send on changes with cuts alone.
    reported: u64,
    /// Changes of its next epoch were merged.
    is_open: bool,
    /// Its least received time and its horizon, as reported.
    least: u64,
    horizon: u64,
    /// What it had forgotten when its stream began.
    begun: u64,
    /// The epoch of the mapping by which it reported that.
    epoch: u64,
    /// The epoch of the mapping that dropped its node.
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
    /// `own` is the replica of a worker of a node with `workers` workers, whose replicas start at `first`.
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
            excused: BTreeSet::new(),
            epoch: 0,
            next: 0,
            awaits_mapping: false,
            passed: 0,
            forgotten: 0,
        }
    }

    /// The node is in a cluster: until [`Heard::act_by`], this worker does not know which nodes to wait for.
    pub fn await_mapping(&mut self) {
        self.awaits_mapping = self.epoch == 0 && !planted::is(Planted::MappingNotAwaited);
    }

    pub fn is_here(&self, replica: u16) -> bool {
        (self.here.0..self.here.1).contains(&replica)
    }

    /// Whether there are no other replicas.
    pub fn is_alone(&self) -> bool {
        self.others.is_empty() && self.silent.is_empty()
    }

    /// Number of known replicas, this one included.
    #[expect(clippy::len_without_is_empty, reason = "this worker is always there")]
    pub fn len(&self) -> usize {
        self.others.len() + self.silent.len() + 1
    }

    /// Whether there are other nodes.
    pub fn has_nodes(&self) -> bool {
        let is_other = |of: &Other| !self.is_here(of.replica);
        !self.silent.is_empty() || self.others.iter().any(is_other)
    }

    /// Whether the replica is known.
    pub fn knows(&self, replica: u16) -> bool {
        self.place(replica).is_ok()
    }

    /// Whether the replica's node was dropped by the mapping.
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

    /// Sets the other nodes of this epoch's mapping; no node has had a number from `next` on yet.
    pub fn act_by(&mut self, epoch: u64, nodes: &BTreeSet<u16>, next: u16) {
        (self.epoch, self.next) = (self.epoch.max(epoch), self.next.max(next));
        self.awaits_mapping = false;
        let own = member::node_of(self.own);
        let is_gone =
            |node: u16| node < next && !nodes.contains(&node) && !planted::is(Planted::GoneAwaited);
        let mut known: BTreeSet<u16> = self.silent.clone();
        for other in &mut self.others {
            let node = member::node_of(other.replica);
            if (self.here.0..self.here.1).contains(&other.replica) {
                continue;
            }
            known.insert(node);
            if is_gone(node) && other.dropped_at.is_none() {
                other.dropped_at = Some(epoch);
            }
        }
        self.dropped
            .extend(known.iter().filter(|node| is_gone(**node)));
        self.silent.retain(|node| !self.dropped.contains(node));
        for &node in nodes {
            if node != own && !known.contains(&node) && !self.dropped.contains(&node) {
                self.silent.insert(node);
            }
        }
        self.let_go();
    }

    /// A node has sent its number of workers. It is waited for even if this worker's mapping does not have it yet.
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

    /// Stops waiting for dropped nodes once all act by a mapping without them: by then, workers that had received
    /// something from them have sent it on.
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

    /// Takes a report of `from`: it has sent everything up to a time, and has received everything up to another.
    /// Earlier reports stay true.
    pub fn hear(&mut self, from: u16, report: &Report) {
        let Some(other) = self.other(from) else {
            return;
        };
        other.upto = other.upto.max(report.upto);
        other.sent = other.sent.max(report.sent);
        other.reported = other.reported.max(report.sent);
        other.is_open = false;
        other.least = other.least.max(report.least);
        other.horizon = other.horizon.max(report.horizon);
        if report.epoch > other.epoch {
            other.epoch = report.epoch;
            self.let_go();
        }
    }

    /// `from` begins a stream, and has forgotten up to this time: it had received everything up to there, or its
    /// sources had.
    pub fn begin(&mut self, from: u16, forgotten: u64) {
        if let Some(other) = self.other(from) {
            other.begun = other.begun.max(forgotten);
        }
    }

    /// The time up to which `from` had received all writes when it made what it sends next. It may be less than the
    /// horizon if that was another's: a joining node may have been sent later removals by some only.
    pub fn known_to(&self, from: u16) -> u64 {
        let other = self.place(from).ok().and_then(|at| self.others.get(at));
        other.map_or(0, |other| other.least.max(other.begun))
    }

    /// Keeps the horizon from falling when other workers join.
    pub fn pass(&mut self, horizon: u64) {
        self.passed = self.passed.max(horizon);
    }

    /// Other workers have forgotten up to this time: all workers had confirmed to have everything up to there, in
    /// their logs; a worker that was not present then receives all that is left of it.
    pub fn forget(&mut self, upto: u64) {
        self.pass(upto);
        self.forgotten = self.forgotten.max(upto);
    }

    /// See [`Heard::forget`].
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The minimum over all other workers of a reported time.
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

    /// The time up to which this worker has received the changes of all others; the maximum if it is alone.
    pub fn least(&self) -> u64 {
        self.all(|of| of.upto)
    }

    /// Sets the nodes that are away: [`Heard::least_needed`] leaves them out.
    pub fn excuse(&mut self, nodes: BTreeSet<u16>) {
        self.excused = nodes;
    }

    /// As [`Heard::least`], without the nodes that are away.
    pub fn least_needed(&self) -> u64 {
        if self.silent.iter().any(|node| !self.excused.contains(node)) {
            return 0;
        }
        let is_needed = |of: &&Other| {
            self.is_here(of.replica) || !self.excused.contains(&member::node_of(of.replica))
        };
        let needed = self.others.iter().filter(is_needed);
        needed.map(|of| of.upto).min().unwrap_or(u64::MAX)
    }

    /// The workers of this node that have sent nothing yet.
    pub fn unheard_here(&self) -> impl Iterator<Item = WorkerId> {
        let here = self.others.iter().filter(|of| self.is_here(of.replica));
        let unheard = here.filter(|of| of.upto == 0);
        unheard.map(|of| WorkerId(of.replica - self.here.0))
    }

    /// [`Heard::least`] of the workers of this node.
    pub fn least_here(&self) -> u64 {
        let here = self.others.iter().filter(|of| self.is_here(of.replica));
        here.map(|of| of.upto).min().unwrap_or(u64::MAX)
    }

    /// Every worker has every change up to this time.
    pub fn horizon(&self) -> u64 {
        if self.awaits_mapping {
            return self.passed;
        }
        self.all(|of| of.least).min(self.least()).max(self.passed)
    }

    /// The time up to which removals may be forgotten.
    pub fn settled(&self) -> u64 {
        if planted::is(Planted::ForgottenEarly) {
            return u64::MAX;
        }
        let said = self.all(|of| of.horizon).min(self.horizon());
        said.max(self.forgotten)
    }

    /// The date of a replica's last epoch that was received; the maximum if it is not waited for.
    pub fn sent(&self, replica: u16) -> u64 {
        let other = self.place(replica).ok().and_then(|at| self.others.get(at));
        let other = other.filter(|other| other.dropped_at.is_none());
        other.map_or(u64::MAX, |other| other.sent)
    }

    /// Others have sent what a replica had sent up to this date.
    pub fn hear_of(&mut self, replica: u16, sent: u64) {
        if let Some(other) = self.other(replica) {
            other.sent = other.sent.max(sent);
        }
    }

    /// Changes of the next epoch of `from` are merged: what is seen here includes them until it reports.
    pub fn on_part(&mut self, from: u16) {
        if let Some(other) = self.other(from) {
            other.is_open = true;
        }
    }

    /// A number that is another one when anything has changed on which [`Heard::lacks`] and [`Heard::has_all`] depend. It is computed from
    /// that, so that no change can be missed; in time that is small beside that of asking for many sessions.
    pub fn news(&self, is_up: &dyn Fn(u16) -> bool) -> u64 {
        let own = [
            self.epoch,
            u64::from(self.next),
            u64::from(self.awaits_mapping),
        ];
        let silent = self.silent.iter();
        let silent = silent.flat_map(|&node| [u64::from(node), u64::from(is_up(node))]);
        let of = |of: &Other| {
            let is_up = is_up(member::node_of(of.replica));
            let state = u64::from(of.replica) << 1 | u64::from(is_up);
            [
                state,
                of.upto,
                of.sent,
                of.reported,
                of.dropped_at.map_or(0, |at| at + 1),
            ]
        };
        let all = own
            .into_iter()
            .chain(silent)
            .chain(self.others.iter().flat_map(of));
        all.fold(0, |sum: u64, part| {
            (sum.rotate_left(5) ^ part).wrapping_mul(MIX)
        })
    }

    /// What a session here may have seen of others.
    pub fn seen(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let is_planted = planted::is(Planted::OpenNotSeen);
        let open = move |of: &Other| u64::from(of.is_open && !is_planted);
        let seen = move |of: &Other| (of.replica, of.sent + open(of));
        self.others.iter().map(seen)
    }

    /// The replicas of which something that a session has seen was not received here. What its own log has, and what dropped nodes
    /// had sent, is here. `cuts_alone`: all keyspaces have cuts, so that what others have sent on is all that there was.
    pub fn lacks(&self, seen: &Vector, cuts_alone: bool) -> Vec<u16> {
        let received = |of: &Other| if cuts_alone { of.sent } else { of.reported };
        let lacking = seen
            .dates()
            .filter(|&(of, date)| !self.has(of, date, received));
        lacking.map(|(replica, _)| replica).collect()
    }

    fn has(&self, replica: u16, date: u64, received: impl Fn(&Other) -> u64) -> bool {
        if planted::is(Planted::SessionNotAwaited) {
            return true;
        }
        if let Ok(at) = self.place(replica) {
            return received(&self.others[at]) >= date;
        }
        let node = member::node_of(replica);
        let is_alone = self.epoch == 0 && !self.awaits_mapping;
        if is_alone || node == member::node_of(self.own) {
            return true;
        }
        let is_of = |of: &&Other| member::node_of(of.replica) == node;
        let mut its = self.others.iter().filter(is_of).peekable();
        if its.peek().is_some() {
            // The node has fewer workers than it had: these have everything.
            return its.all(|of| received(of) >= date);
        }
        !self.silent.contains(&node) && node < self.next
    }

    /// Whether all changes up to this time were received from all others, apart from nodes that are away.
    pub fn has_all(&self, upto: u64, is_up: &dyn Fn(u16) -> bool) -> bool {
        let is_there = |of: &&Other| {
            let is_member = of.dropped_at.is_none();
            self.is_here(of.replica) || is_member && is_up(member::node_of(of.replica))
        };
        let mut there = self.others.iter().filter(is_there);
        there.all(|of| of.upto >= upto) && !self.silent.iter().any(|node| is_up(*node))
    }

    /// For each replica, the date of its last epoch that was received.
    pub fn vector(&self) -> Vec<(u16, u64)> {
        self.others.iter().map(|of| (of.replica, of.sent)).collect()
    }

    /// Whether this worker has everything that the sender had according to `after`, the vector of `from`. (Both have
    /// all of their own.) Replicas that are unknown here, or dropped, cannot be waited for.
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

    /// For each other node, the minimum of the times that its workers have reported, 0 if they have reported nothing.
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
