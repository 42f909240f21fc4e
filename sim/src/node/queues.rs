//! Clients of queues: some push to lists and sorted sets, others wait for elements. Each
//! element is unique, so that a reply identifies the one that was taken.
//!
//! Oracles: what was acknowledged as taken is not present again, nor taken by
//! another client, and what was acknowledged as pushed is taken once or still
//! present, as far as restarts have to keep either; no client waits while one of
//! its keys has elements; the waiters of a key are served in their order;
//! and no wait ends before its time.

mod ask;
mod line;
mod order;

use line::Line;
use order::Order;

use crate::engine::random::Random;
use crate::history::{Epoch, Outcome, Record};
use crate::model::pops::How;
use crate::model::{Op, Step};
use crate::node::client::State;
use crate::node::plan::Plan;
use rufous_resp::{Reply, ReplyParser};
use std::collections::{BTreeMap, BTreeSet};

/// The database of queues; no other client uses it.
pub const DB: usize = 3;

/// What a client of queues has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The database, and whether the node serves.
    Select,
    /// Elements with the numbers of their keys.
    Push(Vec<(usize, u64)>),
    /// From the first of these keys that has something.
    Pop(Vec<usize>, How, Option<u64>),
    /// From a key to another.
    Move(usize, usize, Option<u64>),
    /// Everything at a key.
    Look(usize),
}

#[derive(Debug)]
pub struct Asked {
    pub ask: Ask,
    pub at_us: u64,
    /// Replies to come; the last one counts.
    replies: usize,
}

#[derive(Debug)]
pub struct QueueClient {
    pub state: State,
    pub ready: bool,
    pub asked: Option<Asked>,
    /// Things that it still wants to do.
    pub left: u64,
    pub random: Random,
    parser: ReplyParser,
    received: Vec<u8>,
}

impl QueueClient {
    fn new(seed: u64, number: usize, left: u64) -> Self {
        Self {
            state: State::Away,
            ready: false,
            asked: None,
            left,
            random: Random::new(seed, &format!("queue client {number}")),
            parser: ReplyParser::default(),
            received: Vec::new(),
        }
    }

    pub fn connected(&mut self, link: usize) {
        self.state = State::Connected(link);
        self.ready = false;
        self.parser = ReplyParser::default();
        self.received.clear();
    }

    pub fn ask(&mut self, ask: Ask, replies: usize, at_us: u64) {
        self.asked = Some(Asked {
            ask,
            at_us,
            replies,
        });
    }

    /// Bytes came; gives what was answered by them.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<(Asked, Reply)>, String> {
        self.received.extend_from_slice(bytes);
        loop {
            let parsed = self.parser.parse(&self.received);
            let (done, reply) = parsed.map_err(|e| format!("not a reply: {e:?}"))?;
            self.received.drain(..done);
            let Some(reply) = reply else {
                return Ok(None);
            };
            let Some(asked) = &mut self.asked else {
                return match reply {
                    Reply::Error(_) => Ok(None),
                    reply => Err(format!("a reply that nobody asked for: {reply:?}")),
                };
            };
            asked.replies -= 1;
            if asked.replies == 0 {
                return Ok(self.asked.take().map(|asked| (asked, reply)));
            }
        }
    }

    /// Whether it does nothing, or only waits.
    fn rests(&self) -> bool {
        let asked = self.asked.as_ref().map(|a| &a.ask);
        matches!(asked, None | Some(Ask::Pop(..) | Ask::Move(..)))
    }
}

/// Something that happened to an element, in which life of the node and when.
#[derive(Clone, Copy, Debug)]
struct Event {
    life: usize,
    asked_us: u64,
    answered_us: u64,
}

impl Event {
    /// Whether all of these ends of the node have to keep it.
    fn kept(&self, epochs: &[Epoch]) -> bool {
        let record = Record {
            op: Op::One(Step::Flush),
            outcome: Outcome::Open,
            connection: 0,
            order: 0,
            asked_us: self.asked_us,
            answered_us: self.answered_us,
        };
        epochs.iter().all(|epoch| epoch.holds(&record))
    }
}

#[derive(Debug, Default)]
struct Element {
    /// None: it was refused.
    pushed: Option<Event>,
    taken: Vec<Event>,
}

/// All queues, their clients, and what was seen.
#[derive(Debug, Default)]
pub struct Queues {
    /// The last one looks at everything.
    pub clients: Vec<QueueClient>,
    pub keys: Vec<Vec<u8>>,
    /// Which of them are sorted sets, and not lists.
    sorted: Vec<bool>,
    elements: BTreeMap<u64, Element>,
    next: u64,
    /// How many elements pops may have taken whose reply is unknown.
    open_pops: u64,
    /// Keys that are still to get an element, so that every waiter is served.
    pub fed: Vec<usize>,
    /// The client that is to begin to wait, for as long as it takes.
    pub invited: Option<usize>,
    line: Line,
    pub order: Order,
    /// Keys still to be audited; `seen` holds the results.
    pub audit: Vec<usize>,
    seen: Vec<Vec<u64>>,
}

impl Queues {
    pub fn new(plan: &Plan) -> Self {
        // Eviction takes elements as it likes.
        if plan.maxmemory.is_some() || !crate::node::settings::knows("blmove") {
            return Self::default();
        }
        let mut r = Random::new(plan.seed, "queues");
        let count = r.weighted(&[(2, 0), (1, 2), (2, 4), (1, 6)]);
        // Where restarts may lose the end of each worker's log, what moves
        // about has to be in the same log.
        let together = plan.may_lose() || r.chance(0.3);
        let key = |n| match together {
            true => format!("{{queue}}{n}").into_bytes(),
            false => format!("queue:{n}").into_bytes(),
        };
        let client = |n| QueueClient::new(plan.seed, n, 120 / count as u64);
        Self {
            clients: match count {
                0 => Vec::new(),
                _ => (0..=count).map(client).collect(),
            },
            keys: (0..r.between(1, 3)).map(key).collect(),
            ..Self::default()
        }
        .with_types(plan)
    }

    fn with_types(mut self, plan: &Plan) -> Self {
        let mut r = Random::new(plan.seed, "types of queues");
        let sorted = |_: &Vec<u8>| r.chance(plan.sorted_queues);
        self.sorted = self.keys.iter().map(sorted).collect();
        self
    }

    pub fn auditor(&self) -> usize {
        self.clients.len().saturating_sub(1)
    }

    pub fn rest(&self) -> bool {
        self.clients.iter().all(QueueClient::rests)
    }

    /// Notes a reply, or that none came (`None`).
    pub fn note(
        &mut self,
        client: usize,
        asked: Asked,
        reply: Option<&Reply>,
        life: usize,
        now_us: u64,
    ) -> Result<(), String> {
        let event = Event {
            life,
            asked_us: asked.at_us,
            answered_us: if reply.is_some() { now_us } else { u64::MAX },
        };
        let refused = matches!(reply, Some(Reply::Error(_)));
        match (&asked.ask, reply) {
            (Ask::Pop(..), Some(Reply::Array(_))) => self.line.serve(client),
            _ => self.line.leave(client),
        }
        match asked.ask {
            Ask::Select => self.clients[client].ready = reply == Some(&Reply::Integer(0)),
            Ask::Push(pushed) => {
                for (_, element) in pushed {
                    let pushed = (!refused).then_some(event);
                    self.elements.entry(element).or_default().pushed = pushed;
                }
            }
            Ask::Pop(_, _, timeout) | Ask::Move(_, _, timeout) if is_nil(reply) => {
                let due = timeout.map(|us| asked.at_us + us);
                if due.is_none_or(|due| now_us < due) {
                    return Err(format!("a wait ended before its time: {timeout:?} us"));
                }
            }
            Ask::Pop(keys, how, _) => match reply {
                None => self.open_pops += how.most(),
                Some(Reply::Error(_)) => {}
                Some(reply) => {
                    let (key, taken) = told(how, reply)
                        .ok_or_else(|| format!("no reply to a pop: {how:?} {reply:?}"))?;
                    if !keys.iter().any(|k| self.keys[*k] == key) {
                        return Err(format!("taken from a key that nobody named: {reply:?}"));
                    }
                    for element in taken {
                        self.take(element, event)?;
                    }
                }
            },
            Ask::Move(..) => {
                if let Some(reply @ Reply::Bulk(_)) = reply {
                    number(reply)?;
                }
            }
            Ask::Look(key) => match reply {
                Some(Reply::Array(all)) => {
                    self.seen[key] = all.iter().map(number).collect::<Result<_, _>>()?;
                    self.audit.retain(|k| *k != key);
                }
                Some(Reply::Error(_)) => self.clients[client].ready = false,
                _ => {}
            },
        }
        Ok(())
    }

    fn take(&mut self, reply: &Reply, event: Event) -> Result<(), String> {
        let element = number(reply)?;
        let taken = &mut self.elements.entry(element).or_default().taken;
        taken.push(event);
        Ok(())
    }

    /// Starts the audit of all keys.
    pub fn begin_audit(&mut self) {
        if self.clients.is_empty() {
            return;
        }
        self.audit = (0..self.keys.len()).collect();
        self.seen = vec![Vec::new(); self.keys.len()];
    }

    /// All keys have been audited, and no request is pending.
    pub fn judge(&mut self, epochs: &[Epoch], now_us: u64) -> Result<(), String> {
        self.line.judge()?;
        let mut there = BTreeSet::new();
        for element in self.seen.iter().flatten() {
            if !there.insert(*element) {
                return Err(format!("q{element} is there twice"));
            }
        }
        let mut missing = 0;
        for (number, element) in &self.elements {
            let left = there.contains(number);
            // Each time it is seen again, a restart must have lost the last time.
            let ends = element.taken.iter().skip(1).map(|e| e.life - 1);
            let ends = ends.chain(left.then_some(epochs.len()));
            for (taken, end) in element.taken.iter().zip(ends) {
                if taken.kept(&epochs[taken.life - 1..end]) {
                    return Err(format!("q{number} was taken, and came again: {element:?}"));
                }
            }
            let pushed = element.pushed.filter(|p| p.answered_us != u64::MAX);
            if let Some(pushed) = pushed
                && !left
                && element.taken.is_empty()
                && pushed.kept(&epochs[pushed.life - 1..])
            {
                missing += 1;
            }
        }
        if missing > self.open_pops {
            return Err(format!(
                "{missing} elements are gone, and {} pops were not answered",
                self.open_pops
            ));
        }
        self.judge_waits(now_us)
    }

    fn judge_waits(&self, now_us: u64) -> Result<(), String> {
        for (number, client) in self.clients.iter().enumerate() {
            let Some(asked) = &client.asked else { continue };
            let (keys, timeout) = match &asked.ask {
                Ask::Pop(keys, _, timeout) => (&keys[..], timeout),
                Ask::Move(from, _, timeout) => (std::slice::from_ref(from), timeout),
                _ => continue,
            };
            if let Some(key) = keys.iter().find(|key| !self.seen[**key].is_empty()) {
                return Err(format!(
                    "queue client {number} waits for key {key}, which has something: {asked:?}"
                ));
            }
            if timeout.is_some_and(|us| now_us > asked.at_us + us + 10_000_000) {
                return Err(format!(
                    "queue client {number} waits for too long: {asked:?}"
                ));
            }
        }
        Ok(())
    }
}

fn is_nil(reply: Option<&Reply>) -> bool {
    matches!(reply, Some(Reply::Null | Reply::NullArray))
}

/// The key and the elements in the reply to a pop.
fn told(how: How, reply: &Reply) -> Option<(&[u8], Vec<&Reply>)> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let taken: Vec<&Reply> = match (how, &parts[..]) {
        (How::One(_), [_, element]) | (How::Ranked(_), [_, element, _]) => vec![element],
        (How::Some(..), [_, Reply::Array(all)]) => all.iter().collect(),
        (How::RankedSome(..), [_, Reply::Array(all)]) => {
            let member = |pair: &'_ Reply| matches!(pair, Reply::Array(pair) if pair.len() == 2);
            if !all.iter().all(member) {
                return None;
            }
            let members = all.iter().filter_map(|pair| match pair {
                Reply::Array(pair) => pair.first(),
                _ => None,
            });
            members.collect()
        }
        _ => return None,
    };
    let fits = (1..=how.most()).contains(&(taken.len() as u64));
    match &parts[0] {
        Reply::Bulk(key) if fits => Some((key, taken)),
        _ => None,
    }
}

/// The number of an element.
fn number(reply: &Reply) -> Result<u64, String> {
    let Reply::Bulk(bytes) = reply else {
        return Err(format!("no element: {reply:?}"));
    };
    let text = String::from_utf8_lossy(bytes);
    let number = text.strip_prefix('q').and_then(|n| n.parse().ok());
    number.ok_or_else(|| format!("an element that nobody pushed: {text}"))
}
