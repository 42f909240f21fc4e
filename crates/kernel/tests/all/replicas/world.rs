//! Workers with replicated keys, their wires, their disk and their clocks, all
//! driven by hand.

use super::disk::carry_out;
use rufous_base::disk::{DiskRequest, FileName};
use rufous_base::rng::Rng;
use rufous_base::{Args, ConnId, Now, Output, WorkerId};
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::Object;
use rufous_datatype::set::{Op, Set};
use rufous_kernel::durable::keeper::{Purpose, Schedule};
use rufous_kernel::durable::log::{Bounds, Fsync};
use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_kernel::multi::NodeAction;
use rufous_kernel::placement::Placement;
use rufous_kernel::shard::{ExpirySetting, NewValue};
use rufous_kernel::worker::DurableSettings;
use rufous_kernel::{Context, Header, Message, Outcome, Program, Submitted, Unwritable, Worker};
use rufous_store::shard::strings;
use std::collections::{BTreeMap, VecDeque};

const SEED: u64 = 7;

/// The values of keys, each followed by a bar; nothing where there is none.
pub(crate) const GET: u16 = 0;
/// The first argument, to all keys after it.
pub(crate) const SET: u16 = 1;
pub(crate) const DEL: u16 = 2;
/// Adds the first argument to the key after it.
pub(crate) const ADD: u16 = 3;
pub(crate) const NODE: u16 = 4;
pub(crate) const TABLE: u16 = 5;
/// Appends, which replicas cannot do alone.
pub(crate) const APPEND: u16 = 6;
/// Adds the first argument to the set after it, or removes it.
pub(crate) const SADD: u16 = 7;
pub(crate) const SREM: u16 = 8;
/// Adds the first argument to the sketch after it.
pub(crate) const PFADD: u16 = 9;
const COMMANDS: usize = 10;

pub(crate) struct TestProgram;

impl Program for TestProgram {
    fn run(command: u16, ctx: &mut Context<'_>, args: Args<'_>) -> bool {
        let (db, now) = (ctx.db, ctx.now);
        let shard = &mut *ctx.shard;
        match command {
            GET => {
                for name in args.iter_from(2) {
                    let key = shard.key(name);
                    if let Ok(Some(value)) = shard.get(db, key, now) {
                        ctx.out.bytes.extend_from_slice(value.bytes());
                    }
                    ctx.out.bytes.push(b'|');
                }
            }
            SET => {
                for name in args.iter_from(2) {
                    let key = shard.key(name);
                    let value = NewValue::Copy(args.get(1));
                    shard.set(db, key, value, ExpirySetting::Clear, now);
                }
            }
            DEL => {
                for name in args.iter_from(2) {
                    let key = shard.key(name);
                    shard.remove(db, key, now);
                }
            }
            ADD => {
                let key = shard.key(args.get(2));
                let by = std::str::from_utf8(args.get(1)).unwrap().parse().unwrap();
                let sum =
                    strings::increment(&mut shard.at(db, key, now), by).expect("a lattice key");
                let sum = sum.unwrap_or(-1).to_string();
                ctx.out.bytes.extend_from_slice(sum.as_bytes());
            }
            SADD | SREM => {
                let (key, member) = (shard.key(args.get(2)), args.get(1));
                let op = match command {
                    SADD => Op::Add { member },
                    _ => Op::Remove { member },
                };
                let done = shard.update::<Set, _>(db, key, now, |set| set.apply(&op));
                done.expect("nothing but sets is there");
            }
            PFADD => {
                let (key, element) = (shard.key(args.get(2)), args.get(1));
                let done =
                    strings::add_to_sketch(&mut shard.at(db, key, now), [element].into_iter());
                done.expect("a lattice key");
            }
            APPEND => {
                let key = shard.key(args.get(2));
                shard.append(db, key, args.get(1), now);
            }
            NODE => {
                for db in 0..2 {
                    shard.flush(db);
                }
            }
            _ => {}
        }
        true
    }

    fn is_write(command: u16) -> bool {
        command != GET
    }

    fn may_grow(command: u16) -> bool {
        command == SET || command == ADD
    }

    fn refuse_slot(why: &str, _resp3: bool, out: &mut Output) {
        out.bytes
            .extend_from_slice(format!("-{why}\r\n").as_bytes());
    }

    fn refuse_growth(_: bool, _: &mut Output) {
        unreachable!("there is no limit");
    }

    fn refuse(_: u16, why: &str, _: bool, out: &mut Output) {
        out.bytes.extend_from_slice(b"refused: ");
        out.bytes.extend_from_slice(why.as_bytes());
    }

    fn writes_lattice(command: u16, args: &Args<'_>, placement: &Placement) -> bool {
        let mut names = args.iter_from(2);
        command != GET && names.any(|name| placement.lattice(name).is_some())
    }

    fn refuse_write(_: Unwritable<'_>, _: bool, _: &mut Output) {
        unreachable!("the disk is fine");
    }
}

type Replies = BTreeMap<u32, Option<Vec<u8>>>;

pub(crate) struct World {
    pub(crate) workers: Vec<Worker<TestProgram>>,
    wires: Vec<Vec<VecDeque<Message>>>,
    disks: Vec<VecDeque<DiskRequest>>,
    files: BTreeMap<FileName, Vec<u8>>,
    replies: Replies,
    asked: u32,
    /// Now and then a turn takes all messages that are there.
    together: bool,
    /// The most that starts have held back, in bytes.
    pub(crate) most_held: usize,
    /// Its disk does nothing.
    pub(crate) stalled: Option<usize>,
    pub(crate) now: Now,
    pub(crate) rng: Rng,
}

impl World {
    pub(crate) fn new(workers: usize, seed: u64) -> Self {
        let mut world = Self {
            workers: Vec::new(),
            wires: Vec::new(),
            disks: Vec::new(),
            files: BTreeMap::new(),
            replies: Replies::new(),
            asked: 0,
            together: false,
            most_held: 0,
            stalled: None,
            now: Now {
                mono_us: 1_000_000,
                unix_us: 1_700_000_000_000_000,
            },
            rng: Rng::new(seed),
        };
        world.make(workers);
        world
    }

    fn make(&mut self, workers: usize) {
        let ids = || (0..workers).map(|w| WorkerId(w as u16));
        let worker = |id| Worker::new(id, Placement::new(workers), COMMANDS, SEED);
        self.workers = ids().map(worker).collect();
        self.wires = ids()
            .map(|_| ids().map(|_| VecDeque::new()).collect())
            .collect();
        self.disks = ids().map(|_| VecDeque::new()).collect();
        self.replies.clear();
    }

    /// Ends this run, in whatever state it is, and starts from what is on disk.
    pub(crate) fn restart(&mut self, workers: usize) {
        self.make(workers);
        for worker in &mut self.workers {
            worker.begin(DurableSettings {
                log: true,
                fsync: Fsync::EverySec,
                bounds: Bounds::default(),
                segment_bytes: 1 << 20,
                schedule: Schedule::default(),
                stop_on_save_error: false,
            });
        }
        // From here on turns go on until it serves.
        self.together = true;
        for _ in 0..10_000 {
            let held = self.workers.iter().map(|w| w.memory().held_bytes).sum();
            self.most_held = self.most_held.max(held);
            if self.workers.iter().all(Worker::is_serving) {
                self.together = false;
                assert_eq!(held, 0, "what a start held is dropped at its end");
                return;
            }
            (0..workers).for_each(|w| self.end_turn(w));
            self.wait(1_000);
            while self.deliver() {}
            // Where there were other workers, all is saved anew first.
            for worker in &mut self.workers {
                worker.snapshot_slice(1 << 20);
            }
        }
        panic!("it does not start");
    }

    pub(crate) fn draw(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    pub(crate) fn wait(&mut self, us: u64) {
        self.now.mono_us += us;
        self.now.unix_us += us;
    }

    pub(crate) fn keyspace(prefix: &str, threads: u16) -> Keyspace {
        Keyspace {
            regime: Regime::Lattice,
            threads,
            ..Keyspace::new(prefix.trim_end_matches(':'), prefix.as_bytes())
        }
    }

    /// Has all workers take over a table; the reply.
    pub(crate) fn change(&mut self, at: usize, table: Keyspaces) -> Vec<u8> {
        let seq = self.begin_change(at, table);
        while self.deliver() {}
        self.reply(seq)
    }

    /// Likewise, but nothing is delivered yet; the number of the request.
    pub(crate) fn begin_change(&mut self, at: usize, table: Keyspaces) -> u32 {
        let header = self.header(TABLE, 0, b"");
        let mut reply = Output::default();
        reply.bytes.extend_from_slice(b"OK");
        let mut out = Output::default();
        let submitted = self.workers[at].submit_keyspaces(&header, table, reply, &mut out);
        assert_eq!(submitted, Submitted::Barrier);
        self.end_turn(at);
        header.seq
    }

    /// Makes a lattice keyspace of this prefix.
    pub(crate) fn create(&mut self, prefix: &str, threads: u16) {
        let keyspace = Self::keyspace(prefix, threads);
        let table = self.workers[0].keyspaces().with(keyspace).unwrap();
        assert_eq!(self.change(0, table), b"OK");
    }

    fn header(&mut self, command: u16, db: u8, key: &[u8]) -> Header {
        let seq = self.asked;
        self.asked += 1;
        self.replies.insert(seq, None);
        Header {
            conn: ConnId {
                slot: 0,
                generation: 0,
            },
            client: 0,
            seq,
            command,
            db,
            resp3: false,
            no_touch: false,
            quiet: false,
            door: rufous_kernel::batch::Door::default(),
            key: 2,
            hash: self.workers[0].shard.key(key).hash,
            strict_in: None,
        }
    }

    /// Submits a request at a worker, which it looks at beforehand as a front does; its number.
    pub(crate) fn submit(&mut self, at: usize, command: u16, value: &[u8], keys: &[&[u8]]) -> u32 {
        let worker = &self.workers[at];
        let is_strict = |key: &&[u8]| worker.placement().lattice(key).is_none();
        let are_strict = !keys.is_empty() && keys.iter().all(is_strict);
        let strict_in = are_strict.then(|| worker.table_mark());
        self.submit_looked_at(at, command, (value, keys), strict_in)
    }

    /// Submits a request whose keys were found to be strict in a table, if they were; its number.
    pub(crate) fn submit_looked_at(
        &mut self,
        at: usize,
        command: u16,
        (value, keys): (&[u8], &[&[u8]]),
        strict_in: Option<u16>,
    ) -> u32 {
        let header = Header {
            strict_in,
            ..self.header(command, 0, keys.first().unwrap_or(&&b""[..]))
        };
        let (mut buf, mut spans) = (vec![b'c'], vec![(0, 1)]);
        for arg in [value].iter().chain(keys) {
            spans.push((buf.len() as u32, arg.len() as u32));
            buf.extend_from_slice(arg);
        }
        let args = Args::new(&buf, &spans, &mut []);
        let (worker, mut out, now) = (&mut self.workers[at], Output::default(), self.now);
        let submitted = match keys {
            [] => worker.submit_node(now, &header, NodeAction::FlushAll, args, &mut out),
            [key] => {
                let owner = worker.placement().owner(key);
                worker.submit_one(now, &header, owner, args, &mut out)
            }
            _ => {
                let keys: Vec<_> = (2..2 + keys.len() as u32).map(|arg| (0, arg)).collect();
                worker.submit_many(now, &header, &keys, args, &mut out)
            }
        };
        if submitted == Submitted::Done {
            self.replies.insert(header.seq, Some(out.bytes));
        }
        header.seq
    }

    pub(crate) fn is_answered(&self, seq: u32) -> bool {
        self.replies[&seq].is_some()
    }

    pub(crate) fn reply(&self, seq: u32) -> Vec<u8> {
        self.replies[&seq].clone().expect("it was answered")
    }

    fn take_outcomes(&mut self, w: usize) {
        while let Some(outcome) = self.workers[w].next_outcome() {
            let Outcome::Replies(batch) = outcome else {
                unreachable!("the disk is fine, and no command waits");
            };
            for request in batch.requests.iter().filter(|r| !r.reply.is_later()) {
                let range = request.reply;
                let reply = self.replies.get_mut(&request.header.seq);
                let reply = reply.expect("a request");
                assert!(reply.is_none(), "a second reply");
                *reply = Some(batch.replies.bytes[range.start.0..range.end.0].to_vec());
            }
            self.workers[w].recycle(batch);
        }
    }

    /// Ends a turn of a worker: what it says and asks for leaves.
    pub(crate) fn end_turn(&mut self, w: usize) {
        self.workers[w].settle(self.now);
        self.take_outcomes(w);
        let worker = &mut self.workers[w];
        worker.end_turn(self.now);
        let mut requests = Vec::new();
        worker.take_disk_requests(&mut requests);
        self.disks[w].extend(requests);
        let wires = &mut self.wires[w];
        worker.take_messages(|to, message| wires[to.index()].push_back(message));
    }

    /// Delivers the first message of a wire, or an answer of a disk, drawn by
    /// lot. False where nothing is under way.
    pub(crate) fn deliver(&mut self) -> bool {
        let n = self.workers.len();
        let wires = (0..n * n).map(|i| (i / n, i % n));
        let mut busy: Vec<_> = wires
            .filter(|&(from, to)| !self.wires[from][to].is_empty())
            .collect();
        let disks = (0..n).filter(|&w| !self.disks[w].is_empty() && self.stalled != Some(w));
        busy.extend(disks.map(|w| (n, w)));
        if busy.is_empty() {
            return false;
        }
        let (from, to) = busy[self.draw(busy.len())];
        if from == n {
            if let Some(request) = self.disks[to].pop_front() {
                let done = carry_out(&mut self.files, request);
                self.workers[to].on_disk(self.now, done);
            }
        } else if let Some(message) = self.wires[from][to].pop_front() {
            let from = WorkerId(from as u16);
            self.workers[to].on_message(self.now, from, message);
        }
        if self.together && self.draw(3) == 0 {
            for from in 0..n {
                let messages = std::mem::take(&mut self.wires[from][to]);
                for message in messages {
                    let from = WorkerId(from as u16);
                    self.workers[to].on_message(self.now, from, message);
                }
            }
        }
        self.end_turn(to);
        true
    }

    /// Time passes until nobody has anything to say.
    pub(crate) fn run_to_quiet(&mut self) {
        for _ in 0..1000 {
            (0..self.workers.len()).for_each(|w| self.end_turn(w));
            while self.deliver() {}
            let wakes = self.workers.iter().filter_map(Worker::durability_wake_us);
            // A log without anything to do wakes nobody; reports go on only
            // while somebody waits for them.
            let Some(at) = wakes.min() else {
                return self.check();
            };
            self.wait(at.saturating_sub(self.now.mono_us).max(1));
        }
        panic!("it does not come to rest");
    }

    fn check(&self) {
        for worker in &self.workers {
            assert_eq!(worker.waiting(), 0, "a lock or a command is left over");
            assert_eq!(worker.replication_figures().held_back, 0);
            worker.shard.check();
        }
        assert!(self.replies.values().all(Option::is_some), "no reply came");
    }

    /// A save of the whole node.
    pub(crate) fn save(&mut self) {
        self.workers[0]
            .begin_save(self.now, Purpose::Snapshot)
            .expect("nothing is in the way");
        for _ in 0..10_000 {
            (0..self.workers.len()).for_each(|w| self.end_turn(w));
            while self.deliver() {}
            let mut more = false;
            for worker in &mut self.workers {
                more |= worker.is_snapshotting();
                worker.snapshot_slice(1 << 20);
            }
            let saving = self.workers[0].keeper().is_some_and(|k| k.is_saving());
            if !more && !saving {
                return;
            }
        }
        panic!("the save does not end");
    }

    /// All that a worker knows of a key.
    pub(crate) fn state(&mut self, w: usize, key: &[u8]) -> Vec<u8> {
        let (now, shard) = (self.now, &mut self.workers[w].shard);
        let key = shard.key(key);
        let mut known: Option<Object> = None;
        shard.show_replica(0, key, now, &mut |tag, chunk| {
            let object = known.get_or_insert_with(|| tag.empty());
            object.extend(chunk, &Tuning::default()).expect("a chunk");
        });
        known.map_or(Vec::new(), |object| object.canonical())
    }

    /// What a read at each worker shows, which must be the same.
    pub(crate) fn read(&mut self, key: &[u8]) -> Vec<u8> {
        let workers = self.workers.len();
        let asked: Vec<_> = (0..workers)
            .map(|w| self.submit(w, GET, b"", &[key]))
            .collect();
        (0..workers).for_each(|w| self.end_turn(w));
        while self.deliver() {}
        let replies: Vec<_> = asked.into_iter().map(|seq| self.reply(seq)).collect();
        assert!(
            replies.iter().all(|reply| *reply == replies[0]),
            "{key:?}: {replies:?}"
        );
        replies[0].clone()
    }

    /// Whether all replicas of the keys are the same, and nobody else has any.
    pub(crate) fn assert_converged(&mut self, keys: &[Vec<u8>]) {
        for key in keys {
            let placement = self.workers[0].placement();
            let owners: Vec<_> = placement.owners(key).collect();
            let first = self.state(owners[0].index(), key);
            for w in 0..self.workers.len() {
                let state = self.state(w, key);
                match owners.contains(&WorkerId(w as u16)) {
                    true => assert_eq!(state, first, "{key:?} at {w}"),
                    false => assert!(state.is_empty(), "{key:?} at a stranger's"),
                }
            }
            self.read(key);
        }
    }
}
