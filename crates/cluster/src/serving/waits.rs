//! Requests of blocking commands of other nodes: which of them run here, which wait for data, and
//! which were ended by their nodes.

use super::{Action, Answer, Asker, Serving};
use rufous_base::ConnId;
use rufous_mapping::NodeNo;
use rufous_wire::message::{EndWaits, How};
use std::collections::BTreeMap;

/// Limit on the requests of one worker of another node that wait here. They take memory of this node
/// for clients that only the other node has counted.
pub(super) const MAX_WAITS: usize = 65_536;

/// Why a request may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayNot {
    /// Its node has ended it, or the session is over: then the reply is dropped.
    Ended(How),
    TooMany,
}

/// A request of a blocking command that runs or waits here.
#[derive(Debug)]
struct Blocking {
    conn: ConnId,
    waits: bool,
    /// How it was ended before it waited.
    ended: Option<How>,
}

/// See the module's description. All are of the present sessions.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    all: BTreeMap<(NodeNo, u32, u64), Blocking>,
    waits: usize,
}

fn place(asker: &Asker) -> (NodeNo, u32, u64) {
    (asker.no, asker.worker, asker.number)
}

impl Blocked {
    pub(super) fn waits(&self) -> usize {
        self.waits
    }

    pub(super) fn is_waiting(&self, asker: &Asker) -> bool {
        self.all.get(&place(asker)).is_some_and(|of| of.waits)
    }

    /// It is answered, or was not executed. Returns whether it waited.
    pub(super) fn remove(&mut self, asker: &Asker) -> bool {
        let waited = self.all.remove(&place(asker)).is_some_and(|of| of.waits);
        self.waits -= usize::from(waited);
        waited
    }

    /// A session has begun or ended: returns those of earlier ones that wait.
    pub(super) fn take_of(&mut self, no: NodeNo) -> Vec<ConnId> {
        let of_node = (no, 0, 0)..=(no, u32::MAX, u64::MAX);
        let places: Vec<_> = self.all.range(of_node).map(|(place, _)| *place).collect();
        let taken = places.iter().filter_map(|place| self.all.remove(place));
        let waiting: Vec<ConnId> = taken.filter(|of| of.waits).map(|of| of.conn).collect();
        self.waits -= waiting.len();
        waiting
    }
}

impl Serving {
    /// A request of a blocking command is about to run.
    pub fn on_blocking(&mut self, asker: &Asker, conn: ConnId) {
        let blocking = Blocking {
            conn,
            waits: false,
            ended: None,
        };
        self.blocked.all.insert(place(asker), blocking);
    }

    /// A request found no data, and waits unless the result says otherwise. Its node is told.
    pub fn on_waits(&mut self, asker: &Asker) -> Option<MayNot> {
        if !self.is_current(asker) {
            return Some(MayNot::Ended(How::TimedOut));
        }
        let Some(blocking) = self.blocked.all.get_mut(&place(asker)) else {
            return Some(MayNot::Ended(How::TimedOut));
        };
        if let Some(how) = blocking.ended {
            return Some(MayNot::Ended(how));
        }
        let stream = self.streams.entry((asker.no, asker.worker)).or_default();
        if stream.waiting >= MAX_WAITS {
            return Some(MayNot::TooMany);
        }
        stream.waiting += 1;
        self.blocked.waits += 1;
        blocking.waits = true;
        self.answer(asker, Answer::Waits, None);
        None
    }

    /// A worker of another node ends requests. Those that it does not find were answered.
    pub fn on_end_waits(&mut self, no: NodeNo, worker: u32, ends: EndWaits) {
        for end in ends.ends {
            let Some(how) = How::from_number(end.how) else {
                continue;
            };
            let place = (no, worker, end.number);
            match self.blocked.all.get_mut(&place) {
                Some(blocking) if blocking.waits => {
                    self.actions.push_back(Action::EndWait(blocking.conn, how));
                }
                Some(blocking) => blocking.ended = Some(how),
                None => self.drop_held(place),
            }
        }
    }

    /// A request that has not run because of a pause is not executed any more.
    fn drop_held(&mut self, (no, worker, number): (NodeNo, u32, u64)) {
        let is_it = |asker: &Asker| (asker.no, asker.worker, asker.number) == (no, worker, number);
        let place = self.held.iter().position(|(asker, _)| is_it(asker));
        if let Some((asker, _)) = place.and_then(|place| self.held.remove(place)) {
            self.answer(&asker, Answer::NotHere, None);
        }
    }

    /// A request is answered, or was not executed. Returns whether its place among the requests in
    /// flight is still taken.
    pub(super) fn on_over(&mut self, asker: &Asker) -> bool {
        let waited = self.is_current(asker) && self.blocked.remove(asker);
        if waited {
            let stream = self.stream(asker);
            stream.waiting = stream.waiting.saturating_sub(1);
        }
        !waited
    }
}
