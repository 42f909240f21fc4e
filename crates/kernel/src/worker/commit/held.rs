//! Frames and messages that wait for commits. Those that concern lattice keys alone wait for the
//! log only, and not behind those that wait for chains.

use super::FrameEnd;
use crate::planted::{self, Planted};
use crate::worker::Message;
use rufous_base::{Until, WorkerId};
use std::collections::VecDeque;

/// The position that has to be committed, the recipient, and the message.
pub(super) type Waits = (u64, WorkerId, Message);

/// Messages that wait.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// They wait for the log and for chains.
    passed: VecDeque<Waits>,
    /// They wait for the log alone.
    logged: VecDeque<Waits>,
}

impl Held {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.passed.is_empty() && self.logged.is_empty()
    }

    pub(super) fn push(&mut self, until: Until, waits: Waits) {
        match until {
            Until::Passed => self.passed.push_back(waits),
            Until::Logged => self.logged.push_back(waits),
        }
    }

    /// The next message whose position is committed and for which `may_go` is true.
    pub(super) fn pop(&mut self, at: At, may_go: impl Fn(&Waits) -> bool) -> Option<Waits> {
        let next = |line: &mut VecDeque<Waits>, at: u64| {
            line.pop_front_if(|waits| waits.0 <= at && may_go(waits))
        };
        next(&mut self.logged, at.logged).or_else(|| next(&mut self.passed, at.passed))
    }

    /// Removes all messages that wait for `until` or more.
    pub(super) fn take(&mut self, until: Until) -> impl Iterator<Item = (Until, Waits)> + use<> {
        let passed = std::mem::take(&mut self.passed);
        let logged = match until {
            Until::Passed => VecDeque::new(),
            Until::Logged => std::mem::take(&mut self.logged),
        };
        let logged = logged.into_iter().map(|waits| (Until::Logged, waits));
        logged.chain(passed.into_iter().map(|waits| (Until::Passed, waits)))
    }

    pub(super) fn has_passed(&self, at: At) -> bool {
        let is_due =
            |line: &VecDeque<Waits>, at: u64| line.front().is_some_and(|waits| waits.0 <= at);
        is_due(&self.logged, at.logged) || is_due(&self.passed, at.passed)
    }
}

/// The committed positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) passed: u64,
    pub(super) logged: u64,
}

impl At {
    pub(super) fn of(self, until: Until) -> u64 {
        match until {
            Until::Passed => self.passed,
            Until::Logged => self.logged,
        }
    }
}

/// Frames that wait for chains.
#[derive(Debug, Default)]
pub(super) struct Gates {
    /// Each with the write that chains must have committed.
    frames: VecDeque<(u64, u64)>,
    /// The outcome of some writes is unknown. No gate opens before the clients that wait were told
    /// so, at the end of the turn: the chains no longer wait for these writes.
    is_losing: bool,
}

impl Gates {
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The committed position, for what the log has committed.
    pub(super) fn committed_of(&self, logged: u64) -> u64 {
        let first = self.frames.front();
        match first.filter(|_| !planted::is(Planted::GatesOpen)) {
            Some((frame, _)) => logged.min(frame - 1),
            None => logged,
        }
    }

    /// A frame is committed once it is logged and the chains have committed its writes.
    pub(super) fn on_frame(&mut self, frame: u64, end: FrameEnd) {
        let waits = |write: &u64| *write > end.settled || self.is_losing;
        if let Some(write) = end.written.filter(waits) {
            self.frames.push_back((frame, write));
        }
    }

    pub(super) fn on_settled(&mut self, settled: u64) {
        while !self.is_losing && self.frames.front().is_some_and(|(_, at)| *at <= settled) {
            self.frames.pop_front();
        }
    }

    pub(super) fn on_lost(&mut self) {
        self.is_losing = true;
    }

    pub(super) fn on_told(&mut self) {
        self.is_losing = false;
    }
}
