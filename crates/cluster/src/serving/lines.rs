//! Replies to one node that wait: for what they tell to be committed, and for room on the session.
//!
//! Those that wait for the same keep their order, and others pass them: a reply that tells nothing of data is not kept by a
//! log that hangs, nor one that needs the log alone by copies that do not answer. The other node knows each by
//! its number.

use rufous_base::limits::MADE_AT_ONCE;
use rufous_base::{Output, Pieces, Until};
use rufous_wire::Bytes;
use rufous_wire::message::{MAX_CHUNK, MAX_REQUESTS, Reply};
use std::collections::VecDeque;

/// Bytes of replies in one message, about.
const FULL: usize = 256 << 10;

/// Bytes that are made of one reply in a turn: making them takes time from the node's clients.
pub(super) const MADE_IN_TURN: usize = 2 * MADE_AT_ONCE;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// They tell nothing of data.
    free: VecDeque<Ready>,
    logged: VecDeque<Ready>,
    passed: VecDeque<Ready>,
}

/// Replies to one worker of the other node.
pub(super) struct Message {
    pub(super) to: u32,
    pub(super) replies: Vec<Reply>,
    /// So many places among the requests in flight are free again.
    pub(super) frees: usize,
}

/// A reply that waits for the session.
#[derive(Debug)]
pub(super) struct Ready {
    worker: u32,
    number: u64,
    /// The frame that has to be committed before it may be sent; not known before the end of its
    /// turn.
    gate: Option<u64>,
    answer: Answer,
    /// Whether it gives up a place among the requests in flight.
    has_place: bool,
}

#[derive(Debug)]
pub(super) enum Answer {
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
pub(super) struct Making {
    pieces: Pieces,
    /// Made and not sent: one element may be long.
    over: Bytes,
    is_all: bool,
}

impl Lines {
    /// `until`: what it waits for.
    pub(super) fn push(&mut self, until: Option<Until>, mut ready: Ready) {
        let line = match until {
            None => {
                ready.gate = Some(0);
                &mut self.free
            }
            Some(Until::Logged) => &mut self.logged,
            Some(Until::Passed) => &mut self.passed,
        };
        line.push_back(ready);
    }

    /// A turn ends: its replies wait for this gate.
    pub(super) fn on_turn_end(&mut self, gate: u64) {
        for line in [&mut self.logged, &mut self.passed] {
            let new = line.iter_mut().rev().take_while(|r| r.gate.is_none());
            new.for_each(|ready| ready.gate = Some(gate));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.is_empty() && self.logged.is_empty() && self.passed.is_empty()
    }

    /// Whether any of them waits for what it tells to be committed.
    pub(super) fn wait(&self) -> bool {
        !(self.logged.is_empty() && self.passed.is_empty())
    }

    /// Whether the next part of a reply is made as it is sent.
    pub(super) fn makes(&self) -> bool {
        let firsts = [&self.free, &self.logged, &self.passed].map(VecDeque::front);
        firsts.into_iter().flatten().any(Ready::is_made)
    }

    /// The next message. `at`: the last frame that is committed, and the last that is in the log. `has_made`: parts of
    /// replies were made in this turn.
    pub(super) fn next(
        &mut self,
        (passed, logged): (u64, u64),
        has_made: &mut bool,
    ) -> Option<Message> {
        let lines = [
            (&mut self.free, 0),
            (&mut self.logged, logged),
            (&mut self.passed, passed),
        ];
        let mut messages = lines
            .into_iter()
            .map(|(line, upto)| next_of(line, upto, has_made));
        messages.find_map(|message| message)
    }
}

fn next_of(line: &mut VecDeque<Ready>, upto: u64, has_made: &mut bool) -> Option<Message> {
    let may_go = |ready: &Ready, has_made: bool| {
        ready.gate.is_some_and(|gate| gate <= upto) && !(has_made && ready.is_made())
    };
    let first = line.front().filter(|first| may_go(first, *has_made));
    let to = first?.worker;
    let (mut replies, mut bytes, mut frees) = (Vec::new(), 0, 0);
    while let Some(first) = line.front_mut()
        && first.worker == to
        && may_go(first, *has_made)
        && bytes < FULL
        && replies.len() < MAX_REQUESTS
    {
        *has_made |= first.is_made();
        let (reply, rest) = first.take();
        bytes += reply.bytes.len();
        replies.push(reply);
        if let Some(rest) = rest {
            // It is long enough for a message of its own.
            first.answer = rest;
            break;
        }
        frees += usize::from(first.has_place);
        line.pop_front();
    }
    Some(Message { to, replies, frees })
}

impl Answer {
    pub(super) fn of(reply: Output) -> Self {
        if reply.is_made() {
            Self::Made(Making::of(reply))
        } else {
            Self::Whole(reply)
        }
    }
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

impl Ready {
    /// A reply to a worker's request of this number.
    pub(super) fn new((worker, number): (u32, u64), answer: Answer, has_place: bool) -> Self {
        Self {
            worker,
            number,
            gate: None,
            answer,
            has_place,
        }
    }

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
