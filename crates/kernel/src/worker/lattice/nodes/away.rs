//! The other nodes that a start does not wait for: those without a session, or silent on it, for a
//! while.
//!
//! A start needs what it had itself before, which its files have, and the state of the nodes that it
//! reaches. A node that is away has nothing that was promised to clients here: what this node had
//! sent to it, and received from it, was logged before, and so was the date of each report. Where
//! the files may lack that ([`Past::Unknown`]), every node is waited for: one that is away may have
//! additions of this node's counters that no other node has, and later additions would hide in them.
//! So does a node that has not served yet under its number: it has no keys to serve.

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

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Away {
    past: Past,
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

    pub(super) fn past(&self) -> Past {
        self.past
    }

    /// A node has sent a message.
    pub(super) fn on_heard(&mut self, node: u16) {
        self.heard.insert(node);
    }

    /// Returns the nodes among `others` that are not waited for; `up` have a session.
    pub(super) fn on_turn(
        &mut self,
        now_us: u64,
        others: &BTreeSet<u16>,
        up: &BTreeSet<u16>,
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
        if self.past != Past::Whole {
            return BTreeSet::new();
        }
        let away = self.silent.iter().filter(|(_, of)| now_us >= due(of));
        away.map(|(node, _)| *node).collect()
    }

    /// When the next node counts as away.
    pub(super) fn wake_us(&self, now_us: u64) -> Option<u64> {
        let all = self.silent.values().map(due);
        all.filter(|at| *at > now_us && self.past == Past::Whole)
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
        let mut away = Away::new(Past::Whole);
        let (others, up) = (set(&[1, 2]), set(&[1]));
        assert_eq!(away.on_turn(7, &others, &up), set(&[]));
        assert_eq!(away.wake_us(7), Some(7 + GOSSIP_AWAY_US));
        assert_eq!(away.on_turn(6 + GOSSIP_AWAY_US, &others, &up), set(&[]));
        assert_eq!(away.on_turn(7 + GOSSIP_AWAY_US, &others, &up), set(&[2]));
        // It is back.
        let at = 8 + GOSSIP_AWAY_US;
        assert_eq!(away.on_turn(at, &others, &others), set(&[]));
        assert_eq!(away.on_turn(at + GOSSIP_AWAY_US, &others, &up), set(&[]));
    }

    #[test]
    fn a_node_that_sends_is_waited_for_and_one_that_is_silent_is_not_for_ever() {
        let mut away = Away::new(Past::Whole);
        let both = set(&[1, 2]);
        away.on_turn(0, &both, &both);
        away.on_heard(1);
        let half = GOSSIP_SILENT_US / 2;
        assert_eq!(away.on_turn(half, &both, &both), set(&[]));
        assert_eq!(away.on_turn(GOSSIP_SILENT_US, &both, &both), set(&[2]));
        let later = half + GOSSIP_SILENT_US;
        assert_eq!(away.on_turn(later, &both, &both), both);
    }

    #[test]
    fn files_that_may_lack_something_need_every_node() {
        let mut new = Away::new(Past::Whole);
        new.is_new();
        for mut away in [Away::new(Past::Unknown), new] {
            away.on_turn(0, &set(&[1]), &set(&[]));
            let late = 100 * GOSSIP_SILENT_US;
            assert_eq!(away.on_turn(late, &set(&[1]), &set(&[])), set(&[]));
            assert_eq!(away.wake_us(0), None);
        }
    }
}
