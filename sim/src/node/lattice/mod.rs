//! Clients of lattice keyspaces: several workers have replicas of each key,
//! all take writes, and only after quiet must they show the same.
//!
//! Every value, member and field is written once, so that a read identifies
//! the write it has seen; sums have bounds. Oracles: what a connection has seen or
//! written stays until a client removes it, and does not come back
//! afterwards ([`session`]); after quiet all workers show the same, and that
//! is what the acknowledged operations allow ([`judge`]).
//!
//! - [`space`]: the keyspaces and keys of a run
//! - [`act`]: what was done, and how sure that is
//! - [`note`]: strings with causal order
//! - [`timed`]: deadlines of collections
//! - [`sketch`]: what HyperLogLogs of few elements count
//! - [`open`]: transactions that are answered command by command
//! - [`ask`], [`answer`]: the clients' requests, and the replies

mod act;
mod answer;
mod ask;
mod cleared;
mod clocks;
mod judge;
mod note;
mod open;
mod session;
mod sketch;
mod space;
mod timed;

pub use judge::Judged;
pub use space::{Key, Kind, Space};

use crate::engine::clock::Clock;
use crate::engine::random::Random;
use crate::node::client::State;
use crate::node::plan::Plan;
use act::Act;
use clocks::Clocks;
use open::Open;
use rufous_resp::{Reply, ReplyParser};
use session::Session;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// As many as a node has workers, at most: each looks at one of them.
pub const AUDITORS: usize = 4;

/// What a client has asked for.
#[derive(Clone, Debug)]
pub enum Ask {
    /// The database, and that the keyspaces are there.
    Ready,
    /// The act of this number.
    Act(usize),
    /// What is at these keys.
    Look(Vec<usize>),
    /// All keys of its database.
    List,
    /// An operation that no replica can do alone.
    Impossible,
    /// A change of the keyspaces, which may be refused.
    Table,
    /// A transaction begins, writes, is committed as the act of this number, or
    /// ends otherwise.
    Begin,
    Inside,
    Commit(usize),
    Rollback,
}

#[derive(Debug)]
pub struct Asked {
    pub ask: Ask,
    /// Replies to come, and those that came.
    wanted: usize,
    pub got: Vec<Reply>,
}

#[derive(Debug)]
pub struct LatticeClient {
    pub state: State,
    pub ready: bool,
    pub asked: VecDeque<Asked>,
    /// Things that it still wants to do.
    pub left: u64,
    pub db: usize,
    /// That it is connected to.
    worker: usize,
    pub random: Random,
    session: Session,
    /// Its open transaction.
    open: Option<Open>,
    parser: ReplyParser,
    received: Vec<u8>,
}

impl LatticeClient {
    fn new(seed: u64, number: usize, left: u64) -> Self {
        Self {
            state: State::Away,
            ready: false,
            asked: VecDeque::new(),
            left,
            db: 0,
            worker: 0,
            random: Random::new(seed, &format!("lattice client {number}")),
            session: Session::default(),
            open: None,
            parser: ReplyParser::default(),
            received: Vec::new(),
        }
    }

    pub fn connected(&mut self, link: usize, worker: usize, life: usize) {
        self.worker = worker;
        self.state = State::Connected(link);
        self.ready = false;
        self.session = Session::new(life);
        self.open = None;
        self.parser = ReplyParser::default();
        self.received.clear();
    }

    /// It makes no further requests.
    pub fn is_done(&self) -> bool {
        self.left == 0 && self.open.is_none()
    }

    fn ask(&mut self, ask: Ask, wanted: usize) {
        self.asked.push_back(Asked {
            ask,
            wanted,
            got: Vec::new(),
        });
    }

    /// Bytes came; gives what was answered by them.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Asked>, String> {
        self.received.extend_from_slice(bytes);
        let mut answered = Vec::new();
        loop {
            let parsed = self.parser.parse(&self.received);
            let (done, reply) = parsed.map_err(|e| format!("not a reply: {e:?}"))?;
            self.received.drain(..done);
            let Some(reply) = reply else {
                return Ok(answered);
            };
            let Some(asked) = self.asked.front_mut() else {
                return match reply {
                    Reply::Error(_) => Ok(answered),
                    reply => Err(format!("a reply that nobody asked for: {reply:?}")),
                };
            };
            asked.got.push(reply);
            if asked.got.len() == asked.wanted {
                answered.extend(self.asked.pop_front());
            }
        }
    }
}

/// A member, field or value, by its number.
type Thing = u64;

/// What is at a key: things, or a sum in quarters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub things: BTreeSet<Thing>,
    pub sum: i64,
}

/// All of it, and what was seen.
#[derive(Debug, Default)]
pub struct Lattice {
    /// The last ones look at everything.
    pub clients: Vec<LatticeClient>,
    pub spaces: Vec<Space>,
    /// Whether the settings name the keyspaces.
    pub declared: bool,
    pub keys: Vec<Key>,
    /// Keys that transactions write together.
    groups: Vec<Vec<usize>>,
    acts: Vec<Act>,
    /// The acts that made things, or wrote values.
    made: BTreeMap<Thing, usize>,
    /// Things that a client has asked to remove, one by one.
    removed: BTreeSet<Thing>,
    /// Acts on each key, and flushes of each database.
    of_key: Vec<Vec<usize>>,
    /// In which life a counter that is cleared was written, and at which worker.
    written_at: BTreeMap<usize, (usize, usize)>,
    flushes: BTreeMap<usize, Vec<usize>>,
    next: Thing,
    /// Pairs of worker and key still to be audited; `seen` holds the results.
    pub audit: BTreeSet<(usize, usize)>,
    seen: BTreeMap<(usize, usize), View>,
    pipeline: u64,
    /// Whether clients begin transactions.
    begins: bool,
    /// What transactions write that are not committed, or never will be.
    uncommitted: BTreeSet<Thing>,
    /// Registers of HyperLogLogs that some element has.
    registers: BTreeSet<usize>,
    /// The wall clock, and whether it never jumps.
    pub clock: Clock,
    is_steady: bool,
    clocks: Clocks,
    /// When the reply that is checked arrived.
    now_us: u64,
}

impl Lattice {
    pub fn new(plan: &Plan) -> Self {
        if !plan.lattice {
            return Self::default();
        }
        let mut r = Random::new(plan.seed, "lattice");
        let count = r.between(2, 5) as usize;
        let client = |n| LatticeClient::new(plan.seed, n, plan.lattice_commands / count as u64);
        let mut spaces = space::spaces(&mut r);
        if plan.evicts() {
            // What is judged to the last element is not evicted: so it belongs to these keyspaces all the time.
            spaces.iter_mut().for_each(|space| {
                (space.is_fixed, space.evict) = (true, false);
            });
        }
        let (mut keys, groups) = space::keys(&mut r, &spaces, !plan.evicts());
        if let Some(mut space) = space::causal(&mut Random::new(plan.seed, "causal lattice")) {
            space.evict = !plan.evicts();
            keys.extend(space::notes(spaces.len(), &space));
            spaces.push(space);
        }
        let mut more = Random::new(plan.seed, "more lattice keys");
        if more.chance(0.5) {
            keys.extend(space::more(&mut more, &spaces));
        }
        if plan.evicts() && plan.seed % 2 == 1 {
            let space = space::cache(&mut Random::new(plan.seed, "cached lattice keys"));
            keys.extend(space::cached(spaces.len(), &space));
            spaces.push(space);
        }
        if plan.has_small_jumps() {
            keys.iter_mut().for_each(Key::make_timed);
        }
        Self {
            begins: more.chance(0.5),
            is_steady: plan.jumps.is_empty(),
            clients: (0..count + AUDITORS).map(client).collect(),
            declared: r.chance(0.3),
            of_key: vec![Vec::new(); keys.len()],
            pipeline: r.weighted(&[(3, 1), (2, 3)]),
            spaces,
            keys,
            groups,
            ..Self::default()
        }
    }

    /// The worker that a client looks at everything of.
    pub fn auditor(&self, client: usize) -> Option<usize> {
        client.checked_sub(self.clients.len() - AUDITORS)
    }

    pub fn rest(&self) -> bool {
        let rests = |client: &LatticeClient| client.asked.is_empty() && client.open.is_none();
        self.clients.iter().all(rests)
    }

    fn kind(&self, key: usize) -> Kind {
        self.keys[key].kind
    }

    /// Whether collections or strings may remember a time that is far away by a clock that
    /// was put back.
    pub fn remembers_long(&self) -> bool {
        !self.is_steady
            && self
                .keys
                .iter()
                .any(|key| key.kind.is_timed() || key.kind == Kind::Fleeting)
    }

    /// Whether a key may be deleted for the sake of room at any time.
    fn may_be_evicted(&self, key: usize) -> bool {
        let space = self.keys[key].space.map(|space| &self.spaces[space]);
        space.is_some_and(|space| space.evict && space.name == "cache")
    }

    /// How many commands came to an end.
    pub fn operations(&self) -> u64 {
        self.acts.len() as u64
    }
}
