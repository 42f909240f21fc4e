//! The possible values of a counter that one client has incremented and cleared.
//!
//! The client sends one request after the other, but a request sent on a
//! connection that it lost may be executed late: also after requests on its
//! next one.

use std::collections::BTreeSet;

/// This many pending requests are remembered: older ones have arrived, or never will.
const LATE: usize = 12;

/// A sum, and which of the late ones are not done, a bit for each.
type State = (i64, u16);

/// Adds so much, or clears.
pub(super) type Deed = Option<i64>;

#[derive(Debug)]
pub(super) struct Cleared {
    states: BTreeSet<State>,
    late: [Deed; LATE],
    next: usize,
}

fn done(sum: i64, deed: Deed) -> i64 {
    deed.map_or(0, |by| sum + by)
}

impl Cleared {
    pub(super) fn new() -> Self {
        Self {
            states: BTreeSet::from([(0, 0)]),
            late: [None; LATE],
            next: 0,
        }
    }

    /// It was done now.
    pub(super) fn did(&mut self, deed: Deed) {
        let all = self.states.iter();
        self.states = all.map(|&(sum, late)| (done(sum, deed), late)).collect();
        self.arrive();
    }

    /// It may be done now, or later, or never.
    pub(super) fn may_do(&mut self, deed: Deed) {
        let bit = 1 << self.next;
        self.late[self.next] = deed;
        self.next = (self.next + 1) % LATE;
        let all = self.states.iter();
        self.states = all.map(|&(sum, late)| (sum, late | bit)).collect();
        self.arrive();
    }

    /// Another client may have cleared it by now.
    pub(super) fn may_be_cleared(&mut self) {
        let cleared: Vec<State> = self.states.iter().map(|(_, late)| (0, *late)).collect();
        self.states.extend(cleared);
        self.arrive();
    }

    /// Each that is on its way may arrive now.
    fn arrive(&mut self) {
        let mut new: Vec<State> = self.states.iter().copied().collect();
        while let Some((sum, late)) = new.pop() {
            let bits = (0..LATE).filter(|at| late & (1 << at) != 0);
            for at in bits {
                let state = (done(sum, self.late[at]), late & !(1 << at));
                if self.states.insert(state) {
                    new.push(state);
                }
            }
        }
    }

    pub(super) fn sums(&self) -> BTreeSet<i64> {
        self.states.iter().map(|(sum, _)| *sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_deeds_may_come_behind_others_once() {
        let mut all = Cleared::new();
        all.did(Some(7));
        all.may_do(Some(-1));
        assert_eq!(all.sums(), BTreeSet::from([6, 7]));
        all.did(None);
        assert_eq!(all.sums(), BTreeSet::from([-1, 0]));
        all.did(Some(5));
        assert_eq!(all.sums(), BTreeSet::from([4, 5]));
        all.may_do(None);
        assert_eq!(all.sums(), BTreeSet::from([-1, 0, 4, 5]));
        all.did(Some(10));
        assert_eq!(all.sums(), BTreeSet::from([-1, 0, 9, 10, 14, 15]));
    }

    #[test]
    fn sure_deeds_leave_one_sum() {
        let mut all = Cleared::new();
        for deed in [Some(3), None, Some(2), Some(2)] {
            all.did(deed);
        }
        assert_eq!(all.sums(), BTreeSet::from([4]));
    }
}
