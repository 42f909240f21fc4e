//! Requests of blocking commands at other nodes: which of them wait there, which nodes can run them,
//! and the ends that this node has to tell them.

use super::{Action, Asked, Forwarded, Forwarding, place, place_of};
use rufous_base::{ConnId, Now};
use rufous_kernel::Header;
use rufous_mapping::NodeNo;
use rufous_wire::Bytes;
use rufous_wire::message::{EndWait, EndWaits, How, MAX_REQUESTS};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a request of a blocking command adds to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// When its client gives up; `None`: never.
    pub deadline_us: Option<u64>,
    /// The bytes of the request that are the word with its timeout.
    pub timeout: Range<usize>,
}

/// How a wait at another node was ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The client is gone: nothing is executed for it any more.
    Gone,
    Ends(How),
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// The node and the number of each request that was forwarded: a connection has one at most.
    by_conn: BTreeMap<(u32, u32), (NodeNo, u64)>,
    /// Nodes that run blocking commands of other nodes.
    able: BTreeSet<NodeNo>,
    ends: BTreeMap<NodeNo, Vec<EndWait>>,
}

impl Waiters {
    /// A session with a node begins. `runs`: it runs blocking commands for other nodes.
    pub(super) fn on_session(&mut self, no: NodeNo, runs: bool) {
        if runs {
            self.able.insert(no);
        } else {
            self.able.remove(&no);
        }
    }

    pub(super) fn runs(&self, no: NodeNo) -> bool {
        self.able.contains(&no)
    }

    pub(super) fn on_pushed(&mut self, conn: ConnId, no: NodeNo, number: u64) {
        self.by_conn.insert(place_of(conn), (no, number));
    }

    /// The request is no longer at another node.
    pub(super) fn on_taken(&mut self, request: &Forwarded) {
        if request.patience.is_some() {
            self.by_conn.remove(&place_of(request.header.conn));
        }
    }

    pub(super) fn find(&self, conn: ConnId) -> Option<(NodeNo, u64)> {
        self.by_conn.get(&place_of(conn)).copied()
    }

    fn all(&self) -> impl Iterator<Item = (NodeNo, u64)> + '_ {
        self.by_conn.values().copied()
    }

    /// The node is told at the end of the turn, behind the requests of the turn.
    pub(super) fn end(&mut self, no: NodeNo, number: u64, how: How) {
        let how = how as u32;
        self.ends
            .entry(no)
            .or_default()
            .push(EndWait { number, how });
    }

    /// The session with a node has ended, and with it all waits there.
    pub(super) fn on_link_lost(&mut self, no: NodeNo) {
        self.ends.remove(&no);
    }

    /// The next message for a node.
    pub(super) fn message(&mut self, no: NodeNo) -> Option<EndWaits> {
        let mut ends = self.ends.remove(&no)?;
        if ends.len() > MAX_REQUESTS {
            let rest = ends.split_off(MAX_REQUESTS);
            self.ends.insert(no, rest);
        }
        Some(EndWaits { ends })
    }
}

/// Inputs that concern requests of blocking commands.
impl Forwarding {
    /// A session with a node begins: a route may have opened. `runs`: the node runs blocking
    /// commands of other nodes.
    pub fn on_session(&mut self, no: NodeNo, runs: bool) {
        self.waiters.on_session(no, runs);
        self.on_link_up();
    }

    /// The client of a connection is gone. A node where its request may wait is told, and serves it
    /// no more; a request that was to be sent again is dropped.
    pub fn on_gone(&mut self, conn: ConnId) {
        if let Some((no, number)) = self.waiters.find(conn) {
            self.end_at(no, number, Over::Gone);
            return;
        }
        let is_its = |request: &Forwarded| {
            request.patience.is_some() && place_of(request.header.conn) == place_of(conn)
        };
        self.waiting
            .retain(|_, waiting| !is_its(&waiting.asked.request));
        self.returned.retain(|request| !is_its(request));
    }

    /// A request that was to run here waits for data here: its attempts were not in vain.
    pub fn on_waits_here(&mut self, header: &Header) {
        self.tried.remove(&place(header));
    }

    /// Ends the wait of a blocked client, as [`How`] says; its reply follows. False if its request
    /// does not wait at another node, nor to be sent there.
    pub fn on_end(&mut self, now: Now, conn: ConnId, how: How) -> bool {
        if let Some((no, number)) = self.waiters.find(conn) {
            return self.waits_at(no, number) && self.end_at(no, number, Over::Ends(how));
        }
        let mut all = self.waiting.iter();
        let found = all.find(|(_, waiting)| {
            let request = &waiting.asked.request;
            request.patience.is_some() && place_of(request.header.conn) == place_of(conn)
        });
        let Some(mut waiting) = found
            .map(|(order, _)| *order)
            .and_then(|order| self.waiting.remove(&order))
        else {
            return false;
        };
        waiting.asked.over = Some(Over::Ends(how));
        if self.goes_on(now, &mut waiting.asked) {
            self.waiting.insert(waiting.asked.order, waiting);
        }
        true
    }

    /// The node stops soon: ends all waits at other nodes.
    pub fn on_stops_soon(&mut self) {
        let all: Vec<_> = self.waiters.all().collect();
        for (no, number) in all {
            if self.waits_at(no, number) {
                self.end_at(no, number, Over::Ends(How::Stops));
            }
        }
    }
}

/// Outputs that concern them.
impl Forwarding {
    /// Whether a node runs blocking commands of other nodes.
    pub fn may_wait_at(&self, no: NodeNo) -> bool {
        self.waiters.runs(no)
    }

    /// The number of requests that wait at other nodes until a deadline.
    pub fn in_time(&self) -> usize {
        let has_deadline = |asked: &&Asked| {
            let patience = asked.request.patience.as_ref();
            asked.waits && patience.is_some_and(|patience| patience.deadline_us.is_some())
        };
        let all = self.nodes.values().flat_map(|toward| toward.all());
        all.filter(has_deadline).count()
    }
}

impl Forwarding {
    fn waits_at(&self, no: NodeNo, number: u64) -> bool {
        let asked = self.nodes.get(&no).and_then(|toward| toward.find(number));
        asked.is_some_and(|asked| asked.waits)
    }

    /// Tells a node that a request ends, unless it was told that before.
    fn end_at(&mut self, no: NodeNo, number: u64, over: Over) -> bool {
        let Some(asked) = self
            .nodes
            .get_mut(&no)
            .and_then(|toward| toward.get(number))
        else {
            return false;
        };
        let is_new = asked.over.is_none();
        if is_new || over == Over::Gone {
            asked.over = Some(over);
        }
        if is_new {
            let how = match over {
                Over::Gone => How::TimedOut,
                Over::Ends(how) => how,
            };
            self.waiters.end(no, number, how);
        }
        is_new
    }

    /// A node has reported that a request waits there. False if it cannot.
    pub(super) fn on_waits_there(&mut self, no: NodeNo, number: u64) -> bool {
        let asked = self
            .nodes
            .get_mut(&no)
            .and_then(|toward| toward.on_waits(number));
        let Some(asked) = asked else {
            return false;
        };
        // Its attempts were not in vain.
        (asked.tries, asked.until_us) = (0, 0);
        if asked.over.is_none() {
            let header = asked.request.header;
            self.act(Action::Waits(header));
        }
        true
    }

    /// A request is not at another node any more, and was not executed. Whether it is still to be
    /// executed: otherwise it is answered, or its client is gone.
    pub(super) fn goes_on(&mut self, now: Now, asked: &mut Asked) -> bool {
        match asked.over.take() {
            None => true,
            Some(Over::Gone) => false,
            Some(Over::Ends(how)) => {
                if let Some(why) = error_of(how) {
                    self.fail(asked, why.into());
                    return false;
                }
                if let Some(patience) = &mut asked.request.patience {
                    // The next node has the reply.
                    patience.deadline_us = Some(now.mono_us);
                }
                true
            }
        }
    }
}

impl Forwarded {
    /// It is sent again, or runs here: it waits for the rest of its time. A timeout of 0 would be
    /// none, so that it waits for a millisecond where its time is over.
    pub(super) fn shorten(&mut self, now: Now) {
        let Some(Patience {
            deadline_us: Some(deadline_us),
            timeout,
        }) = &mut self.patience
        else {
            return;
        };
        let rest_ms = deadline_us
            .saturating_sub(now.mono_us)
            .div_ceil(1000)
            .max(1);
        let seconds = format!("{}.{:03}", rest_ms / 1000, rest_ms % 1000);
        let word = format!("${}\r\n{seconds}\r\n", seconds.len());
        let (before, behind) = (&self.words[..timeout.start], &self.words[timeout.end..]);
        let words: Bytes = [before, word.as_bytes(), behind].concat().into();
        *timeout = timeout.start..timeout.start + word.len();
        self.words = words;
    }
}

/// The error of a wait that ends in this way, if it is one.
pub fn error_of(how: How) -> Option<&'static str> {
    match how {
        How::TimedOut => None,
        How::Unblocked => Some("UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        How::Stops => Some("UNBLOCKED the node is shutting down"),
    }
}
