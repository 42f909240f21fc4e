//! Workers driven by hand: messages between two workers keep their order, all
//! else is drawn by a seed. Commands on several keys must be atomic, nobody
//! may wait for ever, and a connection's commands on a key keep their order.

use rufous_base::rng::Rng;
use rufous_base::{Args, ConnId, Now, Output, WorkerId};
use rufous_kernel::multi::NodeAction;
use rufous_kernel::placement::Placement;
use rufous_kernel::shard::{ExpirySetting, NewValue, Shard};
use rufous_kernel::{Context, Header, Message, Outcome, Program, Submitted, Unwritable, Worker};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

pub(crate) const SEED: u64 = 99;
pub(crate) const NOW: Now = Now {
    mono_us: 1,
    unix_us: 1_700_000_000_000_000,
};
const KEYS: usize = 8;
const START: i64 = 100;
/// Larger than a record, so that values travel by reference.
const PADDING: usize = 100_000;

const READ: u16 = 0;
/// Adds to a key, replies with the sum.
const ADD: u16 = 1;
/// From one key to another.
pub(crate) const TRANSFER: u16 = 2;
/// Sets keys to what each had at the start.
const FILL: u16 = 3;
/// Removes keys.
const CLEAR: u16 = 4;
const NODE: u16 = 5;
pub(crate) const COMMANDS: usize = 6;

pub(crate) struct TestProgram;

/// The number that a value begins with.
fn number(value: &[u8]) -> i64 {
    value
        .first_chunk()
        .map_or(0, |&bytes| i64::from_le_bytes(bytes))
}

fn read(shard: &mut Shard, db: usize, key: &[u8]) -> i64 {
    let key = shard.key(key);
    let value = shard.get(db, key, NOW).expect("a string");
    value.map_or(0, |value| number(value.bytes()))
}

thread_local! {
    /// The large values written by the test that this thread runs.
    static LARGE: RefCell<Vec<Weak<Vec<u8>>>> = const { RefCell::new(Vec::new()) };
}

/// Every third number makes a large value.
pub(crate) fn write(shard: &mut Shard, db: usize, key: &[u8], value: i64) {
    let key = shard.key(key);
    let mut bytes = value.to_le_bytes().to_vec();
    let value = if value % 3 == 0 {
        bytes.resize(PADDING, 0);
        let large = Arc::new(bytes);
        LARGE.with_borrow_mut(|all| all.push(Arc::downgrade(&large)));
        NewValue::Shared(large)
    } else {
        NewValue::Own(bytes)
    };
    shard.set(db, key, value, ExpirySetting::Clear, NOW);
}

impl Program for TestProgram {
    fn run(command: u16, ctx: &mut Context<'_>, args: Args<'_>) -> bool {
        let db = ctx.db;
        let shard = &mut *ctx.shard;
        match command {
            READ => {
                for key in args.iter_from(1) {
                    let value = read(shard, db, key);
                    ctx.out.bytes.extend_from_slice(&value.to_le_bytes());
                }
            }
            ADD => {
                let sum = read(shard, db, args.get(1)) + number(args.get(2));
                write(shard, db, args.get(1), sum);
                ctx.out.bytes.extend_from_slice(&sum.to_le_bytes());
            }
            TRANSFER => {
                let amount = number(args.get(3));
                let from = read(shard, db, args.get(1)) - amount;
                write(shard, db, args.get(1), from);
                let to = read(shard, db, args.get(2)) + amount;
                write(shard, db, args.get(2), to);
            }
            FILL => args
                .iter_from(1)
                .for_each(|key| write(shard, db, key, START)),
            CLEAR => args.iter_from(1).for_each(|name| {
                let key = shard.key(name);
                shard.remove(db, key, NOW);
            }),
            _ => {}
        }
        true
    }

    fn may_grow(command: u16) -> bool {
        Self::is_write(command)
    }

    fn refuse(_: u16, _: &str, _: bool, _: &mut Output) {}
    fn refuse_write(_: Unwritable<'_>, _: bool, out: &mut Output) {
        out.bytes.extend_from_slice(b"unwritable");
    }

    fn refuse_slot(why: &str, _resp3: bool, out: &mut Output) {
        out.bytes
            .extend_from_slice(format!("-{why}\r\n").as_bytes());
    }

    fn refuse_growth(_: bool, out: &mut Output) {
        out.bytes.extend_from_slice(b"no room");
    }

    fn is_write(command: u16) -> bool {
        command != READ
    }
}

/// A connection: at most one barrier under way, everything else pipelined.
#[derive(Default)]
struct Conn {
    submitted: u32,
    /// Command and reply of each request, in order of submission.
    replies: Vec<(u16, Option<Vec<u8>>)>,
    barrier: bool,
}

impl Conn {
    fn waiting(&self) -> usize {
        self.replies.iter().filter(|r| r.1.is_none()).count()
    }
}

struct World {
    workers: Vec<Worker<TestProgram>>,
    /// Connections of each worker.
    conns: Vec<Vec<Conn>>,
    /// Messages from the first worker to the second.
    wires: Vec<Vec<VecDeque<Message>>>,
    rng: Rng,
}

impl World {
    fn new(workers: usize, conns: usize, seed: u64) -> Self {
        let placement = Placement::new(workers);
        let ids = || (0..workers).map(|w| WorkerId(w as u16));
        Self {
            workers: ids()
                .map(|id| Worker::new(id, placement.clone(), COMMANDS, SEED))
                .collect(),
            conns: ids()
                .map(|_| (0..conns).map(|_| Conn::default()).collect())
                .collect(),
            wires: ids()
                .map(|_| ids().map(|_| VecDeque::new()).collect())
                .collect(),
            rng: Rng::new(seed),
        }
    }

    fn draw(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    /// Submits a request whose first `keys` arguments are keys of `db`.
    fn submit(&mut self, at: (usize, usize), command: u16, db: u8, args: &[Vec<u8>], keys: usize) {
        let action = match command {
            NODE if args[0][0] == 0 => Some(NodeAction::FlushAll),
            NODE if args[0][0] == 1 => Some(NodeAction::FlushDb(db)),
            NODE => Some(NodeAction::SwapDb(args[0][1], args[0][2])),
            _ => None,
        };
        let (mut buf, mut spans) = (vec![b'c'], vec![(0, 1)]);
        for arg in args {
            spans.push((buf.len() as u32, arg.len() as u32));
            buf.extend_from_slice(arg);
        }
        let worker = &mut self.workers[at.0];
        let conn = &mut self.conns[at.0][at.1];
        let header = Header {
            conn: ConnId {
                slot: at.1 as u32,
                generation: 0,
            },
            client: at.1 as u64,
            seq: conn.submitted,
            command,
            db,
            resp3: false,
            no_touch: false,
            quiet: false,
            door: rufous_kernel::batch::Door::default(),
            key: 1,
            hash: if keys > 0 {
                worker.shard.key(&args[0]).hash
            } else {
                0
            },
            strict_in: None,
        };
        let mut out = Output::default();
        let args_of = Args::new(&buf, &spans, &mut []);
        let submitted = match (action, keys) {
            (Some(action), _) => worker.submit_node(NOW, &header, action, args_of, &mut out),
            (None, 1) => {
                let owner = worker.placement().owner(&args[0]);
                worker.submit_one(NOW, &header, owner, args_of, &mut out)
            }
            (None, _) => {
                let keys: Vec<(u8, u32)> = (1..=keys as u32).map(|arg| (db, arg)).collect();
                worker.submit_many(NOW, &header, &keys, args_of, &mut out)
            }
        };
        conn.submitted += 1;
        conn.replies
            .push((command, (submitted == Submitted::Done).then_some(out.bytes)));
        conn.barrier |= submitted == Submitted::Barrier;
    }

    fn take_outcomes(&mut self, w: usize) {
        while let Some(outcome) = self.workers[w].next_outcome() {
            let Outcome::Replies(batch) = outcome else {
                unreachable!("there is no log here, and no command waits");
            };
            for request in batch.requests.iter().filter(|r| !r.reply.is_later()) {
                let (header, range) = (request.header, request.reply);
                let conn = &mut self.conns[w][header.conn.index()];
                let reply = &mut conn.replies[header.seq as usize].1;
                assert!(reply.is_none(), "a second reply");
                *reply = Some(batch.replies.bytes[range.start.0..range.end.0].to_vec());
                conn.barrier &= conn.waiting() > 0;
            }
            self.workers[w].recycle(batch);
        }
    }

    /// Ends a step of a worker: what is granted runs, messages leave.
    fn finish_step(&mut self, w: usize) {
        self.workers[w].settle(NOW);
        self.take_outcomes(w);
        let wires = &mut self.wires[w];
        self.workers[w].take_messages(|to, message| wires[to.index()].push_back(message));
    }

    /// Delivers the first message of a wire drawn by lot. False where none is under way.
    fn deliver(&mut self) -> bool {
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
            self.workers[to].on_message(NOW, WorkerId(from as u16), message);
            self.finish_step(to);
        }
        true
    }

    fn run_to_quiet(&mut self) {
        while self.deliver() {}
        for (worker, conns) in self.workers.iter().zip(&self.conns) {
            assert_eq!(worker.waiting(), 0, "a lock or a command is left over");
            assert!(
                conns.iter().all(|c| c.waiting() == 0 && !c.barrier),
                "no reply came"
            );
            worker.shard.check();
        }
    }

    /// A connection that may submit, drawn by lot.
    fn ready(&mut self) -> Option<(usize, usize)> {
        let at = (self.draw(self.workers.len()), 0);
        let at = (at.0, self.draw(self.conns[at.0].len()));
        (!self.conns[at.0][at.1].barrier).then_some(at)
    }

    /// Rounds of submissions, of which several may fall into one step, and deliveries.
    fn play(&mut self, rounds: usize, mut submit: impl FnMut(&mut World, (usize, usize))) {
        for _ in 0..rounds {
            if self.draw(4) > 0 && self.deliver() {
                continue;
            }
            if let Some(at) = self.ready() {
                submit(self, at);
                if self.draw(2) == 0 {
                    self.finish_step(at.0);
                }
            }
        }
        (0..self.workers.len()).for_each(|w| self.finish_step(w));
        self.run_to_quiet();
    }

    fn replies(&self, command: u16) -> impl Iterator<Item = Vec<i64>> + '_ {
        let all = self.conns.iter().flatten().flat_map(|c| &c.replies);
        all.filter(move |r| r.0 == command).map(|(_, reply)| {
            let bytes = reply.as_deref().unwrap_or_default();
            bytes.chunks(8).map(number).collect()
        })
    }

    /// Whether the owner of a key has it, and nobody else.
    fn value(&mut self, db: usize, key: &[u8]) -> i64 {
        let owner = self.workers[0].placement().owner(key).index();
        for (w, worker) in self.workers.iter_mut().enumerate() {
            let name = worker.shard.key(key);
            assert!(
                w == owner || !worker.shard.contains(db, name, NOW),
                "at a stranger's"
            );
        }
        read(&mut self.workers[owner].shard, db, key)
    }
}

fn names() -> Vec<Vec<u8>> {
    (0..KEYS)
        .map(|i| format!("account:{i}").into_bytes())
        .collect()
}

/// Two different accounts and an amount.
fn transfer(world: &mut World) -> Vec<Vec<u8>> {
    let names = names();
    let from = world.draw(KEYS);
    let to = (from + 1 + world.draw(KEYS - 1)) % KEYS;
    let amount = world.draw(10) as i64;
    vec![
        names[from].clone(),
        names[to].clone(),
        amount.to_le_bytes().to_vec(),
    ]
}

#[test]
fn transfers_keep_the_total() {
    let mut seen = 0;
    for seed in 0..60 {
        let workers = 2 + seed as usize % 3;
        let mut world = World::new(workers, 3, seed);
        world.submit((0, 0), FILL, 0, &names(), KEYS);
        world.finish_step(0);
        world.run_to_quiet();
        world.play(2000, |world, at| match world.draw(4) {
            0 => world.submit(at, READ, 0, &names(), KEYS),
            1 => {
                let key = world.draw(KEYS);
                world.submit(at, READ, 0, &names()[key..=key], 1);
            }
            _ => {
                let args = transfer(world);
                world.submit(at, TRANSFER, 0, &args, 2);
            }
        });
        let total = START * KEYS as i64;
        for values in world.replies(READ).filter(|values| values.len() == KEYS) {
            assert_eq!(values.iter().sum::<i64>(), total, "seed {seed}: {values:?}");
            seen += 1;
        }
        let sum: i64 = names().iter().map(|name| world.value(0, name)).sum();
        assert_eq!(sum, total, "seed {seed}");
    }
    assert!(seen > 1000, "{seen} reads of everything");
}

#[test]
fn nothing_gets_between_the_reads_and_the_writes_of_a_transfer() {
    for seed in 0..60 {
        let mut world = World::new(2 + seed as usize % 3, 3, seed);
        let mut deposits = 0;
        world.play(2000, |world, at| {
            let args = transfer(world);
            if world.draw(2) == 0 {
                world.submit(at, TRANSFER, 0, &args, 2);
            } else {
                deposits += number(&args[2]);
                world.submit(at, ADD, 0, &args[1..], 1);
            }
        });
        let sum: i64 = names().iter().map(|name| world.value(0, name)).sum();
        assert_eq!(sum, deposits, "seed {seed}");
    }
}

#[test]
fn whole_databases_change_at_one_time() {
    let (mut full, mut empty) = (0, 0);
    for seed in 0..60 {
        let mut world = World::new(2 + seed as usize % 3, 3, seed);
        world.play(2000, |world, at| match world.draw(8) {
            0..3 => {
                let db = world.draw(2) as u8;
                world.submit(at, READ, db, &names(), KEYS);
            }
            n @ 3..6 => {
                let (db, command) = (world.draw(2) as u8, if n == 5 { CLEAR } else { FILL });
                world.submit(at, command, db, &names(), KEYS);
            }
            6 => {
                let kind = world.draw(3) as u8;
                let db = world.draw(2) as u8;
                world.submit(at, NODE, db, &[vec![kind, 0, 1]], 0);
            }
            _ => {
                let args = transfer(world);
                world.submit(at, TRANSFER, 2, &args, 2);
            }
        });
        // All keys of a database are there or none is; a flush between two
        // parts of a read would show.
        for values in world.replies(READ) {
            match values.iter().sum::<i64>() {
                0 => empty += 1,
                sum => {
                    assert_eq!(sum, START * KEYS as i64, "seed {seed}: {values:?}");
                    full += 1;
                }
            }
        }
    }
    assert!(full > 500 && empty > 500, "{full} full, {empty} empty");
}

#[test]
fn a_connection_sees_its_own_commands_in_order() {
    for seed in 0..60 {
        let mut world = World::new(2 + seed as usize % 3, 2, seed);
        let mut sent = Vec::new();
        // Every connection counts up a key of its own, while others hold that
        // key now and then, among many that all want.
        world.play(2000, |world, at| {
            let own = (at.0 * 2 + at.1) % KEYS;
            match world.draw(6) {
                0 => world.submit(at, READ, 0, &names(), KEYS),
                1 => world.submit(at, NODE, 1, &[vec![1]], 0),
                _ => {
                    let one = 1i64.to_le_bytes().to_vec();
                    world.submit(at, ADD, 0, &[names()[own].clone(), one], 1);
                    sent.push(own);
                }
            }
        });
        // Replies to its own counts, and what its reads of everything show.
        for (index, conn) in world.conns.iter().flatten().enumerate() {
            let mut count = 0;
            for (command, reply) in &conn.replies {
                count += i64::from(*command == ADD);
                let reply = reply.as_deref().unwrap_or_default();
                let own = if *command == READ { index * 8 } else { 0 };
                if *command != NODE {
                    assert_eq!(number(&reply[own..]), count, "seed {seed}, {index}");
                }
            }
        }
        for (index, name) in names().iter().enumerate() {
            let count = sent.iter().filter(|own| **own == index).count() as i64;
            assert_eq!(world.value(0, name), count, "seed {seed}");
        }
    }
}

#[test]
fn large_values_are_not_kept_when_they_are_gone() {
    let mut world = World::new(3, 1, 1);
    for _ in 0..20 {
        let zero = 0i64.to_le_bytes().to_vec();
        for name in names() {
            // Zero is among the numbers that make a large value.
            world.submit((0, 0), ADD, 0, &[name, zero.clone()], 1);
        }
        world.finish_step(0);
        world.run_to_quiet();
        world.submit((0, 0), CLEAR, 0, &names(), KEYS);
        world.finish_step(0);
        world.run_to_quiet();
        for worker in &mut world.workers {
            assert_eq!(worker.shard.memory().keys, 0);
            drop(worker.shard.take_garbage());
        }
        let kept = LARGE.with_borrow(|all| all.iter().filter(|v| v.strong_count() > 0).count());
        assert_eq!(kept, 0, "large values are still referred to");
    }
}
