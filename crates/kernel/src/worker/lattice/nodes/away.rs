//! The other nodes that a start does not wait for: those without a session, or silent on it, for a
//! while.
//!
//! A start needs what it had itself before, which its files have, and the state of the nodes that it
//! reaches. A node that is away has nothing that was promised to clients here: what this node had
//! sent to it, and received from it, was logged before, and so was the date of each report. Where
//! the files may lack that ([`Past::Unknown`]), every node is waited for: one that is away may have
//! additions of this node's counters that no other node has, and later additions would hide in them.
//!
//! A node that has not served yet under its number has promised nothing, and has no keys either. It
//! needs the state of one that serves: what it shows is then at least what that one shows.

use rufous_base::limits::{GOSSIP_AWAY_US, GOSSIP_SILENT_US};
use std::collections::{BTreeMap, BTreeSet};

/// What is known about the node's earlier starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Past {
    /// There was none: other nodes have nothing of this one.
    New,
    /// The files have everything that they logged.
    Whole,
    /// The end of the log may be missing, as after a loss of power, or the log was off.
    #[default]
    Unknown,
}

/// Until when nodes that are away are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// For some seconds.
    ForAWhile,
    /// Until a node is reached that serves lattice keys.
    ForOneThatServes,
    /// Until they are back, or removed.
    Always,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Away {
    past: Past,
    /// Nodes that announce that they serve lattice keys.
    serving: BTreeSet<u16>,
    /// Those that are reached, as of the last turn.
    reached: BTreeSet<u16>,
    /// By node: whether it has a session, and since when nothing has been received from it.
    silent: BTreeMap<u16, (bool, u64)>,
    /// Nodes that have sent something since the last turn.
    heard: BTreeSet<u16>,
}

impl Away {
    pub(super) fn new(past: Past) -> Self {
        Self {
            past,
            ..Self::default()
        }
    }

    /// The files are of no node, or of one with another number.
    pub(super) fn is_new(&mut self) {
        if self.past == Past::Whole {
            self.past = Past::New;
        }
    }

    pub(super) fn awaited(&self) -> Awaited {
        match self.past {
            Past::Whole => Awaited::ForAWhile,
            Past::New if !self.reached.is_disjoint(&self.serving) => Awaited::ForAWhile,
            Past::New => Awaited::ForOneThatServes,
            Past::Unknown => Awaited::Always,
        }
    }

    /// These nodes announce that they serve. True if that is news.
    pub(super) fn on_serving(&mut self, nodes: impl Iterator<Item = u16>) -> bool {
        let serving = nodes.collect();
        let before = std::mem::replace(&mut self.serving, serving);
        before != self.serving
    }

    /// A node has sent a message.
    pub(super) fn on_heard(&mut self, node: u16) {
        self.heard.insert(node);
    }

    /// Returns the nodes among `others` that are not waited for; `up` have a session, and `complete` have
    /// sent all their state.
    pub(super) fn on_turn(
        &mut self,
        now_us: u64,
        others: &BTreeSet<u16>,
        up: &BTreeSet<u16>,
        complete: &BTreeSet<u16>,
    ) -> BTreeSet<u16> {
        let heard = std::mem::take(&mut self.heard);
        self.silent.retain(|node, _| others.contains(node));
        for &node in others {
            let is_up = up.contains(&node);
            let silent = self.silent.entry(node).or_insert((is_up, now_us));
            if silent.0 != is_up || heard.contains(&node) {
                *silent = (is_up, now_us);
            }
        }
        let away = self.silent.iter().filter(|(_, of)| now_us >= due(of));
        let away = away.map(|(node, _)| *node);
        let away: BTreeSet<u16> = away.filter(|node| !complete.contains(node)).collect();
        self.reached = others.difference(&away).copied().collect();
        if self.awaited() == Awaited::ForAWhile {
            away
        } else {
            BTreeSet::new()
        }
    }

    /// When the next node counts as away.
    pub(super) fn wake_us(&self, now_us: u64) -> Option<u64> {
        let all = self.silent.values().map(due);
        all.filter(|at| *at > now_us && self.past != Past::Unknown)
            .min()
    }
}

fn due((is_up, since_us): &(bool, u64)) -> u64 {
    since_us
        + if *is_up {
            GOSSIP_SILENT_US
        } else {
            GOSSIP_AWAY_US
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nodes: &[u16]) -> BTreeSet<u16> {
        nodes.iter().copied().collect()
    }

    #[test]
    fn a_node_without_a_session_is_away_after_a_while() {
        let (mut away, none) = (Away::new(Past::Whole), set(&[]));
        let (others, up) = (set(&[1, 2]), set(&[1]));
        assert_eq!(away.on_turn(7, &others, &up, &none), set(&[]));
        assert_eq!(away.wake_us(7), Some(7 + GOSSIP_AWAY_US));
        assert_eq!(
            away.on_turn(6 + GOSSIP_AWAY_US, &others, &up, &none),
            set(&[])
        );
        assert_eq!(
            away.on_turn(7 + GOSSIP_AWAY_US, &others, &up, &none),
            set(&[2])
        );
        // It is back.
        let at = 8 + GOSSIP_AWAY_US;
        assert_eq!(away.on_turn(at, &others, &others, &none), set(&[]));
        assert_eq!(
            away.on_turn(at + GOSSIP_AWAY_US, &others, &up, &none),
            set(&[])
        );
    }

    #[test]
    fn a_node_that_sends_is_waited_for_and_one_that_is_silent_is_not_for_ever() {
        let (mut away, none) = (Away::new(Past::Whole), set(&[]));
        let both = set(&[1, 2]);
        away.on_turn(0, &both, &both, &none);
        away.on_heard(1);
        let half = GOSSIP_SILENT_US / 2;
        assert_eq!(away.on_turn(half, &both, &both, &none), set(&[]));
        assert_eq!(
            away.on_turn(GOSSIP_SILENT_US, &both, &both, &none),
            set(&[2])
        );
        let later = half + GOSSIP_SILENT_US;
        assert_eq!(away.on_turn(later, &both, &both, &none), both);
    }

    #[test]
    fn files_that_may_lack_something_need_every_node() {
        let (mut away, none) = (Away::new(Past::Unknown), set(&[]));
        away.on_serving([1].into_iter());
        away.on_turn(0, &set(&[1, 2]), &set(&[1]), &none);
        away.on_heard(1);
        let late = 100 * GOSSIP_SILENT_US;
        assert_eq!(
            away.on_turn(late, &set(&[1, 2]), &set(&[1]), &none),
            set(&[])
        );
        assert_eq!(away.awaited(), Awaited::Always);
        assert_eq!(away.wake_us(0), None);
    }

    #[test]
    fn a_new_node_needs_one_that_serves() {
        let (mut away, none) = (Away::new(Past::Whole), set(&[]));
        away.is_new();
        let (others, up) = (set(&[1, 2]), set(&[1]));
        away.on_turn(0, &others, &up, &none);
        let at = GOSSIP_AWAY_US;
        assert_eq!(
            away.on_turn(at, &others, &up, &none),
            set(&[]),
            "1 may be new, too"
        );
        assert_eq!(away.awaited(), Awaited::ForOneThatServes);
        assert!(away.on_serving([2].into_iter()));
        assert_eq!(away.on_turn(at, &others, &up, &none), set(&[]), "2 is away");
        assert!(away.on_serving([1].into_iter()));
        assert!(!away.on_serving([1].into_iter()));
        assert_eq!(away.on_turn(at, &others, &up, &none), set(&[2]));
        assert_eq!(away.awaited(), Awaited::ForAWhile);
        // It sends nothing any more.
        let late = GOSSIP_SILENT_US;
        assert_eq!(away.on_turn(late, &others, &up, &none), set(&[]));
        assert_eq!(
            away.on_turn(late, &others, &up, &up),
            set(&[2]),
            "it has sent all"
        );
    }
}
