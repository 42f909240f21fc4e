//! How far a stopping node is.

use rufous_base::Now;
use rufous_base::limits::{LEFT_PATIENCE_US, STOP_PATIENCE_US};

/// A worker's way from the order to stop to its end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    since_us: Option<u64>,
    /// When the node was seen to have left the coordinator.
    left_us: Option<u64>,
    /// The worker waits for no other node any more.
    parted: bool,
    done: bool,
}

impl Stop {
    /// The node stops.
    pub(super) fn on_stop(&mut self, now: Now) {
        self.since_us = Some(now.mono_us);
    }

    /// The stopping node has left the coordinator.
    pub(super) fn on_left(&mut self, now: Now) {
        self.left_us.get_or_insert(now.mono_us);
    }

    /// The worker waits for no other node any more. True for the first call.
    pub(super) fn on_parted(&mut self) -> bool {
        !std::mem::replace(&mut self.parted, true)
    }

    /// Everything is done.
    pub(super) fn on_done(&mut self) {
        self.done = true;
    }

    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.since_us.is_some()
    }

    /// Whether the worker has done all that there was to do before the node stops.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.done
    }

    /// Whether the node stops, and the worker has more to do for that.
    #[inline]
    pub(super) fn is_under_way(&self) -> bool {
        self.has_begun() && !self.done
    }

    /// Whether the node stops, and has waited as long as it may for other nodes. When it has left the
    /// coordinator these replace it, and do not answer for the chains that it knows any more.
    /// `is_alone`: no other node is connected.
    pub(super) fn has_waited(&self, now: Now, is_alone: bool) -> bool {
        let Some(since_us) = self.since_us else {
            return false;
        };
        let patience_us = if is_alone {
            LEFT_PATIENCE_US
        } else {
            STOP_PATIENCE_US
        };
        let until_us = since_us + patience_us;
        let left_us = self.left_us.map(|us| us + LEFT_PATIENCE_US);
        now.mono_us >= left_us.unwrap_or(until_us).min(until_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            ..Now::default()
        }
    }

    #[test]
    fn a_node_that_is_connected_waits_longer() {
        let mut stop = Stop::default();
        assert!(!stop.has_begun() && !stop.has_waited(at(u64::MAX), true));
        stop.on_stop(at(10));
        assert!(stop.is_under_way());
        let waited = |us, is_alone| stop.has_waited(at(us), is_alone);
        assert!(!waited(9 + LEFT_PATIENCE_US, true) && waited(10 + LEFT_PATIENCE_US, true));
        assert!(!waited(9 + STOP_PATIENCE_US, false) && waited(10 + STOP_PATIENCE_US, false));
    }

    #[test]
    fn it_waits_less_once_it_has_left_the_coordinator() {
        let mut stop = Stop::default();
        stop.on_stop(at(10));
        stop.on_left(at(30));
        stop.on_left(at(40));
        let waited = |us| stop.has_waited(at(us), false);
        assert!(!waited(29 + LEFT_PATIENCE_US) && waited(30 + LEFT_PATIENCE_US));
    }

    #[test]
    fn each_end_is_told_once() {
        let mut stop = Stop::default();
        stop.on_stop(at(1));
        assert!(stop.on_parted() && !stop.on_parted());
        stop.on_done();
        assert!(stop.has_begun() && stop.is_over() && !stop.is_under_way());
    }
}
