//! Waits of two workers, driven by hand: the test executes requests and carries messages.

mod slots;

use super::super::out::Out;
use super::super::store::Store;
use super::*;
use crate::batch::Door;
use crate::multi::Gathered;
use crate::placement::Placement;
use crate::program::{Context, Program};
use crate::shard::{ExpirySetting, NewValue, Shard};
use crate::worker::Outcome;
use rufous_base::Args;

/// Takes a value, or waits.
const POP: u16 = 0;
/// Reads it.
const PEEK: u16 = 1;

struct Values;

impl Program for Values {
    fn run(_: u16, _: &mut Context<'_>, _: Args<'_>) -> bool {
        unreachable!("the test executes requests")
    }

    fn is_write(command: u16) -> bool {
        command == POP
    }

    fn may_grow(_: u16) -> bool {
        false
    }

    fn refuse_growth(_: bool, _: &mut Output) {}

    fn refuse(_: u16, _: &str, _: bool, _: &mut Output) {}

    fn refuse_slot(why: &str, _: bool, out: &mut Output) {
        out.bytes.extend_from_slice(why.as_bytes());
    }

    fn refuse_write(_: crate::Unwritable<'_>, _: bool, _: &mut Output) {}
}

/// A worker with values.
struct Rig {
    id: WorkerId,
    waits: Waits,
    shard: Shard,
    placement: Placement,
    out: Out,
}

fn at(mono_us: u64) -> Now {
    Now {
        mono_us,
        unix_us: mono_us,
    }
}

fn header(client: u32, command: u16) -> Header {
    Header {
        conn: ConnId {
            slot: client,
            generation: 0,
        },
        client: u64::from(client),
        seq: 1,
        command,
        db: 0,
        resp3: false,
        no_touch: false,
        quiet: false,
        door: Door::default(),
        key: 1,
        hash: 0,
        strict_in: None,
    }
}

fn request(client: u32, command: u16, keys: &[&str]) -> Box<Batch> {
    let (mut bytes, mut spans) = (vec![b'c'], vec![(0, 1)]);
    for key in keys {
        spans.push((bytes.len() as u32, key.len() as u32));
        bytes.extend_from_slice(key.as_bytes());
    }
    let mut batch = Box::<Batch>::default();
    batch.push(header(client, command), Args::new(&bytes, &spans, &mut []));
    batch.replies.bytes.extend_from_slice(b"nil");
    batch
}

fn name(key: &str) -> KeyName {
    (0, key.as_bytes().into())
}

fn client_of(batch: &Batch) -> u32 {
    batch.requests[0].header.conn.slot
}

impl Rig {
    fn new(id: u16) -> Self {
        Self {
            id: WorkerId(id),
            waits: Waits::default(),
            shard: Shard::new(7),
            placement: Placement::new(2).seen_by(WorkerId(id)),
            out: Out::new(2),
        }
    }

    fn pair() -> [Self; 2] {
        [Self::new(0), Self::new(1)]
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Waits, &mut Store<'_>, &mut Out) -> R) -> R {
        let mut store = Store {
            id: self.id,
            shard: &mut self.shard,
            placement: &self.placement,
        };
        act(&mut self.waits, &mut store, &mut self.out)
    }

    /// A client of this worker found none of these keys, of this worker or any.
    fn wait(&mut self, client: u32, command: u16, keys: &[&str]) {
        let names = keys.iter().map(|key| name(key)).collect();
        self.wait_within(client, command, keys, Reach::Here(names));
    }

    fn wait_over(&mut self, client: u32, keys: &[&str], all: &[&str]) {
        let owned = |key: &&str| (self.placement.owner(key.as_bytes()), name(key));
        let all = all.iter().map(owned).collect();
        self.wait_within(client, POP, keys, Reach::Over(all));
    }

    fn wait_within(&mut self, client: u32, command: u16, keys: &[&str], reach: Reach) {
        let found = NoData {
            origin: self.id,
            batch: request(client, command, keys),
            wait: Wait {
                keys: 1..1 + keys.len(),
                timeout_us: Some(100),
            },
            reach,
        };
        self.with(|waits, store, out| {
            waits.on_no_data(at(0), found, store, out);
            while let Some((_, told)) = waits.next_told() {
                if let Told::Waits(note) = told {
                    waits.on_began(*note, out);
                }
            }
        });
        let told = self.out.next_outcome();
        assert!(matches!(told, Some(Outcome::Waits(h)) if h.conn.slot == client));
    }

    fn put(&mut self, key: &str) {
        let key = self.shard.key(key.as_bytes());
        let value = NewValue::Own(b"v".to_vec());
        self.shard.set(0, key, value, ExpirySetting::Clear, at(0));
    }

    fn take(&mut self, key: &str) {
        let key = self.shard.key(key.as_bytes());
        self.shard.remove(0, key, at(0));
    }

    fn next(&mut self) -> Option<Serve> {
        self.next_beside(&[])
    }

    fn next_beside(&mut self, held: &[&str]) -> Option<Serve> {
        let is_held = |key: &KeyName| held.iter().any(|h| name(h) == *key);
        self.with(|waits, store, _| waits.next::<Values>(at(0), is_held, store))
    }

    /// The waiter to serve here, and its client.
    fn next_here(&mut self) -> (WaiterId, Box<Batch>, u32) {
        match self.next() {
            Some(Serve::Here(id, batch)) => {
                let client = client_of(&batch);
                (id, batch, client)
            }
            other => panic!("no waiter is served here: {other:?}"),
        }
    }

    fn ran(&mut self, id: WaiterId, batch: Box<Batch>) {
        self.with(|waits, store, _| waits.on_ran::<Values>(id, batch, None, store));
    }

    fn end(&mut self, client: u32, how: WaitEnd) -> bool {
        let conn = header(client, POP).conn;
        let ended = self.with(|waits, store, out| waits.on_end(conn, how, store, out));
        ended.is_some()
    }

    /// The clients that were answered, and with what.
    fn answers(&mut self) -> Vec<(u32, Vec<u8>)> {
        let told = std::iter::from_fn(|| self.waits.next_told());
        let served = told.filter_map(|(_, told)| match told {
            Told::Served(batch) => Some((client_of(&batch), batch.replies.bytes.clone())),
            Told::Waits(_) => None,
        });
        served.collect()
    }
}

/// Delivers the messages between workers.
fn deliver(rigs: &mut [Rig; 2]) {
    for from in 0..2 {
        let mail: Vec<_> = rigs[from].out.mail.take().collect();
        let from = WorkerId(from as u16);
        for (to, message) in mail {
            rigs[to.index()].with(|waits, store, _| match message {
                Message::Await(arrival) => waits.on_arrival(from, *arrival, store),
                Message::Forget { conn, seq } => {
                    waits.on_forget(Client::new(from, conn), seq, store);
                }
                other => panic!("not a message about waits: {other:?}"),
            });
        }
    }
}

/// A key of each of two workers.
fn keys() -> [String; 2] {
    let placement = Placement::new(2);
    [0, 1].map(|worker| {
        let mut names = (0..).map(|i| format!("k{i}"));
        let is_of = |name: &String| placement.owner(name.as_bytes()).index() == worker;
        names.find(is_of).expect("there are enough names")
    })
}

#[test]
fn waiters_of_a_key_are_served_in_order_of_arrival_while_it_has_data() {
    let mut rig = Rig::new(0);
    for client in [5, 3, 4] {
        rig.wait(client, POP, &["x", "y"]);
    }
    assert!(rig.next().is_none(), "nothing was touched");
    rig.put("x");
    let (id, batch, client) = rig.next_here();
    assert_eq!(client, 5);
    rig.ran(id, batch);
    let (id, batch, client) = rig.next_here();
    assert_eq!(client, 3);
    rig.take("x");
    rig.ran(id, batch);
    assert!(rig.next().is_none(), "no data is left");
    let answered: Vec<_> = rig.answers().iter().map(|a| a.0).collect();
    assert_eq!(answered, [5, 3]);
    rig.put("y");
    let (id, batch, client) = rig.next_here();
    assert_eq!(client, 4);
    rig.ran(id, batch);
    assert_eq!(rig.shard.observers().awaited_keys(), 0);
}

#[test]
fn a_client_that_has_gone_is_given_nothing() {
    let mut rig = Rig::new(0);
    rig.wait(1, POP, &["x"]);
    rig.wait(2, POP, &["x"]);
    rig.put("x");
    assert!(rig.end(1, WaitEnd::Gone));
    let (_, _, client) = rig.next_here();
    assert_eq!(client, 2);
    assert_eq!(rig.answers(), [], "no reply for a client that has gone");
}

#[test]
fn a_client_that_has_gone_is_given_nothing_by_a_worker_that_does_not_know() {
    let mut rigs = Rig::pair();
    let [x, y] = keys();
    rigs[0].wait_over(1, &[&x, &y], &[&x, &y]);
    deliver(&mut rigs);
    rigs[1].put(&y);
    assert!(rigs[0].end(1, WaitEnd::Gone));
    assert!(rigs[1].next().is_none(), "the claim is taken");
    assert_eq!(rigs[1].shard.observers().awaited_keys(), 1);
    deliver(&mut rigs);
    assert_eq!(rigs.map(|rig| rig.shard.observers().awaited_keys()), [0, 0]);
}

#[test]
fn keys_of_several_workers_serve_a_wait_once() {
    let mut rigs = Rig::pair();
    let [x, y] = keys();
    rigs[0].wait_over(1, &[&x, &y], &[&x, &y]);
    deliver(&mut rigs);
    rigs[0].put(&x);
    rigs[1].put(&y);
    let (id, batch, _) = rigs[1].next_here();
    assert!(rigs[0].next().is_none(), "the other worker serves it");
    rigs[1].ran(id, batch);
    assert_eq!(rigs[1].answers().len(), 1);
    let answered = header(1, POP);
    rigs[0].with(|waits, store, out| waits.on_answered(&answered, store, out));
    assert!(rigs[0].waits.clients().is_empty());
    assert_eq!(rigs.map(|rig| rig.shard.observers().awaited_keys()), [0, 0]);
}

#[test]
fn a_timeout_and_a_serve_end_in_exactly_one() {
    for served_first in [false, true] {
        let mut rigs = Rig::pair();
        let [_, y] = keys();
        rigs[0].wait_over(1, &[&y], &[&y]);
        deliver(&mut rigs);
        assert_eq!(rigs[0].waits.clients().next_due(99), None);
        let due = rigs[0].waits.clients().next_due(100);
        assert_eq!(due, Some(header(1, POP).conn));
        rigs[1].put(&y);
        if served_first {
            let (id, batch, _) = rigs[1].next_here();
            assert!(!rigs[0].end(1, WaitEnd::TimedOut));
            rigs[1].ran(id, batch);
        } else {
            assert!(rigs[0].end(1, WaitEnd::TimedOut));
            assert!(rigs[1].next().is_none());
        }
        let answers = rigs.each_mut().map(Rig::answers).map(|a| a.len());
        let one = [usize::from(!served_first), usize::from(served_first)];
        assert_eq!(answers, one);
    }
}

#[test]
fn a_wait_that_times_out_gets_the_reply_for_that() {
    let mut rig = Rig::new(0);
    rig.wait(1, POP, &["x"]);
    rig.wait(2, POP, &["x"]);
    assert!(rig.end(1, WaitEnd::TimedOut) && !rig.end(1, WaitEnd::TimedOut));
    let mut error = Output::default();
    error.bytes.extend_from_slice(b"-UNBLOCKED");
    assert!(rig.end(2, WaitEnd::Reply(error)));
    let replies = [(1, b"nil".to_vec()), (2, b"-UNBLOCKED".to_vec())];
    assert_eq!(rig.answers(), replies);
    assert_eq!(rig.shard.observers().awaited_keys(), 0);
}

#[test]
fn no_waiter_is_served_while_a_key_that_it_needs_is_held() {
    let mut rig = Rig::new(0);
    rig.wait(1, POP, &["x", "y"]);
    rig.put("x");
    for held in ["x", "y"] {
        assert!(rig.next_beside(&[held]).is_none());
        assert!(!rig.shard.observers().has_touched());
        rig.with(|waits, store, _| waits.on_release(store));
        assert!(
            rig.shard.observers().has_touched(),
            "the wake-up is not lost"
        );
    }
    rig.waits.hold(true);
    assert!(rig.next().is_none() && rig.shard.observers().has_touched());
    rig.waits.hold(false);
    assert_eq!(rig.next_here().2, 1);
}

#[test]
fn a_read_that_found_nothing_waits_on_in_its_place() {
    let mut rig = Rig::new(0);
    rig.wait(1, PEEK, &["x"]);
    rig.wait(2, PEEK, &["x"]);
    rig.put("x");
    let (id, batch, client) = rig.next_here();
    assert_eq!(client, 1);
    let wait = Wait {
        keys: 1..2,
        timeout_us: None,
    };
    rig.with(|waits, store, _| waits.on_ran::<Values>(id, batch, Some(wait), store));
    assert_eq!(rig.next_here().2, 2, "those behind it are considered");
    rig.put("x");
    assert_eq!(rig.next_here().2, 1);
}

#[test]
fn a_request_that_needs_other_keys_is_executed_over_workers() {
    let mut rig = Rig::new(0);
    let [x, y] = keys();
    rig.wait_over(1, &[&x], &[&x, &y]);
    rig.wait(2, POP, &[&x]);
    rig.put(&x);
    let Some(Serve::Over(id, mut batch, all)) = rig.next() else {
        panic!("it needs keys of two workers");
    };
    assert_eq!(all, [(WorkerId(0), name(&x)), (WorkerId(1), name(&y))]);
    rig.put(&x);
    assert!(rig.next().is_none(), "none behind it may overtake it");
    let gathered = [Gathered {
        owner: WorkerId(0),
        key: name(&x),
        entry: None,
        context: None,
    }];
    let origin =
        rig.with(|waits, store, _| waits.on_ran_over(id, &mut batch, None, &gathered, store));
    assert_eq!(origin, Some(WorkerId(0)));
    assert_eq!(rig.next_here().2, 2, "the key was touched again");
}

#[test]
fn changes_over_workers_for_a_client_that_has_gone_are_dropped() {
    let mut rig = Rig::new(0);
    let [x, y] = keys();
    rig.wait_over(1, &[&x], &[&x, &y]);
    rig.put(&x);
    let Some(Serve::Over(id, mut batch, _)) = rig.next() else {
        panic!("it needs keys of two workers");
    };
    assert!(rig.end(1, WaitEnd::Gone));
    let origin = rig.with(|waits, store, _| waits.on_ran_over(id, &mut batch, None, &[], store));
    assert_eq!(origin, None);
}

#[test]
fn a_wait_is_reported_before_it_is_served() {
    let mut rig = Rig::new(0);
    rig.wait(1, POP, &["x"]);
    let found = NoData {
        origin: WorkerId(1),
        batch: request(2, POP, &["x"]),
        wait: Wait {
            keys: 1..2,
            timeout_us: None,
        },
        reach: Reach::Here(vec![name("x")]),
    };
    rig.with(|waits, store, out| waits.on_no_data(at(0), found, store, out));
    rig.put("x");
    for _ in 0..2 {
        let (id, batch, _) = rig.next_here();
        rig.ran(id, batch);
    }
    let early: Vec<_> = rig.waits.take_served();
    let early: Vec<_> = early.iter().map(|(_, batch)| client_of(batch)).collect();
    assert_eq!(
        early,
        [1],
        "the other worker does not know of the wait of 2"
    );
    assert!(matches!(rig.waits.next_told(), Some((_, Told::Waits(_)))));
    assert!(matches!(rig.waits.next_told(), Some((_, Told::Served(_)))));
}
