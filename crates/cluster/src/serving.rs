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

#[cfg(test)]
mod tests;
mod waits;

pub use waits::MayNot;

use crate::forward::MAX_UNDER_WAY;
use rufous_base::limits::MADE_AT_ONCE;
use rufous_base::{ConnId, Output, Pieces, Until};
use rufous_mapping::NodeNo;
use rufous_wire::Bytes;
use rufous_wire::message::{How, MAX_CHUNK, MAX_REQUESTS, Replies, Reply, Request, Requests};
use rufous_wire::planted::{self, Planted};
use std::collections::{BTreeMap, VecDeque};
use waits::Blocked;

/// Limit on the pending requests of one worker of another node. A correct sender stays below it.
const MAX_OF_WORKER: usize = 4 * MAX_UNDER_WAY;

/// Bytes of replies in one message, about.
const FULL: usize = 256 << 10;

/// Bytes that are made of one reply in a turn: making them takes time from the node's clients.
const MADE_IN_TURN: usize = 2 * MADE_AT_ONCE;

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

/// A reply that waits for the session.
#[derive(Debug)]
struct Ready {
    worker: u32,
    number: u64,
    /// The frame that has to be committed before it may be sent; not known before the end of its
    /// turn.
    gate: Option<u64>,
    until: Until,
    answer: Answer,
    /// See [`Stream::under_way`].
    has_place: bool,
}

#[derive(Debug)]
enum Answer {
    NotHere,
    /// It waits for data: another answer follows.
    Waits,
    Whole(Output),
    /// The rest of a long one.
    Rest(Bytes),
    /// The rest of one that is made while it is sent.
    Made(Box<Making>),
}

/// See [`Answer::Made`].
#[derive(Debug)]
struct Making {
    pieces: Pieces,
    /// Made and not sent: one element may be long.
    over: Bytes,
    is_all: bool,
}

impl Making {
    fn of(reply: Output) -> Box<Self> {
        Box::new(Self {
            pieces: Pieces::new(reply),
            over: Bytes::new(),
            is_all: false,
        })
    }

    /// The next part, and whether it is the last.
    fn next(&mut self) -> (Bytes, bool) {
        if self.over.is_empty() && !self.is_all {
            let mut bytes = Vec::with_capacity(MADE_IN_TURN);
            self.is_all = !self.pieces.write(MADE_IN_TURN, &mut bytes);
            self.over = bytes.into();
        }
        let part = self.over.split_to(self.over.len().min(MAX_CHUNK));
        (part, self.over.is_empty() && self.is_all)
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Serving {
    /// Counts the sessions with each node, as this worker is notified of them.
    sessions: BTreeMap<NodeNo, u64>,
    streams: BTreeMap<(NodeNo, u32), Stream>,
    ready: BTreeMap<NodeNo, VecDeque<Ready>>,
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
        let answer = if reply.is_made() {
            Answer::Made(Making::of(reply))
        } else {
            Answer::Whole(reply)
        };
        self.answer(asker, answer, until);
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
        for ready in self.ready.values_mut() {
            let new = ready.iter_mut().rev().take_while(|r| r.gate.is_none());
            new.for_each(|ready| ready.gate = Some(gate));
        }
    }

    /// Replies that wait may not be in the log, and their turn is over: their senders take these
    /// requests to be in doubt.
    pub fn on_replies_lost(&mut self) {
        let nodes = self.ready.keys();
        let refused = nodes.map(|no| Action::Refuse(*no, "replies that were lost here"));
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
        let first = self.ready.get(&no).and_then(VecDeque::front);
        self.has_made && first.is_some_and(Ready::is_made)
    }

    /// Nodes that replies wait for.
    pub fn nodes(&self) -> Vec<NodeNo> {
        self.ready.keys().copied().collect()
    }

    /// The next message for a node: the worker there, and replies to it. `passed` and `logged`: the
    /// last frame that is committed, and the last that is in the log.
    pub fn next_replies(
        &mut self,
        no: NodeNo,
        (passed, logged): (u64, u64),
    ) -> Option<(u32, Replies)> {
        let may_go = |ready: &Ready| {
            let upto = match ready.until {
                Until::Passed => passed,
                Until::Logged => logged,
            };
            ready.gate.is_some_and(|gate| gate <= upto)
        };
        let ready = self.ready.get_mut(&no)?;
        let has_made = self.has_made;
        let may_be_made = |first: &&Ready| !(has_made && first.is_made());
        let first = ready.front().filter(|first| may_go(first));
        let to = first.filter(may_be_made)?.worker;
        let (mut replies, mut bytes, mut freed) = (Vec::new(), 0, 0);
        while let Some(first) = ready.front_mut()
            && first.worker == to
            && may_go(first)
            && bytes < FULL
            && replies.len() < MAX_REQUESTS
            && !(self.has_made && first.is_made())
        {
            self.has_made |= first.is_made();
            let (reply, rest) = first.take();
            bytes += reply.bytes.len();
            replies.push(reply);
            if let Some(rest) = rest {
                // It is long enough for a message of its own.
                first.answer = rest;
                break;
            }
            freed += first.frees();
            ready.pop_front();
        }
        if ready.is_empty() {
            self.ready.remove(&no);
        }
        if let Some(stream) = self.streams.get_mut(&(no, to)) {
            stream.under_way = stream.under_way.saturating_sub(freed);
        }
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
        self.answer(asker, Answer::NotHere, Until::Logged);
    }

    fn answer(&mut self, asker: &Asker, answer: Answer, until: Until) {
        if self.is_current(asker) {
            let has_place = match answer {
                Answer::Waits => true,
                _ => self.on_over(asker),
            };
            let ready = Ready {
                worker: asker.worker,
                number: asker.number,
                gate: None,
                until,
                answer,
                has_place,
            };
            self.ready.entry(asker.no).or_default().push_back(ready);
        }
    }
}

impl Ready {
    fn is_made(&self) -> bool {
        matches!(self.answer, Answer::Made(_))
    }

    /// The next part of the reply, and the rest.
    fn take(&mut self) -> (Reply, Option<Answer>) {
        let answer = std::mem::replace(&mut self.answer, Answer::NotHere);
        let mut bytes: Bytes = match answer {
            Answer::NotHere => return (self.bare(true), None),
            Answer::Waits => return (self.bare(false), None),
            Answer::Whole(output) if output.shared.is_empty() => output.bytes.into(),
            Answer::Whole(output) => output.to_vec().into(),
            Answer::Rest(bytes) => bytes,
            Answer::Made(mut making) => {
                let (part, is_last) = making.next();
                return self.part(part, (!is_last).then_some(Answer::Made(making)));
            }
        };
        let rest = (bytes.len() > MAX_CHUNK).then(|| Answer::Rest(bytes.split_off(MAX_CHUNK)));
        self.part(bytes, rest)
    }

    fn part(&self, bytes: Bytes, rest: Option<Answer>) -> (Reply, Option<Answer>) {
        let reply = Reply {
            number: self.number,
            more: rest.is_some(),
            bytes,
            ..Reply::default()
        };
        (reply, rest)
    }

    /// A report without a reply: the request was not executed, or waits for data.
    fn bare(&self, not_here: bool) -> Reply {
        Reply {
            number: self.number,
            not_here,
            waits: !not_here,
            ..Reply::default()
        }
    }
}
