//! What a node promises to keep, by its setting of `appendfsync`.

use crate::history::{History, Kept, Outcome};
use crate::model::{Op, Step};
use crate::node::plan::{Ending, Mode};
use rufous_resp::Reply;

/// The settings of `appendfsync` in this life of the node.
#[derive(Debug)]
pub struct Modes {
    first: Mode,
    /// From when to when which was certainly in force.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    mode: Mode,
    from_us: u64,
    to_us: u64,
}

/// What the disk did that makes syncs late.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slowness {
    /// The longest sync, including one in progress.
    pub sync_us: u64,
    /// Since when requests to the disk failed.
    pub failing_since_us: Option<u64>,
}

/// With `everysec`, how old something unsynced may get on a fast disk: the
/// second, and the worker's own pace.
const WINDOW_US: u64 = 1_250_000;

/// A turn of a worker, and the way of its reply.
const TURN_US: u64 = 100_000;

/// The acknowledged writes of a life of a node with one worker and `everysec`, of which the last may not be synced when it
/// ends, however long syncs take.
pub struct Unsynced {
    /// When each was acknowledged, and the bytes that it has brought; in that order.
    writes: Vec<(u64, u64)>,
}

impl Unsynced {
    pub fn of(history: &History, life: usize) -> Self {
        let bytes = |op: &Op| match op {
            Op::One(Step::Set { value, .. } | Step::Append(_, value)) => Some(value.len() as u64),
            Op::One(Step::IncrBy(..)) => Some(1),
            _ => None,
        };
        let is_done =
            |outcome: &Outcome| matches!(outcome, Outcome::Seen(reply) if !is_error(reply));
        let lives = history.records.iter().filter_map(|lives| lives.get(life));
        let done = lives.flatten().filter(|record| is_done(&record.outcome));
        let writes = done.filter_map(|record| Some((record.answered_us, bytes(&record.op)?)));
        let mut writes: Vec<(u64, u64)> = writes.collect();
        writes.sort_unstable();
        Self { writes }
    }

    /// Everything acknowledged before this has been synced: no write is acknowledged while an earlier one is older than the
    /// bound and not synced, so what is not synced is from the last time as long as the bound in which writes were acknowledged.
    pub fn within_us(&self, bound_us: u64) -> u64 {
        let last = self.writes.last();
        last.map_or(0, |(last, _)| last.saturating_sub(bound_us + TURN_US))
    }

    /// The same where no write is acknowledged while more bytes than the bound are not synced: so the last writes that have
    /// more together do not all lack their sync.
    pub fn within_bytes(&self, bound: u64) -> u64 {
        let mut sum = 0;
        let mut last = self.writes.iter().rev();
        let synced = last.find(|(_, bytes)| {
            sum += bytes;
            sum > bound
        });
        synced.map_or(0, |(at_us, _)| at_us.saturating_sub(TURN_US))
    }
}

fn is_error(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(_))
}

impl Modes {
    pub fn new(first: Mode) -> Self {
        Self {
            first,
            spans: Vec::new(),
        }
    }

    /// A life of the node begins, with the setting it started with.
    pub fn new_life(&mut self, at_us: u64) {
        self.spans = vec![Span {
            mode: self.first,
            from_us: at_us,
            to_us: u64::MAX,
        }];
    }

    /// Another is asked for: from now on it may be in force.
    pub fn asked(&mut self, mode: Mode, at_us: u64) {
        if let Some(last) = self.spans.last_mut()
            && last.mode != mode
        {
            last.to_us = last.to_us.min(at_us);
        }
    }

    pub fn answered(&mut self, mode: Mode, reply: &Reply, at_us: u64) {
        let continues = self
            .spans
            .last()
            .is_some_and(|s| s.mode == mode && s.to_us == u64::MAX);
        if !continues && *reply == Reply::Simple(b"OK".to_vec()) {
            self.spans.push(Span {
                mode,
                from_us: at_us,
                to_us: u64::MAX,
            });
        }
    }

    /// What has to survive where the node's life ends now and so.
    pub fn kept(&self, ending: Ending, at_us: u64, slow: Slowness) -> Kept {
        let always = |s: &Span| s.mode == Mode::Always;
        if self.first == Mode::Off {
            return Kept::Nothing;
        }
        if ending != Ending::PowerLoss || (self.spans.len() == 1 && self.whole(always)) {
            return Kept::All;
        }
        let firm = self.spans.iter().filter(|s| always(s));
        Kept::Prefix {
            up_to_us: self.synced_up_to(at_us, slow),
            firm: firm.map(|s| (s.from_us, s.to_us)).collect(),
        }
    }

    fn whole(&self, what: impl Fn(&Span) -> bool) -> bool {
        self.spans.iter().all(|s| what(s) && s.to_us == u64::MAX)
    }

    /// Everything acknowledged before this has been synced: within a time with
    /// `everysec` or `always` that lasted long enough after it.
    fn synced_up_to(&self, end_us: u64, slow: Slowness) -> u64 {
        let window = WINDOW_US + 2 * slow.sync_us;
        let end_us = end_us.min(slow.failing_since_us.unwrap_or(u64::MAX));
        let mut best = 0;
        let mut run: Option<(u64, u64)> = None;
        for span in &self.spans {
            if span.mode == Mode::No {
                run = None;
                continue;
            }
            // A gap between two settings that both sync is none.
            let from = run.map_or(span.from_us, |(from, _)| from);
            let to = span.to_us.min(end_us);
            run = Some((from, to));
            if to >= from + window {
                best = best.max(to - window);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn ok() -> Reply {
        Reply::Simple(b"OK".to_vec())
    }

    fn power_loss(modes: &Modes, at_us: u64) -> Kept {
        modes.kept(Ending::PowerLoss, at_us, Slowness::default())
    }

    #[test]
    fn always_keeps_everything_and_no_nothing() {
        for (mode, kept) in [(Mode::Always, Kept::All), (Mode::Off, Kept::Nothing)] {
            let mut modes = Modes::new(mode);
            modes.new_life(0);
            assert_eq!(power_loss(&modes, 10 * S), kept);
        }
        let mut modes = Modes::new(Mode::No);
        modes.new_life(0);
        let expected = Kept::Prefix {
            up_to_us: 0,
            firm: Vec::new(),
        };
        assert_eq!(power_loss(&modes, 10 * S), expected);
        let killed = modes.kept(Ending::Kill, 10 * S, Slowness::default());
        assert_eq!(killed, Kept::All);
    }

    #[test]
    fn everysec_keeps_what_is_older_than_its_window() {
        let mut modes = Modes::new(Mode::Everysec);
        modes.new_life(0);
        let up_to = |slow| match modes.kept(Ending::PowerLoss, 10 * S, slow) {
            Kept::Prefix { up_to_us, .. } => up_to_us,
            other => panic!("{other:?}"),
        };
        assert_eq!(up_to(Slowness::default()), 10 * S - WINDOW_US);
        let slow = Slowness {
            sync_us: S,
            failing_since_us: None,
        };
        assert_eq!(up_to(slow), 8 * S - WINDOW_US);
        let failing = Slowness {
            sync_us: 0,
            failing_since_us: Some(5 * S),
        };
        assert_eq!(up_to(failing), 5 * S - WINDOW_US);
    }

    #[test]
    fn the_last_writes_within_a_bound_may_not_be_synced() {
        let writes = vec![(S, 300), (2 * S, 600), (3 * S, 300), (4 * S, 200)];
        let all = Unsynced { writes };
        assert_eq!(all.within_us(2 * S), 2 * S - TURN_US);
        assert_eq!(all.within_bytes(1_000), 2 * S - TURN_US);
        assert_eq!(all.within_bytes(1_200), S - TURN_US);
        assert_eq!(all.within_bytes(1_400), 0, "none of them need be");
        let none = Unsynced { writes: Vec::new() };
        assert_eq!((none.within_us(S), none.within_bytes(0)), (0, 0));
    }

    #[test]
    fn a_time_with_always_is_firm() {
        let mut modes = Modes::new(Mode::No);
        modes.new_life(0);
        modes.asked(Mode::Always, 2 * S);
        modes.answered(Mode::Always, &ok(), 3 * S);
        modes.asked(Mode::No, 5 * S);
        modes.answered(Mode::No, &ok(), 6 * S);
        let expected = Kept::Prefix {
            up_to_us: 5 * S - WINDOW_US,
            firm: vec![(3 * S, 5 * S)],
        };
        assert_eq!(power_loss(&modes, 9 * S), expected);
    }
}
