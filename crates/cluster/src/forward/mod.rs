//! Requests for other nodes: the sending side, as a machine of one worker.
//!
//! A request for keys of another node is forwarded to it in one hop, in one message with the others
//! of the same turn. A request that the other node did not execute, and a read whose session ended
//! before the reply, waits for a mapping, a session or some milliseconds, and is sent again, until
//! that has taken too long. Its keys may move to this node meanwhile; then it runs here, and comes
//! back ([`Forwarding::on_returned`]) if they move away again before it does.
//!
//! The embedder calls a handler for each event and then carries out all [`Action`]s, in order.
//!
//! Invariants:
//! 1. Each request has a number that is never reused, not even after the session, so that no reply
//!    is taken for another's.
//! 2. A write is sent a second time only if the other node has replied that it did not execute it.
//! 3. Requests of one connection reach their keys in the order of arrival: one that is to be sent
//!    again holds up those behind it.
//! 4. The requests and bytes in flight to one node are bounded. Requests that wait for data there
//!    do not count: each client has one at most.
//! 5. A request does not wait for a node that has left the chains of its keys for more than 2 s.
//! 6. A request whose client is gone is not sent again, and a node where it may wait is told.

mod asked;
mod left;
#[cfg(test)]
mod tests;
mod toward;
mod waits;

use asked::{APART, Asked, MOVING, OLDER, Place, STOPPING, place, place_of};
pub use asked::{Forwarded, Goal};
use waits::{Over, Waiters};
pub use waits::{Patience, error_of};

use crate::figures::ForwardFigures;
use crate::way::{CROSSNODE, Routing, Way};
use rufous_base::limits::{FORWARD_PATIENCE_US, FORWARD_PAUSE_US, FORWARD_TRIES};
use rufous_base::{ConnId, Now, Output};
use rufous_kernel::Header;
use rufous_mapping::NodeNo;
use rufous_wire::Bytes;
use rufous_wire::message::{EndWaits, Replies, Requests};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use toward::Toward;

/// Limit on the requests of one worker in flight to one node.
pub const MAX_UNDER_WAY: usize = 4096;

/// Limit on their bytes. The last request may exceed it.
const MAX_BYTES: usize = 8 << 20;

/// What the embedder has to do.
#[derive(Debug)]
pub enum Action {
    /// Send a message on the session with the node.
    Send(NodeNo, Requests),
    /// The same, behind requests of the turn.
    EndWaits(NodeNo, EndWaits),
    /// A request waits for data at another node. If its client is gone by now, call
    /// [`Forwarding::on_gone`].
    Waits(Header),
    /// The reply to a request has arrived.
    Reply(Header, Output),
    /// Reply that a request failed.
    Fail(Header, String),
    /// Run a request: its keys are at this node by now.
    Run(Header, Bytes),
    /// Run no new request of a connection until all pending ones are answered: these could be
    /// overtaken.
    HoldUp(ConnId),
    /// End the session with a node: nothing from it can be trusted.
    Refuse(NodeNo, &'static str),
}

/// A request to be sent again.
#[derive(Debug)]
struct Waiting {
    asked: Asked,
    /// With earlier mappings it would go to the node that did not execute it.
    since_epoch: u64,
    due_us: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Forwarding {
    nodes: BTreeMap<NodeNo, Toward>,
    /// Requests to be sent again, by their order.
    waiting: BTreeMap<u64, Waiting>,
    /// Some of these may be sent.
    look: bool,
    /// Requests that did not run here, as their keys have moved to another node.
    returned: Vec<Forwarded>,
    waiters: Waiters,
    /// For requests that run here after their keys were at another node: the number of attempts,
    /// and when they are given up.
    tried: BTreeMap<Place, (u32, u64)>,
    news: u64,
    ordered: u64,
    wake_us: u64,
    /// When requests at nodes that have left are looked at, if there are any.
    left_due_us: Option<u64>,
    stops: bool,
    actions: VecDeque<Action>,
    figures: ForwardFigures,
}

/// Inputs.
impl Forwarding {
    /// Forwards a request to a node: it is sent at the end of the turn.
    pub fn on_request(&mut self, no: NodeNo, request: Forwarded) {
        let asked = self.asked(request);
        self.push(no, asked);
    }

    /// A request that was to run at this node did not, as its keys have moved to another one. It is
    /// forwarded by the next [`Self::on_step`].
    pub fn on_returned(&mut self, request: Forwarded) {
        self.returned.push(request);
    }

    /// A request was refused before it was forwarded.
    pub fn on_refused(&mut self) {
        self.figures.refused += 1;
    }

    /// A node has replied to requests, by the mapping of this epoch.
    pub fn on_replies<R: Fn(NodeNo) -> bool>(
        &mut self,
        now: Now,
        no: NodeNo,
        (epoch, replies): (u64, Replies),
        routing: &Routing<'_, R>,
    ) {
        for reply in replies.replies {
            let of_none = "a reply to what was not asked";
            let Some(toward) = self.nodes.get_mut(&no) else {
                return self.act(Action::Refuse(no, of_none));
            };
            if toward.was_given_up(&reply) {
                continue;
            }
            if reply.waits {
                if !self.on_waits_there(no, reply.number) {
                    return self.act(Action::Refuse(no, of_none));
                }
                continue;
            }
            if reply.more {
                if !toward.get(reply.number).is_some_and(|a| a.grow(&reply)) {
                    return self.act(Action::Refuse(no, of_none));
                }
                continue;
            }
            let Some(asked) = toward.take(&reply) else {
                return self.act(Action::Refuse(no, of_none));
            };
            self.waiters.on_taken(&asked.request);
            if reply.not_here {
                self.on_not_here(now, no, epoch, asked, routing);
            } else {
                let header = asked.request.header;
                self.act(Action::Reply(header, asked.whole(&reply)));
            }
        }
    }

    /// A session has begun: a route may have opened.
    pub fn on_link_up(&mut self) {
        self.news += 1;
        self.look = true;
    }

    /// A mapping takes effect: slots may have moved to other nodes. A connection with a pending
    /// request at a node that no longer has its key runs no new request until the reply: later
    /// requests would go to the new node, and could be executed first.
    pub fn on_mapping<R: Fn(NodeNo) -> bool>(&mut self, routing: &Routing<'_, R>) {
        self.on_link_up();
        self.look_for_left();
        let mut wrong = BTreeSet::new();
        for (no, toward) in &self.nodes {
            let all = toward.all().map(|asked| &asked.request);
            let lost = all.filter(|request| request.goal.way(routing) != Way::There(*no));
            wrong.extend(lost.map(|request| place_of(request.header.conn)));
        }
        let held_up = wrong
            .into_iter()
            .map(|(slot, generation)| ConnId { slot, generation });
        self.actions.extend(held_up.map(Action::HoldUp));
    }

    /// A step ends: forwards requests that came back, and sends others again if there is a reason
    /// to.
    #[inline]
    pub fn on_step<R: Fn(NodeNo) -> bool>(&mut self, now: Now, routing: &Routing<'_, R>) {
        if !self.returned.is_empty() {
            self.take_back(now, routing);
        }
        self.look_at_left(now, routing);
        if std::mem::take(&mut self.look) {
            self.send_again(now, routing);
        }
    }

    /// The time of [`Self::wake_us`] may have come.
    #[inline]
    pub fn on_time(&mut self, now: Now) {
        if self.wake_us != 0 && now.mono_us >= self.wake_us {
            self.wake_us = 0;
            // Waiting requests set their time again.
            self.on_link_up();
        }
    }

    /// A turn ends: sends the requests that it has collected.
    pub fn on_turn_end(&mut self) {
        let nodes: Vec<NodeNo> = self.nodes.keys().copied().collect();
        for no in nodes {
            self.send(no);
            while let Some(ends) = self.waiters.message(no) {
                self.act(Action::EndWaits(no, ends));
            }
        }
    }

    /// The node stops: what has not been sent is given up, and nothing is sent again. Replies to the
    /// rest are on their way.
    pub fn on_stop(&mut self) {
        self.stops = true;
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            self.fail(&waiting.asked, STOPPING.into());
        }
    }

    /// The node stops and has waited long enough: everything in flight is given up. Returns the number
    /// of requests. Replies that arrive later are dropped: a session that ended with
    /// them would end requests of the other node, too.
    pub fn on_given_up<R: Fn(NodeNo) -> bool>(&mut self, routing: &Routing<'_, R>) -> usize {
        let mut given_up = 0;
        for no in self.nodes.keys().copied().collect::<Vec<_>>() {
            let all = self.nodes.get_mut(&no).map(Toward::give_up);
            for (asked, was_sent) in all.into_iter().flatten() {
                given_up += 1;
                self.waiters.on_taken(&asked.request);
                if was_sent && asked.request.writes {
                    self.fail_in_doubt(no, &asked, (left::ENDED, routing));
                } else {
                    self.fail(&asked, STOPPING.into());
                }
            }
        }
        given_up
    }

    /// All sessions end: no request is sent again.
    pub fn on_links_stopped(&mut self) {
        self.stops = true;
    }
}

/// Outputs.
impl Forwarding {
    /// What has to be done next. Empty it after each call of a handler.
    #[inline]
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Rises when a route may have opened: a new mapping or session.
    pub fn news(&self) -> u64 {
        self.news
    }

    /// Whether so much is in flight to a node that further requests have to wait.
    pub fn is_crowded(&self, no: NodeNo) -> bool {
        self.nodes.get(&no).is_some_and(Toward::is_crowded)
    }

    /// Whether there is room again, for more than one request.
    pub fn has_room(&self, no: NodeNo) -> bool {
        self.nodes.get(&no).is_none_or(Toward::has_room)
    }

    /// A step is needed at that time.
    pub fn wake_by(&mut self, at_us: u64) {
        self.wake_us = match self.wake_us {
            0 => at_us,
            wake => wake.min(at_us),
        };
    }

    pub fn wake_us(&self) -> Option<u64> {
        (self.wake_us != 0).then_some(self.wake_us)
    }

    pub fn figures(&self) -> ForwardFigures {
        ForwardFigures {
            under_way: self.nodes.values().map(|toward| toward.len() as u64).sum(),
            blocked: self.nodes.values().map(|t| t.blocked() as u64).sum(),
            waiting: self.waiting.len() as u64,
            ..self.figures
        }
    }
}

impl Forwarding {
    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    fn fail(&mut self, asked: &Asked, why: String) {
        self.act(Action::Fail(asked.request.header, why));
    }

    fn asked(&mut self, request: Forwarded) -> Asked {
        self.ordered += 1;
        Asked {
            request,
            order: self.ordered,
            round: 0,
            tries: 0,
            until_us: 0,
            left_us: 0,
            part: Vec::new(),
            waits: false,
            over: None,
        }
    }

    fn push(&mut self, no: NodeNo, asked: Asked) {
        self.figures.forwarded += 1;
        let conn = asked.request.header.conn;
        let blocks = asked.request.patience.is_some();
        let number = self.nodes.entry(no).or_default().push(asked);
        if blocks {
            self.waiters.on_pushed(conn, no, number);
        }
    }

    fn send(&mut self, no: NodeNo) {
        if let Some(toward) = self.nodes.get_mut(&no) {
            while let Some(requests) = toward.message() {
                self.actions.push_back(Action::Send(no, requests));
            }
        }
    }

    /// A request was not executed. None sent after it will be, either, until the node sees a later
    /// round.
    fn on_not_here<R: Fn(NodeNo) -> bool>(
        &mut self,
        now: Now,
        no: NodeNo,
        epoch: u64,
        mut asked: Asked,
        routing: &Routing<'_, R>,
    ) {
        let toward = self.nodes.get(&no);
        if toward.is_some_and(|toward| toward.is_first_refusal(asked.round)) {
            self.send(no);
            self.nodes.entry(no).or_default().begin_round();
        }
        asked.tries += 1;
        if self.goes_on(now, &mut asked) {
            self.send_later(now, asked, epoch, routing);
        }
    }

    /// Sends a request again when there is a reason to. `epoch`: that of the mapping by which it
    /// was not executed.
    fn send_later<R>(&mut self, now: Now, mut asked: Asked, epoch: u64, routing: &Routing<'_, R>) {
        if self.stops {
            return self.fail(&asked, STOPPING.into());
        }
        if asked.until_us == 0 {
            asked.until_us = now.mono_us + FORWARD_PATIENCE_US;
        }
        // The next reply is a whole one, and may be another.
        asked.part = Vec::new();
        self.act(Action::HoldUp(asked.request.header.conn));
        let pause = match asked.tries {
            0 => 0,
            // The other node has not received the mapping yet.
            tries if epoch <= routing.epoch() => FORWARD_PAUSE_US << tries.min(10),
            _ => 0,
        };
        let due_us = now.mono_us + pause;
        self.wake_by(due_us.min(asked.until_us).max(now.mono_us + 1));
        self.look |= pause == 0;
        let waiting = Waiting {
            since_epoch: epoch,
            due_us,
            asked,
        };
        self.waiting.insert(waiting.asked.order, waiting);
    }

    #[cold]
    fn take_back<R>(&mut self, now: Now, routing: &Routing<'_, R>) {
        for request in std::mem::take(&mut self.returned) {
            let tried = self.tried.remove(&place(&request.header));
            let mut asked = self.asked(request);
            (asked.tries, asked.until_us) = tried.unwrap_or_default();
            self.send_later(now, asked, 0, routing);
        }
    }

    /// Sends requests again, in order: those behind one that has to wait also wait.
    #[cold]
    fn send_again<R: Fn(NodeNo) -> bool>(&mut self, now: Now, routing: &Routing<'_, R>) {
        // Answered ones are not recognised, so they stay until their time is over.
        self.tried
            .retain(|_, (_, until_us)| now.mono_us < *until_us);
        let mut stuck = BTreeSet::new();
        for (order, waiting) in std::mem::take(&mut self.waiting) {
            let asked = &waiting.asked;
            let conn = place_of(asked.request.header.conn);
            let way = asked.request.goal.way(routing);
            let is_late = now.mono_us >= asked.until_us || asked.tries > FORWARD_TRIES;
            let is_ready = routing.epoch() >= waiting.since_epoch && now.mono_us >= waiting.due_us;
            if !stuck.contains(&conn) {
                if is_late {
                    self.give_up(asked, &way, routing);
                    continue;
                }
                if is_ready && !matches!(way, Way::None(_)) {
                    self.go_again(now, way, waiting.asked);
                    continue;
                }
            }
            stuck.insert(conn);
            let due = match waiting.due_us > now.mono_us {
                true => waiting.due_us.min(asked.until_us),
                false => asked.until_us,
            };
            self.wake_by(due.max(now.mono_us + 1000));
            self.waiting.insert(order, waiting);
        }
    }

    fn give_up<R>(&mut self, asked: &Asked, way: &Way, routing: &Routing<'_, R>) {
        self.figures.refused += 1;
        let why = match way {
            Way::None(why) => why.text(routing.mapping),
            _ => MOVING.into(),
        };
        self.fail(asked, why);
    }

    fn go_again(&mut self, now: Now, way: Way, mut asked: Asked) {
        self.figures.retried += 1;
        asked.request.shorten(now);
        match way {
            Way::There(no) if asked.request.patience.is_some() && !self.waiters.runs(no) => {
                self.fail(&asked, OLDER.into());
            }
            Way::There(no) => self.push(no, asked),
            Way::Here => {
                let Forwarded { header, words, .. } = asked.request;
                let tries = (asked.tries + 1, asked.until_us);
                self.tried.insert(place(&header), tries);
                self.act(Action::Run(header, words));
            }
            Way::Apart(_) => self.fail(&asked, APART.into()),
            Way::All(_) | Way::None(_) => self.fail(&asked, CROSSNODE.into()),
        }
    }
}
