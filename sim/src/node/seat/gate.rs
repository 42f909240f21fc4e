//! Replies that wait, as `rufous_base::actor` has it: in the order of their turns, but for
//! those that the log alone has to have, which pass what waits for more unless it is of
//! their own connection.

use rufous_base::{Close, ConnId, Until};
use std::collections::VecDeque;

/// What of a turn waits for its gate.
pub(super) struct Turn {
    pub(super) gate: u64,
    pub(super) replies: Vec<(ConnId, Vec<u8>, Until)>,
    pub(super) closes: Vec<(ConnId, Close)>,
    pub(super) drains: Vec<ConnId>,
}

impl Turn {
    fn is_empty(&self) -> bool {
        self.replies.is_empty() && self.closes.is_empty() && self.drains.is_empty()
    }

    fn is_for(&self, conn: ConnId) -> bool {
        self.replies.iter().any(|reply| reply.0 == conn)
            || self.closes.iter().any(|close| close.0 == conn)
            || self.drains.contains(&conn)
    }
}

#[derive(Default)]
pub(super) struct Gate {
    logging: VecDeque<Turn>,
    waiting: VecDeque<Turn>,
}

impl Gate {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.logging.len() + self.waiting.len()
    }

    /// What the first that waits does so for.
    pub(super) fn first(&self) -> Option<u64> {
        let first = |line: &VecDeque<Turn>| line.front().map(|turn| turn.gate);
        first(&self.logging).or_else(|| first(&self.waiting))
    }

    /// Takes a turn. Whether any of it has to wait, where so much is passed and logged.
    pub(super) fn take(&mut self, mut turn: Turn, (passed, logged): (u64, u64)) -> bool {
        if turn.is_empty() {
            return false;
        }
        let last = |line: &VecDeque<Turn>| line.back().map_or(0, |turn| turn.gate);
        turn.gate = turn.gate.max(last(&self.logging)).max(last(&self.waiting));
        let gate = turn.gate;
        let mut late = Turn {
            gate,
            replies: Vec::new(),
            closes: Vec::new(),
            drains: Vec::new(),
        };
        let mut early = Vec::new();
        for reply in turn.replies {
            match reply.2 == Until::Logged && !self.is_behind(reply.0) && !late.is_for(reply.0) {
                true => early.push(reply),
                false => late.replies.push(reply),
            }
        }
        turn.replies = early;
        let waits = |conn: ConnId| self.is_behind(conn) || late.is_for(conn);
        let closes = turn.closes.extract_if(.., |close| waits(close.0)).collect();
        let drains = turn.drains.extract_if(.., |conn| waits(*conn)).collect();
        (late.closes, late.drains) = (closes, drains);
        let waited = match late.is_empty() {
            true => gate > logged.max(passed),
            false => gate > passed,
        };
        self.logging.extend((!turn.is_empty()).then_some(turn));
        self.waiting.extend((!late.is_empty()).then_some(late));
        waited
    }

    fn is_behind(&self, conn: ConnId) -> bool {
        self.waiting.iter().any(|turn| turn.is_for(conn))
    }

    /// What need not wait any more.
    pub(super) fn release(&mut self, (passed, logged): (u64, u64)) -> Vec<Turn> {
        let mut released = Vec::new();
        let logged = logged.max(passed);
        for (line, at) in [(&mut self.logging, logged), (&mut self.waiting, passed)] {
            while let Some(turn) = line.pop_front_if(|turn| turn.gate <= at) {
                released.push(turn);
            }
        }
        released
    }

    /// Whether any of these was released before what its turn or an earlier one has left.
    pub(super) fn overtaken_by(&self, released: &[Turn]) -> bool {
        let first = self.waiting.front().map(|turn| turn.gate);
        first.is_some_and(|gate| released.iter().any(|turn| turn.gate >= gate))
    }

    /// What waits so, or for more, never leaves.
    pub(super) fn abandon(&mut self, until: Until) -> Vec<Turn> {
        let mut all: Vec<Turn> = self.waiting.drain(..).collect();
        if until == Until::Logged {
            all.extend(self.logging.drain(..));
        }
        all
    }
}
