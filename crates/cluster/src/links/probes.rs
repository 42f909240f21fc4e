//! Whether the process of a node has ended: its session has ended, and its address refuses another connection. Such a
//! node counts as unheard at once; any other failure shows by silence alone.
//!
//! Of two nodes the lower one dials, again and again. The other one only asks, with connections that it does not use.
//! It asks again where one is taken: a process that ends may close its sessions before its listening socket.

use rufous_base::Now;
use rufous_base::limits::{DIAL_PAUSE_US, HEARING_US};
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// Nodes to be asked.
    due: BTreeMap<NodeNo, Probe>,
    /// Connections that are being made, by their tokens.
    asked: BTreeMap<u64, (NodeNo, Probe)>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    at_us: u64,
    /// Since the session has ended, or since the probe before.
    pause_us: u64,
}

impl Probes {
    /// The session with a node that dials this one has ended.
    pub(super) fn on_ended(&mut self, now: Now, no: NodeNo) {
        self.ask_later(now, no, DIAL_PAUSE_US.0);
    }

    fn ask_later(&mut self, now: Now, no: NodeNo, pause_us: u64) {
        let at_us = now.mono_us + pause_us;
        self.due.insert(no, Probe { at_us, pause_us });
    }

    /// The nodes to be asked now, with the tokens of the connections.
    pub(super) fn take_due(
        &mut self,
        now: Now,
        mut token: impl FnMut(NodeNo) -> Option<u64>,
    ) -> Vec<(NodeNo, u64)> {
        let due = self
            .due
            .extract_if(.., |_, probe| probe.at_us <= now.mono_us);
        let asked = due.filter_map(|(no, probe)| Some((no, token(no)?, probe)));
        let asked: Vec<_> = asked.collect();
        let tokens = asked
            .iter()
            .map(|(no, token, probe)| (*token, (*no, *probe)));
        self.asked.extend(tokens);
        asked
            .into_iter()
            .map(|(no, token, _)| (no, token))
            .collect()
    }

    /// A connection was made. True if it was to ask a node.
    pub(super) fn on_taken(&mut self, now: Now, token: u64) -> bool {
        let Some((no, probe)) = self.asked.remove(&token) else {
            return false;
        };
        // After that, silence shows whether it runs.
        if probe.pause_us * 4 <= HEARING_US {
            self.ask_later(now, no, probe.pause_us * 2);
        }
        true
    }

    /// A connection could not be made: the node that it was to ask, if it was to ask one.
    pub(super) fn on_failed(&mut self, token: u64) -> Option<NodeNo> {
        self.asked.remove(&token).map(|(no, _)| no)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Now {
        Now {
            mono_us: ms * 1_000,
            ..Now::default()
        }
    }

    fn due(probes: &mut Probes, ms: u64) -> Vec<u64> {
        let due = probes.take_due(at(ms), |no| Some(ms << 16 | u64::from(no.0)));
        due.into_iter().map(|(_, token)| token >> 16).collect()
    }

    #[test]
    fn a_node_is_asked_after_each_session_until_it_refuses() {
        let mut probes = Probes::default();
        assert!(due(&mut probes, 0).is_empty());
        probes.on_ended(at(10), NodeNo(3));
        assert!(due(&mut probes, 59).is_empty());
        assert_eq!(due(&mut probes, 60), [60]);
        assert!(probes.on_taken(at(70), 60 << 16 | 3));
        assert!(due(&mut probes, 169).is_empty());
        assert_eq!(due(&mut probes, 170), [170]);
        assert_eq!(probes.on_failed(9), None);
        assert_eq!(probes.on_failed(170 << 16 | 3), Some(NodeNo(3)));
        assert_eq!(probes.on_failed(170 << 16 | 3), None);
        assert!(due(&mut probes, 99_000).is_empty());
    }

    #[test]
    fn a_node_that_takes_connections_is_asked_a_few_times() {
        let mut probes = Probes::default();
        probes.on_ended(at(0), NodeNo(3));
        let mut times = Vec::new();
        for ms in 0..10_000 {
            for token in due(&mut probes, ms) {
                times.push(ms);
                assert!(probes.on_taken(at(ms), token << 16 | 3));
            }
        }
        assert_eq!(times, [50, 150, 350, 750]);
        // It has a session again by then.
        probes.on_ended(at(10_000), NodeNo(3));
        assert!(probes.take_due(at(10_050), |_| None).is_empty());
        assert!(due(&mut probes, 20_000).is_empty());
    }
}
