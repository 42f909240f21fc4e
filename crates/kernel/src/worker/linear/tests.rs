//! Workers of two nodes, driven by hand: the test carries their letters.

mod losses;
mod reads;
mod shared;
mod starting;
mod stops;

use super::again::{AGAIN_LAST_US, AGAIN_US};
use super::*;
use crate::batch::Door;
use crate::body::{self, At, Deed};
use crate::program::{Context, Program};
use crate::shard::{ExpirySetting, NewValue};
use crate::worker::chains::tests::{at, mapping, settings};
use crate::worker::{Outcome, Submitted, Worker};
use crate::{Unwritable, placement::Placement};
use rufous_base::{Args, ConnId, Output, WorkerId};
use rufous_datatype::hash;
use rufous_datatype::key::{Deadline, Footprint, Held, Op, Set, Typed};

/// Its command 0 sets its first argument to its second; command 1 reads its first argument; command 2 moves its first
/// key to its second; command 3 does what command 0 does, and says that it sets a field of that name.
#[derive(Debug)]
struct Strings;

impl Program for Strings {
    fn run(command: u16, ctx: &mut Context<'_>, args: Args<'_>) -> bool {
        let key = ctx.key(args.get(1));
        if command == 0 || command == 3 {
            let value = NewValue::Copy(args.get(2));
            ctx.shard
                .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
            ctx.out.bytes.extend_from_slice(b"+OK\r\n");
        } else if command == 2 {
            let to = ctx.key(args.get(2));
            let moved = ctx.shard.rename((ctx.db, key), (ctx.db, to), ctx.now);
            let reply: &[u8] = if moved { b":1\r\n" } else { b":0\r\n" };
            ctx.out.bytes.extend_from_slice(reply);
        } else {
            let found = ctx.shard.contains(ctx.db, key, ctx.now);
            let reply: &[u8] = if found { b":1\r\n" } else { b":0\r\n" };
            ctx.out.bytes.extend_from_slice(reply);
        }
        true
    }

    fn find(name: &[u8]) -> Option<u16> {
        [&b"SET"[..], b"HAS", b"MOVE", b"MARK"]
            .iter()
            .position(|one| *one == name)
            .map(|id| id as u16)
    }

    fn touches(command: u16, args: &Args<'_>, _: Now) -> Option<Vec<(usize, Footprint)>> {
        let (field, value) = (args.get(2), args.get(2));
        let op = match command {
            0 => Op::Set(Set {
                value,
                deadline: Deadline::Clear,
                only: None,
                get: false,
            }),
            3 => Op::Typed(Typed::Hash(hash::Op::Set { field, value })),
            _ => return None,
        };
        Some(vec![(1, Held::new(op).footprint())])
    }

    fn is_write(command: u16) -> bool {
        command != 1
    }

    fn may_grow(_: u16) -> bool {
        false
    }

    fn refuse_growth(_: bool, _: &mut Output) {}

    fn refuse(_: u16, _: &str, _: bool, _: &mut Output) {}

    fn refuse_slot(why: &str, _: bool, out: &mut Output) {
        out.bytes.extend_from_slice(why.as_bytes());
    }

    fn refuse_write(_: Unwritable<'_>, _: bool, _: &mut Output) {}
}

/// Keys of two slots; the first slot is visited first.
const FIRST: &[u8] = b"b";
const LAST: &[u8] = b"a";

const AT: At = At {
    db: 0,
    resp3: false,
    quiet: false,
};

struct Pair {
    workers: [Worker<Strings>; 2],
    now: Now,
    /// Letters between the nodes that have not arrived.
    letters: Vec<(usize, Posted)>,
    /// The ends of transactions, and replies, of node 0.
    ended: Vec<Transacted>,
    replies: Vec<Vec<u8>>,
}

fn header(command: u16, key: &[u8]) -> Header {
    Header {
        conn: ConnId {
            slot: 1,
            generation: 1,
        },
        client: 1,
        seq: 1,
        command,
        db: 0,
        resp3: false,
        no_touch: false,
        quiet: false,
        door: Door::Plain,
        key: 1,
        hash: Shard::new(7).key(key).hash,
        strict_in: None,
    }
}

impl Pair {
    /// Node 0 has the first slot, node 1 the last one.
    fn new() -> Self {
        let mut pair = Self::unmapped();
        pair.map(1, &[(FIRST, &[0], None), (LAST, &[1], None)]);
        pair
    }

    fn unmapped() -> Self {
        assert!(slot_of(FIRST) < slot_of(LAST));
        let worker = |_| {
            let mut worker = Worker::new(WorkerId(0), Placement::new(1), 2, 7);
            worker.join_chains(settings());
            worker
        };
        Self {
            workers: [0, 1].map(worker),
            now: at(1),
            letters: Vec::new(),
            ended: Vec::new(),
            replies: Vec::new(),
        }
    }

    fn map(&mut self, epoch: u64, chains: &[(&[u8], &[u16], Option<u16>)]) {
        let mapping = mapping(epoch, chains);
        for (no, worker) in self.workers.iter_mut().enumerate() {
            worker.on_mapping(self.now, &mapping, Some(NodeNo(no as u16)));
        }
        self.turn();
    }

    /// Each worker ends some turns: what leaves at the end of one may arrive in the next.
    fn turn(&mut self) {
        (0..3).for_each(|_| self.turn_once());
    }

    fn turn_once(&mut self) {
        for (no, worker) in self.workers.iter_mut().enumerate() {
            let _again = worker.settle(self.now);
            worker.end_turn(self.now);
            while let Some(outcome) = worker.next_outcome() {
                match outcome {
                    Outcome::Transacted(ended) => self.ended.push(*ended),
                    Outcome::Replies(batch) => self.replies.push(batch.replies.to_vec()),
                    other => panic!("{other:?}"),
                }
            }
            self.letters
                .extend(worker.take_letters().into_iter().map(|one| (no, one)));
        }
    }

    /// The next letter arrives, if there is one.
    fn deliver(&mut self) -> bool {
        self.turn();
        if self.letters.is_empty() {
            return false;
        }
        let (from, Posted { to, letter }) = self.letters.remove(0);
        let bytes = letter.write();
        let letter = Letter::read(letter.from, letter.to, &bytes).expect("a letter");
        let to = usize::from(to.node.0);
        self.workers[to].on_letter(NodeNo(from as u16), letter);
        self.workers[to].settle_peers(self.now);
        self.turn();
        true
    }

    fn deliver_all(&mut self) {
        while self.deliver() {}
    }

    /// So much time passes.
    fn wait(&mut self, us: u64) {
        self.now.mono_us += us;
        for worker in &mut self.workers {
            worker.step_chains(self.now, |_| true);
        }
        self.turn();
    }

    /// A client of node 0 sets both keys, if a condition holds for the last one.
    fn begin(&mut self, condition: Option<Deed>) {
        self.begin_with((b"SET", b"1"), condition);
    }

    fn begin_with(&mut self, (command, value): (&[u8], &[u8]), condition: Option<Deed>) {
        let mut body = body::begin();
        for key in [FIRST, LAST] {
            let words = [command, command, key, value];
            let at = (slot_of(key), AT);
            body::put(&mut body, at, Deed::Run { key: 1 }, words.into_iter());
        }
        if let Some(deed) = condition {
            let at = (slot_of(LAST), AT);
            body::put(&mut body, at, deed, [LAST, b":0\r\n"].into_iter());
        }
        let keys = [(FIRST, true), (LAST, true)];
        let begun = self.workers[0].begin_transacting(Some(&header(0, FIRST)), keys, body);
        assert!(begun);
        self.turn();
    }

    /// A client of node 0 moves the first key to the last one, sets the first one, and reads both.
    fn begin_together(&mut self) {
        let mut body = body::begin();
        let last = slot_of(LAST);
        for key in [FIRST, LAST] {
            let words = [key, b"MOVE"];
            let at = (slot_of(key), AT);
            body::put(&mut body, at, Deed::Gather, words.into_iter());
        }
        let commands: [&[&[u8]]; 4] = [
            &[b"MOVE", b"move", FIRST, LAST],
            &[b"SET", b"set", FIRST, b"new"],
            &[b"HAS", b"has", FIRST],
            &[b"HAS", b"has", LAST],
        ];
        for words in commands {
            let words = words.iter().copied();
            body::put(&mut body, (last, AT), Deed::Join { key: 1 }, words);
        }
        let keys = [(FIRST, true), (LAST, true)];
        let begun = self.workers[0].begin_transacting(Some(&header(2, FIRST)), keys, body);
        assert!(begun);
        self.turn();
    }

    fn set(&mut self, node: usize, key: &[u8], value: &[u8]) {
        let shard = &mut self.workers[node].shard;
        let name = shard.key(key);
        let value = NewValue::Own(value.into());
        shard.set(0, name, value, ExpirySetting::Clear, self.now);
    }

    fn get(&mut self, node: usize, key: &[u8]) -> Option<Vec<u8>> {
        let shard = &mut self.workers[node].shard;
        let name = shard.key(key);
        let found = shard.get(0, name, self.now).ok().flatten();
        found.map(|value| value.bytes().to_vec())
    }

    fn has(&mut self, node: usize, key: &[u8]) -> bool {
        let shard = &mut self.workers[node].shard;
        let key = shard.key(key);
        shard.contains(0, key, self.now)
    }

    fn books(&self) -> usize {
        self.workers
            .iter()
            .map(|worker| worker.shard.books().count())
            .sum()
    }

    /// A client of node 0 reads a key there.
    fn read(&mut self, key: &[u8]) -> Submitted {
        let bytes = [b"HAS", key].concat();
        let spans = [(0, 3), (3, key.len() as u32)];
        let args = Args::new(&bytes, &spans, &mut []);
        let mut out = Output::default();
        let own = WorkerId(0);
        let header = header(1, key);
        self.workers[0].submit_one(self.now, &header, own, args, &mut out)
    }
}

#[test]
fn both_nodes_execute_it_and_forget_it() {
    let mut pair = Pair::new();
    pair.begin(None);
    assert_eq!(pair.books(), 1, "the first slot has prepared it");
    assert!(!pair.has(0, FIRST) && !pair.has(1, LAST));
    assert!(pair.deliver());
    assert!(!pair.has(0, FIRST) && pair.has(1, LAST));
    assert!(pair.ended.is_empty());
    assert!(pair.deliver());
    assert!(pair.has(0, FIRST));
    let [ended] = &pair.ended[..] else {
        panic!("{:?}", pair.ended);
    };
    assert_eq!(ended.is_committed, Some(true));
    let told = body::told(&ended.told).expect("replies");
    let told: Vec<_> = told
        .iter()
        .map(|one| (one.slot, &one.replies[..]))
        .collect();
    let ok = [&b"+OK\r\n"[..]];
    assert_eq!(told, [(slot_of(FIRST), &ok[..]), (slot_of(LAST), &ok)]);
    pair.deliver_all();
    assert_eq!(pair.books(), 0);
    let figures = pair.workers[0].linear_figures();
    assert_eq!(
        (figures.begun, figures.committed, figures.waiting),
        (1, 1, 0)
    );
}

/// Also where letters are lost and sent again, at any place.
#[test]
fn commands_are_executed_together_at_the_last_slot_and_change_both() {
    for lost in 0..8 {
        let mut pair = Pair::new();
        pair.set(0, FIRST, b"moved");
        pair.begin_together();
        assert!(pair.workers[0].linear.takes(FIRST));
        for _ in 0..lost {
            pair.deliver();
        }
        if !pair.letters.is_empty() {
            pair.letters.remove(0);
        }
        for _ in 0..8 {
            pair.deliver_all();
            pair.wait(1_000_000);
        }
        assert_eq!(pair.get(1, LAST).as_deref(), Some(&b"moved"[..]));
        assert_eq!(pair.get(0, FIRST).as_deref(), Some(&b"new"[..]));
        let [ended] = &pair.ended[..] else {
            panic!("{:?}", pair.ended);
        };
        let told = body::told(&ended.told).expect("replies");
        let last = told.last().expect("the last slot");
        let replies: Vec<_> = last.replies.iter().map(|reply| reply[1]).collect();
        assert_eq!((last.slot, &replies[..]), (slot_of(LAST), &b"1O11"[..]));
        assert!(told.iter().all(|one| one.changes.is_empty()));
        assert_eq!(pair.books(), 0, "{lost}");
    }
}

#[test]
fn values_that_are_too_long_to_travel_keep_all_from_executing() {
    let mut pair = Pair::new();
    pair.set(0, FIRST, &[b'v'; 5 << 20]);
    pair.begin_together();
    pair.deliver_all();
    let [ended] = &pair.ended[..] else {
        panic!("{:?}", pair.ended);
    };
    assert_eq!(ended.is_committed, Some(false));
    assert!(ended.told.starts_with(b"ERR the values of commands"));
    assert!(pair.has(0, FIRST) && !pair.has(1, LAST));
    pair.deliver_all();
    assert_eq!(pair.books(), 0);
}

#[test]
fn a_condition_at_the_last_slot_keeps_the_first_from_executing() {
    let mut pair = Pair::new();
    let last = pair.workers[1].shard.key(LAST);
    let value = NewValue::Own(b"0".to_vec());
    let clear = ExpirySetting::Clear;
    pair.workers[1].shard.set(0, last, value, clear, at(1));
    pair.begin(Some(Deed::Missing));
    pair.deliver_all();
    let [ended] = &pair.ended[..] else {
        panic!("{:?}", pair.ended);
    };
    assert_eq!(
        (ended.is_committed, &ended.told[..]),
        (Some(false), &b":0\r\n"[..])
    );
    assert!(!pair.has(0, FIRST));
    assert_eq!(pair.books(), 0);
    let seen = pair.workers[0].linear_figures();
    assert_eq!((seen.begun, seen.slots, seen.aborted), (1, 2, 1));
    assert_eq!((seen.refused, seen.clashed, seen.committed), (0, 0, 0));
}

#[test]
fn requests_for_its_keys_wait_until_it_is_over() {
    let mut pair = Pair::new();
    assert_eq!(pair.read(FIRST), Submitted::Done);
    pair.begin(None);
    assert_eq!(pair.read(FIRST), Submitted::Barrier);
    assert_eq!(pair.read(b"other"), Submitted::Done);
    assert!(pair.deliver() && pair.replies.is_empty());
    assert!(pair.deliver());
    assert_eq!(pair.replies, [b":1\r\n".to_vec()]);
    assert_eq!(pair.read(FIRST), Submitted::Done);
}

#[test]
fn what_was_lost_is_sent_again() {
    let mut pair = Pair::new();
    let mut lost = 0;
    pair.begin(None);
    for _ in 0..40 {
        // Each letter is lost once.
        if !pair.letters.is_empty() && lost < 6 {
            lost += 1;
            pair.letters.remove(0);
        }
        pair.wait(2 * AGAIN_US);
        pair.wait(2 * AGAIN_US);
        pair.deliver();
    }
    pair.deliver_all();
    assert_eq!(lost, 6);
    assert_eq!(pair.ended.len(), 1);
    assert!(pair.has(0, FIRST) && pair.has(1, LAST));
    assert_eq!(pair.books(), 0);
}

#[test]
fn letters_of_an_earlier_chain_have_no_effect() {
    let mut pair = Pair::new();
    pair.begin(None);
    let chains: [(&[u8], &[u16], Option<u16>); 2] = [(FIRST, &[0], None), (LAST, &[1], None)];
    let early = std::mem::take(&mut pair.letters);
    assert_eq!(early.len(), 1);
    pair.map(2, &chains);
    // The head of the first slot has begun again and sent it; that is lost.
    pair.letters = early;
    assert!(pair.deliver());
    assert!(!pair.has(1, LAST), "it was of an earlier chain");
    for _ in 0..3 {
        pair.wait(2 * AGAIN_US);
    }
    pair.deliver_all();
    assert!(pair.has(1, LAST) && pair.has(0, FIRST));
    assert_eq!(pair.ended.len(), 1);
}

/// With its book alone.
#[test]
fn another_head_goes_on_where_the_one_before_has_ended() {
    let mut pair = Pair::new();
    pair.begin(None);
    let books = pair.workers[0].shard.books();
    let books: Vec<_> = books
        .map(|(slot, id, entry)| (slot, id, entry.to_vec()))
        .collect();
    assert_eq!(books.len(), 1);
    let mut pair = Pair::unmapped();
    for (slot, id, entry) in &books {
        pair.workers[1]
            .shard
            .set_book(*slot, id, (entry, b""), at(1));
    }
    pair.map(1, &[(FIRST, &[1], None), (LAST, &[1], None)]);
    pair.wait(2 * AGAIN_US);
    pair.deliver_all();
    assert!(pair.has(1, LAST) && pair.has(1, FIRST));
    assert_eq!(pair.books(), 0);
}

#[test]
fn a_copy_leaves_reads_to_the_head_while_a_book_is_open() {
    let mut linear = Linear::default();
    let mut shard = Shard::new(7);
    let slot = slot_of(FIRST);
    shard.set_book(slot, &[1; 18], (b"entry", b""), at(1));
    linear.on_copied(slot, false, &shard);
    assert!(linear.takes(FIRST) && !linear.takes(LAST));
    shard.remove_book(slot, &[1; 18], at(1));
    linear.on_copied(slot, false, &shard);
    assert!(!linear.takes(FIRST));
}

#[test]
fn a_node_that_ends_gives_up_what_it_has_begun() {
    let mut pair = Pair::new();
    pair.begin(None);
    assert_eq!(pair.workers[0].give_up_others(pair.now), 1);
    pair.turn();
    assert_eq!(pair.ended[0].is_committed, None);
}
