//! The transactions over slots of a worker's clients that have no outcome yet.

use super::watches::Watches;
use rufous_base::limits::TRANSACTION_PATIENCE_US;
use rufous_base::{ConnId, Now};
use rufous_cluster::composing::Plan;
use rufous_cluster::figures::WaitFigures;
use rufous_command::Failure;
use rufous_kernel::batch::Header;
use std::collections::BTreeMap;

const UNKNOWN: &str = "UNKNOWNRESULT The transaction has no outcome yet, as a slot of its keys is not served or its nodes are busy: it is not \
                       known whether it is executed; see CLUSTER STATUS";
const NOT_READ: &str = "TRYAGAIN The keys could not be read together, as a slot of them is not served or its nodes are busy: see CLUSTER STATUS";
/// A connection, and the number of a request on it.
type Place = (u32, u32, u32);

/// A transaction that has no outcome yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) header: Header,
    pub(super) plan: Plan,
    pub(super) since_us: u64,
    pub(super) watches: Watches,
}

/// The transactions over slots of this worker's clients that have no outcome yet.
#[derive(Debug, Default)]
pub(crate) struct Open {
    waiting: BTreeMap<Place, Waiting>,
    watchers: u64,
    pub(in super::super) waits: WaitFigures,
}

impl Open {
    /// A number for watches that this node has never had. `own`: the worker.
    pub(super) fn next_watcher(&mut self, own: u64) -> u64 {
        self.watchers += 1;
        self.watchers << 10 | own
    }

    /// Those of a connection, each since when it waits.
    pub(in super::super) fn of(&self, conn: ConnId) -> impl Iterator<Item = (&Header, u64)> {
        let place = |seq| (conn.slot, conn.generation, seq);
        let all = self.waiting.range(place(0)..=place(u32::MAX));
        all.map(|(_, waiting)| (&waiting.header, waiting.since_us))
    }

    /// A transaction has begun.
    pub(super) fn on_begun(&mut self, waiting: Waiting) {
        self.waiting.insert(place_of(&waiting.header), waiting);
    }

    /// A transaction has ended. Returns it, unless its client was told that the outcome is unknown.
    pub(super) fn on_ended(&mut self, now: Now, header: &Header) -> Option<Waiting> {
        let waiting = self.waiting.remove(&place_of(header))?;
        let waited_us = now.mono_us.saturating_sub(waiting.since_us);
        self.waits.on_answer(waited_us);
        Some(waiting)
    }

    /// Time has passed. Returns transactions without an outcome, whose clients are told so.
    #[inline]
    pub(super) fn on_time(&mut self, now: Now) -> Vec<Waiting> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let is_late = |one: &mut Waiting| now.mono_us >= one.since_us + TRANSACTION_PATIENCE_US;
        let late = self.waiting.extract_if(.., |_, one| is_late(one));
        let late: Vec<Waiting> = late.map(|(_, waiting)| waiting).collect();
        for waiting in &late {
            self.waits.on_answer(now.mono_us - waiting.since_us);
        }
        late
    }

    /// The reply to a command whose transaction has no outcome in time. `reads`: it changes nothing.
    pub(super) fn without_outcome(&mut self, reads: bool) -> Failure {
        if reads {
            return NOT_READ.into();
        }
        self.waits.unknown += 1;
        UNKNOWN.into()
    }
}

fn place_of(header: &Header) -> Place {
    (header.conn.slot, header.conn.generation, header.seq)
}

#[cfg(test)]
mod tests {
    use super::super::super::super::connection::Connection;
    use super::super::super::super::testing::{id, info};
    use super::*;
    use rufous_cluster::composing::Composer;
    use rufous_kernel::body::{At, Deed};

    fn waiting(slot: u32, since_us: u64) -> Waiting {
        let at = At {
            db: 0,
            resp3: false,
            quiet: false,
        };
        let mut composer = Composer::new(true, false);
        composer.add_deed(at, Deed::Watch { watcher: 1 }, b"a");
        let Ok((_, _, plan)) = composer.finish() else {
            panic!("a plan");
        };
        Waiting {
            header: Connection::new(id(slot, 1), 1, info(), 0).header(0, false, None),
            plan,
            since_us,
            watches: Watches::Stay,
        }
    }

    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            ..Now::default()
        }
    }

    #[test]
    fn a_client_is_answered_once_with_the_outcome_or_without() {
        let mut open = Open::default();
        open.on_begun(waiting(1, 10));
        open.on_begun(waiting(2, 20));
        assert_eq!(open.of(id(1, 1)).count(), 1);
        let header = waiting(1, 10).header;
        assert!(open.on_ended(at(30), &header).is_some());
        assert!(open.on_ended(at(31), &header).is_none());
        assert!(open.on_time(at(19 + TRANSACTION_PATIENCE_US)).is_empty());
        let late = open.on_time(at(20 + TRANSACTION_PATIENCE_US));
        assert_eq!((late.len(), late[0].header.conn), (1, id(2, 1)));
        assert!(open.on_ended(at(u64::MAX), &late[0].header).is_none());
    }

    #[test]
    fn only_a_change_whose_outcome_is_unknown_counts() {
        let mut open = Open::default();
        open.without_outcome(true);
        assert_eq!(open.waits.unknown, 0);
        open.without_outcome(false);
        assert_eq!(open.waits.unknown, 1);
    }

    #[test]
    fn watches_of_workers_have_different_numbers() {
        let mut open = Open::default();
        let numbers = [(0, 0), (0, 1), (1, 1)].map(|(_, own)| open.next_watcher(own));
        assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2]);
    }
}
