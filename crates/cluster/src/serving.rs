//! Requests of other nodes: the receiving side, as a machine of one worker.
//!
//! The worker that has the session takes them in their order. For each the embedder gets an
//! [`Action::Take`]: it reads the request and calls one of [`Serving::on_malformed`],
//! [`Serving::on_paused`] and [`Serving::on_routed`], then runs it if it may run. Replies wait for
//! the log, as those to clients do, and are sent on the session, in parts if they are long, and no
//! faster than the session takes them.
//!
//! Invariants:
//! 1. A request runs only if this node serves all of its keys, by its own mapping. It is never
//!    forwarded a second time.
//! 2. After a request was refused, later ones of the same worker are refused too, until that worker
//!    has seen the refusal: it sends them again in their order.
//! 3. Nothing of an earlier session is answered on a later one.
//! 4. The pending requests of one worker of another node are bounded; an end of the session drops
//!    them. Those that wait for data have a limit of their own, and take no room from others.
//! 5. A request waits for data only while its session lasts and its node has not ended it.

mod lines;
#[cfg(test)]
mod tests;
mod waits;

pub use waits::MayNot;

use crate::forward::MAX_UNDER_WAY;
use lines::{Answer, Lines, Ready};
use rufous_base::{ConnId, Output, Until};
use rufous_mapping::NodeNo;
use rufous_wire::message::{How, Replies, Request, Requests};
use rufous_wire::planted::{self, Planted};
use std::collections::{BTreeMap, VecDeque};
use waits::Blocked;

/// Limit on the pending requests of one worker of another node. A correct sender stays below it.
const MAX_OF_WORKER: usize = 4 * MAX_UNDER_WAY;

const TOO_MANY: &str = "more requests than may be under way";
const MALFORMED: &str = "a request that is none";

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    no: NodeNo,
    /// See [`Serving::sessions`].
    session: u64,
    worker: u32,
    number: u64,
    /// See [`Requests::round`].
    round: u64,
}

impl Asker {
    pub fn node(&self) -> NodeNo {
        self.no
    }
}

/// What the embedder has to do.
#[derive(Debug)]
pub enum Action {
    /// Read a request, and run it if it may run.
    Take(Asker, Request),
    /// End the wait of the request with this connection id.
    EndWait(ConnId, How),
    /// End the session with a node: nothing from it can be trusted.
    Refuse(NodeNo, &'static str),
}

/// The pending requests of one worker of another node.
#[derive(Debug, Default)]
struct Stream {
    under_way: usize,
    /// Requests that wait for data.
    waiting: usize,
    /// The round in which a request was refused.
    turned_away: Option<u64>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Serving {
    /// Counts the sessions with each node, as this worker is notified of them.
    sessions: BTreeMap<NodeNo, u64>,
    streams: BTreeMap<(NodeNo, u32), Stream>,
    ready: BTreeMap<NodeNo, Lines>,
    /// Requests that came during `CLIENT PAUSE`, or behind such.
    held: VecDeque<(Asker, Request)>,
    blocked: Blocked,
    actions: VecDeque<Action>,
    /// Parts of replies were made in this turn.
    has_made: bool,
    /// Requests that ran here, and those that were refused because their keys are not here.
    served: u64,
    not_here: u64,
}

/// Inputs.
impl Serving {
    /// A session begins or ends: requests of an earlier one are dropped, and none of them waits any
    /// more.
    pub fn on_session(&mut self, no: NodeNo) {
        *self.sessions.entry(no).or_default() += 1;
        self.streams.retain(|(of, _), _| *of != no);
        self.ready.remove(&no);
        self.held.retain(|(asker, _)| asker.no != no);
        self.drop_taken(no);
        for conn in self.blocked.take_of(no) {
            self.actions.push_back(Action::EndWait(conn, How::TimedOut));
        }
    }

    /// Requests of a worker of another node.
    pub fn on_requests(&mut self, no: NodeNo, worker: u32, requests: Requests) {
        let Some(session) = self.sessions.get(&no).copied() else {
            return;
        };
        // In this order: the last number may be the largest possible.
        for (request, number) in requests.requests.into_iter().zip(requests.first..) {
            let asker = Asker {
                no,
                session,
                worker,
                number,
                round: requests.round,
            };
            let stream = self.stream(&asker);
            stream.under_way += 1;
            if stream.under_way > MAX_OF_WORKER {
                return self.actions.push_back(Action::Refuse(no, TOO_MANY));
            }
            self.actions.push_back(Action::Take(asker, request));
        }
    }

    /// The words of a request cannot be read.
    pub fn on_malformed(&mut self, asker: &Asker) {
        self.drop_taken(asker.no);
        self.actions.push_back(Action::Refuse(asker.no, MALFORMED));
    }

    /// A request waits for the end of a pause, and so do those that come after it.
    pub fn on_paused(&mut self, asker: Asker, request: Request) {
        self.held.push_back((asker, request));
    }

    /// No pause is in progress.
    #[inline]
    pub fn on_unpaused(&mut self) {
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held).into_iter();
            let taken = held.map(|(asker, request)| Action::Take(asker, request));
            self.actions.extend(taken);
        }
    }

    /// The keys of a request were looked up: at this node, or at another. True if it runs now;
    /// otherwise it was refused.
    pub fn on_routed(&mut self, asker: &Asker, is_here: bool) -> bool {
        let turned_away = self.stream(asker).turned_away;
        let runs = is_here && turned_away.is_none_or(|refused| refused < asker.round);
        if runs {
            self.served += 1;
        } else {
            self.turn_away(asker);
        }
        runs
    }

    /// A request was executed, or failed. `until`: what its reply waits for.
    pub fn on_reply(&mut self, asker: &Asker, reply: Output, until: Until) {
        if planted::is(Planted::ServedAsMoved) && self.blocked.is_waiting(asker) {
            return self.on_moved(asker);
        }
        self.answer(asker, Answer::of(reply), Some(until));
    }

    /// The outcome of a request is not known, which is all that the reply tells.
    pub fn on_lost(&mut self, asker: &Asker, reply: Output) {
        self.answer(asker, Answer::of(reply), None);
    }

    /// The slot of a request moved after it was routed: it was not executed.
    pub fn on_moved(&mut self, asker: &Asker) {
        if self.is_current(asker) {
            self.turn_away(asker);
        }
    }

    /// A turn ends: its replies wait for this gate.
    pub fn on_turn_end(&mut self, gate: u64) {
        self.has_made = false;
        let ready = self.ready.values_mut();
        ready.for_each(|lines| lines.on_turn_end(gate));
    }

    /// Replies that wait may not be in the log, and their turn is over: their senders take these
    /// requests to be in doubt.
    pub fn on_replies_lost(&mut self) {
        let lost = self.ready.iter().filter(|(_, lines)| lines.wait());
        let refused = lost.map(|(no, _)| Action::Refuse(*no, "replies that were lost here"));
        self.actions.extend(refused);
    }
}

/// Outputs.
impl Serving {
    /// What has to be done next. Empty it after each call of a handler.
    #[inline]
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether a request that is taken now waits behind others.
    pub fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Requests that wait for data.
    pub fn waits(&self) -> usize {
        self.blocked.waits()
    }

    /// Requests that ran here, and those that were refused.
    pub fn counts(&self) -> (u64, u64) {
        (self.served, self.not_here)
    }

    /// Whether the next part of a reply to a node is made in the next turn.
    pub fn goes_on(&self, no: NodeNo) -> bool {
        self.has_made && self.ready.get(&no).is_some_and(Lines::makes)
    }

    /// Nodes that replies wait for.
    pub fn nodes(&self) -> Vec<NodeNo> {
        self.ready.keys().copied().collect()
    }

    /// The next message for a node: the worker there, and replies to it. `at`: the last frame that is
    /// committed, and the last that is in the log.
    pub fn next_replies(&mut self, no: NodeNo, at: (u64, u64)) -> Option<(u32, Replies)> {
        let lines = self.ready.get_mut(&no)?;
        let message = lines.next(at, &mut self.has_made)?;
        if lines.is_empty() {
            self.ready.remove(&no);
        }
        let to = message.to;
        if let Some(stream) = self.streams.get_mut(&(no, to)) {
            stream.under_way = stream.under_way.saturating_sub(message.frees);
        }
        let replies = message.replies;
        Some((to, Replies { replies }))
    }
}

impl Serving {
    fn is_current(&self, asker: &Asker) -> bool {
        self.sessions.get(&asker.no) == Some(&asker.session)
    }

    fn stream(&mut self, asker: &Asker) -> &mut Stream {
        self.streams.entry((asker.no, asker.worker)).or_default()
    }

    fn drop_taken(&mut self, no: NodeNo) {
        self.actions
            .retain(|action| !matches!(action, Action::Take(asker, _) if asker.no == no));
    }

    /// Refuses a request, and so those of its round and earlier ones that are still to come.
    fn turn_away(&mut self, asker: &Asker) {
        let stream = self.stream(asker);
        stream.turned_away = stream.turned_away.max(Some(asker.round));
        self.not_here += 1;
        self.answer(asker, Answer::NotHere, None);
    }

    /// `until`: what it waits for. `None`: it tells nothing of data.
    fn answer(&mut self, asker: &Asker, answer: Answer, until: Option<Until>) {
        if self.is_current(asker) {
            let has_place = match answer {
                Answer::Waits => true,
                _ => self.on_over(asker),
            };
            let ready = Ready::new((asker.worker, asker.number), answer, has_place);
            self.ready.entry(asker.no).or_default().push(until, ready);
        }
    }
}
