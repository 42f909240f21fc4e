//! The requests in flight to one node, and those to be sent to it at the end of the turn.

use super::{Asked, MAX_BYTES, MAX_UNDER_WAY};
use rufous_wire::message::{Reply, Request, Requests};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Requests and bytes in one message, about.
const FULL: (usize, usize) = (1024, 256 << 10);

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Toward {
    /// By their numbers.
    asked: BTreeMap<u64, Asked>,
    /// The number of the next request.
    next: u64,
    /// To be sent at the end of the turn; these have the last numbers.
    outbox: VecDeque<Request>,
    /// Those of requests that do not wait for data there.
    bytes: usize,
    /// Requests that wait for data there. They take no room from others: each client has one at most.
    blocked: usize,
    /// Requests before this one were given up: their replies may still arrive.
    given_up: u64,
    /// Likewise, of single requests.
    left: BTreeSet<u64>,
    /// Rises when a request was not executed: see [`Requests::round`].
    round: u64,
}

impl Toward {
    pub(super) fn is_crowded(&self) -> bool {
        self.len() >= MAX_UNDER_WAY || self.bytes >= MAX_BYTES
    }

    /// Whether there is room again, for more than one request.
    pub(super) fn has_room(&self) -> bool {
        self.len() <= MAX_UNDER_WAY / 2 && self.bytes <= MAX_BYTES / 2
    }

    /// Requests in flight that do not wait for data.
    pub(super) fn len(&self) -> usize {
        self.asked.len() - self.blocked
    }

    pub(super) fn blocked(&self) -> usize {
        self.blocked
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Asked> {
        self.asked.values()
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (&u64, &mut Asked)> {
        self.asked.iter_mut()
    }

    /// Adds a request: it is sent at the end of the turn. Returns its number.
    pub(super) fn push(&mut self, mut asked: Asked) -> u64 {
        let (header, words) = (&asked.request.header, &asked.request.words);
        self.outbox.push_back(Request {
            db: header.db.into(),
            resp3: header.resp3,
            quiet: header.quiet,
            no_touch: header.no_touch,
            words: words.clone(),
        });
        self.bytes += words.len();
        asked.round = self.round;
        asked.waits = false;
        self.asked.insert(self.next, asked);
        self.next += 1;
        self.next - 1
    }

    /// The node has reported that a request waits for data.
    pub(super) fn on_waits(&mut self, number: u64) -> Option<&mut Asked> {
        let asked = self.asked.get_mut(&number)?;
        asked.request.patience.as_ref()?;
        if !std::mem::replace(&mut asked.waits, true) {
            self.blocked += 1;
            self.bytes -= asked.request.words.len();
        }
        Some(asked)
    }

    pub(super) fn find(&self, number: u64) -> Option<&Asked> {
        self.asked.get(&number)
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Asked> {
        self.asked.get_mut(&number)
    }

    /// Takes the request of a reply.
    pub(super) fn take(&mut self, reply: &Reply) -> Option<Asked> {
        self.remove(reply.number)
    }

    fn remove(&mut self, number: u64) -> Option<Asked> {
        let asked = self.asked.remove(&number)?;
        if asked.waits {
            self.blocked -= 1;
        } else {
            self.bytes -= asked.request.words.len();
        }
        Some(asked)
    }

    /// Takes all requests as [`Self::take_all`] does; the session goes on.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = (Asked, bool)> + use<> {
        let all = self.take_all();
        self.given_up = self.next;
        all
    }

    /// Gives up a request that was sent; the session goes on.
    pub(super) fn leave(&mut self, number: u64) -> Option<Asked> {
        let unsent = self.next - self.outbox.len() as u64;
        if number >= unsent {
            return None;
        }
        self.left.insert(number);
        self.remove(number)
    }

    /// Whether this is a reply, or a part of one, to a request that was given up.
    pub(super) fn was_given_up(&mut self, reply: &Reply) -> bool {
        let has_left = if reply.more || reply.waits {
            self.left.contains(&reply.number)
        } else {
            self.left.remove(&reply.number)
        };
        has_left || reply.number < self.given_up
    }

    /// Takes all requests, in order, and whether each was sent.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (Asked, bool)> + use<> {
        let unsent = self.next - self.outbox.len() as u64;
        self.outbox.clear();
        self.left.clear();
        (self.bytes, self.blocked) = (0, 0);
        let all = std::mem::take(&mut self.asked).into_iter();
        all.map(move |(number, asked)| (asked, number < unsent))
    }

    /// A request of this round was not executed. True if it is the first one: then what is in the
    /// outbox has to be sent before [`Self::begin_round`].
    pub(super) fn is_first_refusal(&self, round: u64) -> bool {
        self.round == round
    }

    pub(super) fn begin_round(&mut self) {
        self.round += 1;
    }

    /// The next message.
    pub(super) fn message(&mut self) -> Option<Requests> {
        if self.outbox.is_empty() {
            return None;
        }
        let first = self.next - self.outbox.len() as u64;
        let mut size = 0;
        let fits = self.outbox.iter().take_while(|request| {
            size += request.words.len();
            size <= FULL.1
        });
        // A large request goes in a message of its own.
        let fits = fits.take(FULL.0).count().max(1);
        let requests = self.outbox.drain(..fits).collect();
        Some(Requests {
            first,
            requests,
            round: self.round,
        })
    }
}
