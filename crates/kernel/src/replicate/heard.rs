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

use crate::planted::{self, Planted};

/// What one worker knows of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    own: usize,
    /// Up to where it has heard of each; its own place means nothing.
    upto: Vec<u64>,
    /// The dates of the last epochs that have come of each.
    sent: Vec<u64>,
    /// The least that each has heard up to, as it has said.
    least: Vec<u64>,
    /// The horizon of each, as it has said.
    horizons: Vec<u64>,
}

impl Heard {
    pub fn new(own: usize, workers: usize) -> Self {
        assert!(own < workers, "a worker is one of them");
        Self {
            own,
            upto: vec![0; workers],
            sent: vec![0; workers],
            least: vec![0; workers],
            horizons: vec![0; workers],
        }
    }

    /// `from` has said that it has sent everything up to `upto`, and has heard
    /// up to `least` itself, and what its horizon is. What was said before
    /// stays true.
    pub fn hear(&mut self, from: usize, upto: u64, least: u64, horizon: u64) {
        if from == self.own {
            return;
        }
        if let Some(heard) = self.upto.get_mut(from) {
            *heard = (*heard).max(upto);
        }
        if let Some(told) = self.least.get_mut(from) {
            *told = (*told).max(least);
        }
        if let Some(told) = self.horizons.get_mut(from) {
            *told = (*told).max(horizon);
        }
    }

    /// All that `from` has changed before `date` has come, save what it has
    /// promised to others.
    pub fn hear_sent(&mut self, from: usize, date: u64) {
        if let Some(sent) = self.sent.get_mut(from).filter(|_| from != self.own) {
            *sent = (*sent).max(date);
        }
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let own = self.own;
        (0..self.upto.len()).filter(move |&worker| worker != own)
    }

    /// The least this worker has heard up to, of all others; where it is
    /// alone, everything.
    pub fn least(&self) -> u64 {
        let heard = self.others().map(|worker| self.upto[worker]);
        heard.min().unwrap_or(u64::MAX)
    }

    /// Everybody has every change up to this.
    pub fn horizon(&self) -> u64 {
        let told = self.others().map(|worker| self.least[worker]);
        told.min().unwrap_or(u64::MAX).min(self.least())
    }

    /// What was removed up to this may be forgotten.
    pub fn settled(&self) -> u64 {
        if planted::is(Planted::ForgottenEarly) {
            return u64::MAX;
        }
        let told = self.others().map(|worker| self.horizons[worker]);
        told.min().unwrap_or(u64::MAX).min(self.horizon())
    }

    /// The epochs of each that have come, in order.
    pub fn vector(&self) -> &[u64] {
        &self.sent
    }

    /// Whether this worker has everything that `after`, the vector of `from`,
    /// says its sender had. (Both know all of their own.)
    pub fn covers(&self, from: usize, after: &[u64]) -> bool {
        if planted::is(Planted::CutNotKept) {
            return true;
        }
        let mut both = self.sent.iter().zip(after).enumerate();
        both.all(|(worker, (sent, after))| worker == self.own || worker == from || sent >= after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_worker_alone_forgets_at_once() {
        let heard = Heard::new(0, 1);
        assert_eq!((heard.least(), heard.horizon()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn the_horizon_waits_for_the_slowest_and_for_what_it_says() {
        let mut heard = Heard::new(1, 3);
        heard.hear(0, 10, 5, 0);
        assert_eq!((heard.least(), heard.horizon()), (0, 0));
        heard.hear(2, 7, 9, 6);
        assert_eq!((heard.least(), heard.horizon()), (7, 5));
        heard.hear(0, 9, 8, 3);
        assert_eq!(heard.settled(), 3);
        assert_eq!(
            (heard.least(), heard.horizon()),
            (7, 7),
            "nothing is unsaid"
        );
        heard.hear(1, 1, 1, 1);
        assert_eq!(heard.least(), 7, "what it hears of itself means nothing");
    }

    #[test]
    fn what_a_change_may_depend_on_is_covered_or_not() {
        let mut heard = Heard::new(2, 3);
        heard.hear_sent(0, 10);
        heard.hear_sent(1, 4);
        heard.hear(1, 99, 0, 0);
        assert!(heard.covers(0, &[99, 4, 99]));
        assert!(!heard.covers(0, &[99, 5, 99]));
        assert!(heard.covers(1, &[10, 99, 0]));
        assert!(!heard.covers(1, &[11, 0, 0]));
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
            let mut heard: Vec<_> = (0..workers).map(|w| Heard::new(w, workers)).collect();
            let mut wires = vec![vec![std::collections::VecDeque::<Said>::new(); workers]; workers];
            let mut fresh = vec![Vec::<u64>::new(); workers];
            let mut has = vec![std::collections::BTreeSet::<u64>::new(); workers];
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
                        heard[b].hear(a, upto, least, horizon);
                    }
                }
                let all: std::collections::BTreeSet<u64> = has.iter().flatten().copied().collect();
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
