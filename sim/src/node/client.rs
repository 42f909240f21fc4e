//! A client: it sends some requests at once, waits for all replies, thinks,
//! and goes on. What it saw goes into the history.

use crate::engine::random::Random;
use crate::history::{Outcome, Record};
use crate::model::Op;
use crate::node::plan::Mode;
use rufous_resp::{Reply, ReplyParser};
use std::collections::VecDeque;

/// What a client waits for.
#[derive(Debug)]
pub struct Awaited {
    pub what: Asked,
    pub record: Record,
    /// Replies to come until it is answered; only the last one matters.
    pub replies: usize,
}

/// Why something was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// For the history of this unit.
    Unit(usize),
    /// A read of this key after `WATCH`, for the history of this unit.
    Watched(usize, usize),
    /// `FLUSHDB`, for the history of all units of this database.
    Flush(usize),
    /// The database of the connection, and whether the node serves.
    Select(usize),
    /// Of the operator: a setting of `appendfsync`.
    Fsync(Mode),
    /// Whatever is answered is fine.
    Other(&'static str),
}

/// Where a connection of a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Away,
    /// Of this number.
    Connected(usize),
}

#[derive(Debug)]
pub struct Client {
    pub state: State,
    pub awaited: VecDeque<Awaited>,
    /// Operations that it still wants to do.
    pub left: u64,
    /// The database that its connection has selected.
    pub db: usize,
    /// The node was seen to serve, on this connection.
    pub ready: bool,
    /// A watched key of a unit, and what it held.
    pub watched: Option<(usize, usize, Option<Vec<u8>>)>,
    pub random: Random,
    pub order: u64,
    parser: ReplyParser,
    received: Vec<u8>,
}

impl Client {
    pub fn new(seed: u64, number: usize, operations: u64) -> Self {
        Self {
            state: State::Away,
            awaited: VecDeque::new(),
            left: operations,
            db: 0,
            ready: false,
            watched: None,
            random: Random::new(seed, &format!("client {number}")),
            order: 0,
            parser: ReplyParser::default(),
            received: Vec::new(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.left == 0 && self.awaited.is_empty()
    }

    pub fn connected(&mut self, link: usize) {
        self.state = State::Connected(link);
        self.parser = ReplyParser::default();
        self.received.clear();
        self.db = 0;
        self.ready = false;
        self.watched = None;
    }

    /// The connection is gone: what was awaited may have happened or not.
    pub fn lost(&mut self) -> Vec<Awaited> {
        self.state = State::Away;
        self.awaited.drain(..).collect()
    }

    /// Notes a request to come.
    pub fn ask(&mut self, what: Asked, op: Op, replies: usize, now_us: u64) {
        self.order += 1;
        let connection = match self.state {
            State::Connected(link) => link as u64,
            State::Away => u64::MAX,
        };
        self.awaited.push_back(Awaited {
            what,
            record: Record {
                op,
                outcome: Outcome::Open,
                connection,
                order: self.order,
                asked_us: now_us,
                answered_us: u64::MAX,
            },
            replies,
        });
    }

    /// Bytes came; gives what was answered by them.
    pub fn receive(&mut self, bytes: &[u8], now_us: u64) -> Result<Vec<Awaited>, String> {
        self.received.extend_from_slice(bytes);
        let mut answered = Vec::new();
        loop {
            let parsed = self.parser.parse(&self.received);
            let (done, reply) = parsed.map_err(|e| format!("not a reply: {e:?}"))?;
            self.received.drain(..done);
            let Some(reply) = reply else {
                return Ok(answered);
            };
            let Some(awaited) = self.awaited.front_mut() else {
                // The protocol allows a last word, as when a connection is refused.
                return match reply {
                    Reply::Error(_) => Ok(answered),
                    reply => Err(format!("a reply that nobody asked for: {reply:?}")),
                };
            };
            awaited.replies -= 1;
            if awaited.replies > 0 {
                continue;
            }
            awaited.record.outcome = Outcome::Seen(reply);
            awaited.record.answered_us = now_us;
            answered.extend(self.awaited.pop_front());
        }
    }
}

/// Errors that say that a command did not run.
const REFUSALS: [&str; 8] = [
    "MISCONF",
    "OOM",
    "LOADING",
    "EXECABORT",
    "BUSY",
    "TRYAGAIN",
    "UNBLOCKED",
    "CLOCKAHEAD",
];

/// Why a command did not run, where the reply says so.
pub fn refusal(reply: &Reply) -> Option<&'static str> {
    let Reply::Error(text) = reply else {
        return None;
    };
    // It names its command before that.
    const STALE: &str = "was on its way while the keyspaces were changed";
    if String::from_utf8_lossy(text).contains(STALE) {
        return Some(STALE);
    }
    REFUSALS
        .into_iter()
        .find(|prefix| text.starts_with(prefix.as_bytes()))
}
