//! Workers, connections and messages, driven by hand; and commands on lists
//! that wait.

use rufous_base::rng::Rng;
use rufous_base::{Args, ConnId, Now, Output, WorkerId};
use rufous_kernel::placement::Placement;
use rufous_kernel::program::Wait;
use rufous_kernel::shard::{ExpirySetting, NewValue, Shard};
use rufous_kernel::worker::WaitEnd;
use rufous_kernel::{Context, Header, Message, Outcome, Program, Submitted, Unwritable, Worker};
use std::collections::{BTreeSet, VecDeque};

/// Appends to lists: key, number, and so on. A list is a key's value, eight
/// bytes for each number, and gone when it is empty.
pub(crate) const PUSH: u16 = 0;
/// Takes the first of the first list that has one, or waits: timeout, keys.
pub(crate) const POP: u16 = 1;
/// Takes the first of a list to the end of another, or waits: timeout, from, to.
pub(crate) const SHIFT: u16 = 2;
/// Takes all of a list to the end of another: from, to.
pub(crate) const POUR: u16 = 3;
const COMMANDS: usize = 4;

fn now_at(mono_us: u64) -> Now {
    Now {
        mono_us,
        unix_us: 1_700_000_000_000_000 + mono_us,
    }
}

pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

fn list(shard: &mut Shard, key: &[u8], now: Now) -> Vec<u8> {
    let key = shard.key(key);
    let value = shard.peek(0, key, now).expect("nothing but strings");
    value.map_or(Vec::new(), |value| value.bytes().to_vec())
}

fn put(shard: &mut Shard, key: &[u8], value: &[u8], now: Now) {
    let key = shard.key(key);
    if value.is_empty() {
        shard.remove(0, key, now);
    } else {
        let value = NewValue::Own(value.to_vec());
        shard.set(0, key, value, ExpirySetting::Clear, now);
    }
}

fn append(shard: &mut Shard, key: &[u8], tail: &[u8], now: Now) {
    let mut all = list(shard, key, now);
    all.extend_from_slice(tail);
    put(shard, key, &all, now);
}

pub(crate) struct Lists;

impl Program for Lists {
    fn run(command: u16, ctx: &mut Context<'_>, args: Args<'_>) -> bool {
        let (shard, now) = (&mut *ctx.shard, ctx.now);
        let timeout = || match number(args.get(1)) {
            0 => None,
            us => Some(us),
        };
        match command {
            PUSH => {
                for at in (1..args.len()).step_by(2) {
                    append(shard, args.get(at), args.get(at + 1), now);
                }
                ctx.out.bytes.extend_from_slice(b"ok");
            }
            POUR => {
                let all = list(shard, args.get(1), now);
                put(shard, args.get(1), &[], now);
                append(shard, args.get(2), &all, now);
                ctx.out.bytes.extend_from_slice(b"ok");
            }
            POP | SHIFT => {
                let sources = match command {
                    POP => 2..args.len(),
                    _ => 2..3,
                };
                let mut keys = sources.clone().map(|at| args.get(at));
                let found = keys.find_map(|key| {
                    let all = list(shard, key, now);
                    (!all.is_empty()).then_some((key, all))
                });
                let Some((key, all)) = found else {
                    ctx.out.bytes.extend_from_slice(b"nil");
                    ctx.wait = Some(Wait {
                        keys: sources,
                        timeout_us: timeout(),
                    });
                    return true;
                };
                put(shard, key, &all[8..], now);
                if command == SHIFT {
                    append(shard, args.get(3), &all[..8], now);
                }
                ctx.out.bytes.extend_from_slice(&all[..8]);
            }
            _ => unreachable!("no such command"),
        }
        true
    }

    fn may_grow(_: u16) -> bool {
        true
    }

    fn may_wait(command: u16) -> bool {
        matches!(command, POP | SHIFT)
    }

    fn refuse(_: u16, _: &str, _: bool, _: &mut Output) {
        unreachable!("there are no keyspaces here");
    }

    fn refuse_write(_: Unwritable<'_>, _: bool, _: &mut Output) {
        unreachable!("there is no log here");
    }

    fn refuse_slot(why: &str, _resp3: bool, out: &mut Output) {
        out.bytes
            .extend_from_slice(format!("-{why}\r\n").as_bytes());
    }

    fn refuse_growth(_: bool, _: &mut Output) {
        unreachable!("there is no limit here");
    }

    fn is_write(_: u16) -> bool {
        true
    }
}

/// A connection, with at most one request under way.
#[derive(Default)]
pub(crate) struct Conn {
    /// Rises with each connection in this place.
    pub(crate) generation: u32,
    pub(crate) seq: u32,
    /// Rises with every request of the world.
    pub(crate) number: u64,
    pub(crate) command: u16,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) busy: bool,
    /// Told to wait, until when.
    pub(crate) waits: bool,
    pub(crate) deadline_us: Option<u64>,
    pub(crate) reply: Option<Vec<u8>>,
}

pub(crate) struct World {
    pub(crate) workers: Vec<Worker<Lists>>,
    pub(crate) conns: Vec<Vec<Conn>>,
    pub(crate) wires: Vec<Vec<VecDeque<Message>>>,
    pub(crate) rng: Rng,
    pub(crate) now_us: u64,
    pub(crate) submitted: u64,
    /// Whether clients of a worker that wait for a key must be served in turn.
    pub(crate) in_turn: bool,
    /// Connections in the order in which they were answered.
    pub(crate) answered: Vec<(usize, usize)>,
}

impl World {
    pub(crate) fn new(workers: usize, conns: usize, seed: u64) -> Self {
        let placement = Placement::new(workers);
        let ids = || (0..workers).map(|w| WorkerId(w as u16));
        Self {
            workers: ids()
                .map(|id| Worker::new(id, placement.clone(), COMMANDS, 99))
                .collect(),
            conns: ids()
                .map(|_| (0..conns).map(|_| Conn::default()).collect())
                .collect(),
            wires: ids()
                .map(|_| ids().map(|_| VecDeque::new()).collect())
                .collect(),
            rng: Rng::new(seed),
            now_us: 1_000,
            submitted: 0,
            in_turn: true,
            answered: Vec::new(),
        }
    }

    pub(crate) fn draw(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    pub(crate) fn submit(&mut self, at: (usize, usize), command: u16, args: &[&[u8]]) {
        let (mut buf, mut spans) = (vec![b'c'], vec![(0, 1)]);
        for arg in args {
            spans.push((buf.len() as u32, arg.len() as u32));
            buf.extend_from_slice(arg);
        }
        let keys: Vec<u32> = match command {
            PUSH => (1..=args.len() as u32).step_by(2).collect(),
            POUR => vec![1, 2],
            _ => (2..=args.len() as u32).collect(),
        };
        let names = keys.iter().map(|&k| args[k as usize - 1]);
        self.submitted += 1;
        let worker = &mut self.workers[at.0];
        let conn = &mut self.conns[at.0][at.1];
        assert!(!conn.busy);
        let timeout = number(args[0]);
        let may_wait = Lists::may_wait(command);
        *conn = Conn {
            generation: conn.generation,
            seq: conn.seq + 1,
            number: self.submitted,
            command,
            keys: names.map(<[u8]>::to_vec).collect(),
            busy: true,
            waits: false,
            deadline_us: (may_wait && timeout > 0).then_some(self.now_us + timeout),
            reply: None,
        };
        let header = Header {
            conn: ConnId {
                slot: at.1 as u32,
                generation: conn.generation,
            },
            client: at.1 as u64,
            seq: conn.seq,
            command,
            db: 0,
            resp3: false,
            no_touch: false,
            quiet: false,
            door: rufous_kernel::batch::Door::default(),
            key: keys[0] as u8,
            hash: worker.shard.key(args[keys[0] as usize - 1]).hash,
            strict_in: None,
        };
        let mut out = Output::default();
        let now = now_at(self.now_us);
        let keys: Vec<(u8, u32)> = keys.into_iter().map(|k| (0, k)).collect();
        let args = Args::new(&buf, &spans, &mut []);
        match worker.submit_many(now, &header, &keys, args, &mut out) {
            Submitted::Done | Submitted::NotHere => {
                conn.busy = false;
                conn.reply = Some(out.bytes);
                self.answered.push(at);
            }
            Submitted::Pending => assert!(!may_wait, "others could overtake it"),
            Submitted::Barrier => assert!(out.bytes.is_empty()),
        }
    }

    pub(crate) fn with<R>(&mut self, w: usize, f: impl FnOnce(&mut Worker<Lists>, Now) -> R) -> R {
        let now = now_at(self.now_us);
        let result = f(&mut self.workers[w], now);
        self.take_outcomes(w);
        while self.workers[w].settle(now) {
            self.take_outcomes(w);
        }
        self.take_outcomes(w);
        let wires = &mut self.wires[w];
        self.workers[w].take_messages(|to, message| wires[to.index()].push_back(message));
        result
    }

    fn take_outcomes(&mut self, w: usize) {
        while let Some(outcome) = self.workers[w].next_outcome() {
            match outcome {
                Outcome::Replies(batch) => {
                    for request in batch.requests.iter().filter(|r| !r.reply.is_later()) {
                        let range = request.reply;
                        let reply = &batch.replies.bytes[range.start.0..range.end.0];
                        self.answer(w, &request.header, reply);
                    }
                    self.workers[w].recycle(batch);
                }
                Outcome::Waits(header) => {
                    let conn = &mut self.conns[w][header.conn.index()];
                    if conn.generation == header.conn.generation {
                        conn.waits = true;
                    } else {
                        self.workers[w].end_wait(header.conn, WaitEnd::Gone);
                    }
                }
                Outcome::Lost(_) | Outcome::Transacted(_) => {
                    unreachable!("there is no log here, and no other node")
                }
            }
        }
    }

    fn answer(&mut self, w: usize, header: &Header, reply: &[u8]) {
        let conns = &mut self.conns[w];
        let conn = &mut conns[header.conn.index()];
        if conn.generation != header.conn.generation {
            return;
        }
        assert_eq!(conn.seq, header.seq);
        assert!(
            conn.busy && conn.reply.is_none(),
            "a reply that nobody awaits"
        );
        if reply == b"nil" {
            let due = conn.deadline_us.expect("it waits for ever");
            assert!(self.now_us >= due, "it gave up too early");
        }
        let served = reply != b"nil";
        conn.reply = Some(reply.to_vec());
        conn.waits = false;
        conn.busy = false;
        if self.in_turn && served && conn.command == POP && conn.keys.len() == 1 {
            let conn = &conns[header.conn.index()];
            let alike = |c: &&Conn| c.busy && c.command == POP && c.keys == conn.keys;
            let mut others = conns.iter().filter(alike);
            assert!(others.all(|c| c.number > conn.number), "out of turn");
        }
        self.answered.push((w, header.conn.index()));
    }

    pub(crate) fn finish_step(&mut self, w: usize) {
        self.with(w, |_, _| ());
    }

    pub(crate) fn deliver(&mut self) -> bool {
        let n = self.workers.len();
        let busy: Vec<(usize, usize)> = (0..n * n)
            .map(|i| (i / n, i % n))
            .filter(|&(from, to)| !self.wires[from][to].is_empty())
            .collect();
        if busy.is_empty() {
            return false;
        }
        let (from, to) = busy[self.draw(busy.len())];
        if let Some(message) = self.wires[from][to].pop_front() {
            self.with(to, |worker, now| {
                worker.on_message(now, WorkerId(from as u16), message);
            });
        }
        true
    }

    /// Delivers everything, and checks what has to hold then.
    pub(crate) fn run_to_quiet(&mut self) {
        (0..self.workers.len()).for_each(|w| self.finish_step(w));
        while self.deliver() {}
        for w in 0..self.workers.len() {
            assert_eq!(self.workers[w].waiting(), 0, "a lock is left over");
            self.workers[w].shard.check();
            let waits = self.conns[w].iter().filter(|c| c.waits).count();
            assert_eq!(self.workers[w].waiting_clients().len(), waits);
        }
        let conns = self.conns.iter().flatten();
        let awaited: BTreeSet<_> = conns
            .filter(|c| c.waits)
            .flat_map(|c| match c.command {
                SHIFT => c.keys[..1].to_vec(),
                _ => c.keys.clone(),
            })
            .collect();
        for key in &awaited {
            assert!(self.peek(key).is_empty(), "nobody woke up who waits");
        }
        let known: usize = self
            .workers
            .iter()
            .map(|w| w.shard.observers().awaited_keys())
            .sum();
        assert_eq!(known, awaited.len(), "a wait was not forgotten");
        assert!(self.conns.iter().flatten().all(|c| c.busy == c.waits));
    }

    pub(crate) fn peek(&mut self, key: &[u8]) -> Vec<u64> {
        let owner = self.workers[0].placement().owner(key).index();
        let now = now_at(self.now_us);
        let all = list(&mut self.workers[owner].shard, key, now);
        all.chunks(8).map(number).collect()
    }

    /// What the connection was answered.
    pub(crate) fn reply(&self, at: (usize, usize)) -> Option<u64> {
        let reply = self.conns[at.0][at.1].reply.as_deref()?;
        (reply.len() == 8).then(|| number(reply))
    }

    /// Time goes on, and waits end.
    pub(crate) fn tick(&mut self, us: u64) {
        self.now_us += us;
        for w in 0..self.workers.len() {
            self.with(w, |worker, now| worker.end_due_waits(now));
        }
    }

    /// A client goes away, and another takes its place.
    pub(crate) fn replace(&mut self, (w, c): (usize, usize)) {
        let conn = &mut self.conns[w][c];
        let id = ConnId {
            slot: c as u32,
            generation: conn.generation,
        };
        *conn = Conn {
            generation: conn.generation + 1,
            ..Conn::default()
        };
        self.with(w, |worker, _| worker.end_wait(id, WaitEnd::Gone));
    }

    /// A key of this worker's.
    pub(crate) fn key_of(&self, worker: usize, nth: usize) -> Vec<u8> {
        let placement = self.workers[0].placement();
        let names = (0..).map(|i| format!("k{i}").into_bytes());
        let mut own = names.filter(|name| placement.owner(name).index() == worker);
        own.nth(nth).expect("there are enough names")
    }
}
