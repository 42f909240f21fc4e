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
//! only, which comes after these. Where nodes tell what they had forgotten, that is
//! taken over, as they begin with it; but what others have sent goes by what each of
//! them has said to know ([`Heard::known_to`]).
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

#[cfg(test)]
mod tests;

use super::batch::Report;
use super::member;
use rufous_store::planted::{self, Planted};
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
    /// What it had forgotten when it began to speak.
    begun: u64,
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

    /// `from` begins to speak, and has forgotten up to this: it knew of all up to
    /// there, or so did all who have told it anything.
    pub fn begin(&mut self, from: u16, forgotten: u64) {
        if let Some(other) = self.other(from) {
            other.begun = other.begun.max(forgotten);
        }
    }

    /// Up to where `from` knew of all writes when it made what comes of it next. It
    /// may be less than the horizon, where that was another's: who joins has been
    /// told by some what others had removed since.
    pub fn known_to(&self, from: u16) -> u64 {
        let other = self.place(from).ok().and_then(|at| self.others.get(at));
        other.map_or(0, |other| other.least.max(other.begun))
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
