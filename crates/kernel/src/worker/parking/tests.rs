//! Requests that wait for slots, driven by hand, with a real host of chains.

use super::super::chains::{ChainHost, Kept, Needs, SlotView, UNMAPPED, UNSERVED, tests as chains};
use super::*;
use crate::batch::{Door, ReplyRange};
use crate::keyspace::{Keyspace, Keyspaces, Regime};
use crate::lock::LockTable;
use crate::placement::Placement;
use crate::program::Context;
use crate::shard::Shard;
use crate::worker::SEVERAL;
use crate::worker::linear::Linear;
use crate::worker::store::Store;
use chains::at;
use rufous_base::{Args, ConnId, Now};
use rufous_mapping::NodeNo;
use std::sync::Arc;

const WRITE: u16 = 0;
const READ: u16 = 1;

struct Commands;

impl Program for Commands {
    fn run(_: u16, _: &mut Context<'_>, _: Args<'_>) -> bool {
        unreachable!("the test executes requests")
    }

    fn is_write(command: u16) -> bool {
        command == WRITE
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

/// A request becomes one of these.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Runs(u32),
    Replies(u32, Status, String),
    LetGo,
}

use End::{LetGo, Replies, Runs};

struct Rig {
    host: ChainHost,
    parking: Parking,
    shard: Shard,
    placement: Placement,
    awaits_nodes: bool,
    out: Out,
    now: Now,
}

fn name(key: &str) -> KeyName {
    (0, key.as_bytes().into())
}

/// The request of a client, which is at worker 1.
fn request(client: u32, command: u16, door: Door, keys: &[&str]) -> Request {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for key in keys {
        spans.push((bytes.len() as u32, key.len() as u32));
        bytes.extend_from_slice(key.as_bytes());
    }
    let header = Header {
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
        door,
        key: 1,
        hash: 0,
        strict_in: None,
    };
    let mut batch = Box::<Batch>::default();
    batch.push(header, Args::new(&bytes, &spans, &mut []));
    Request {
        origin: WorkerId(1),
        batch,
        keys: keys.iter().map(|key| name(key)).collect(),
    }
}

fn write(client: u32, key: &str) -> Request {
    request(client, WRITE, Door::Plain, &[key])
}

/// A read that any member of the chain may answer.
fn read(client: u32, key: &str) -> Request {
    request(client, READ, Door::Redirected, &[key])
}

fn replies(client: u32, why: &str) -> End {
    Replies(client, Status::Ready, why.into())
}

/// It goes to another node.
fn goes(client: u32) -> End {
    Replies(client, Status::NotHere, "NOTHERE".into())
}

fn end_of(call: Call) -> End {
    let client = |batch: &Batch| batch.requests[0].header.conn.slot;
    match call {
        Call::LetGo(_) => LetGo,
        Call::Acquire(Scope::Keys(_), Work::Run { batch, origin }) => {
            assert_eq!(origin, WorkerId(1));
            Runs(client(&batch))
        }
        Call::Answer(origin, batch) => {
            assert_eq!(origin, WorkerId(1));
            let ReplyRange { status, .. } = batch.requests[0].reply;
            let text = String::from_utf8_lossy(&batch.replies.bytes).into_owned();
            Replies(client(&batch), status, text)
        }
        call => panic!("{call:?}"),
    }
}

impl Rig {
    /// No mapping is known yet.
    fn new() -> Self {
        Self {
            host: ChainHost::new(chains::settings(), WorkerId(0), 1),
            parking: Parking::default(),
            shard: Shard::new(7),
            placement: Placement::new(1).seen_by(WorkerId(0)),
            awaits_nodes: false,
            out: Out::default(),
            now: at(1),
        }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Parking, &SlotView<'_>, &mut Out) -> R) -> R {
        let view = SlotView {
            now: self.now,
            chains: &self.host,
            placement: &self.placement,
            linear: &Linear::default(),
            awaits_nodes: self.awaits_nodes,
        };
        act(&mut self.parking, &view, &mut self.out)
    }

    /// In this epoch, the slots of these keys have these chains, and all others node 0 alone.
    fn map(&mut self, epoch: u64, of: &[(&str, &[u16])]) {
        let of: Vec<_> = of
            .iter()
            .map(|(key, members)| (key.as_bytes(), *members, None))
            .collect();
        let mapping = chains::mapping(epoch, &of);
        self.host.on_mapping(&mapping, Some(NodeNo(0)));
        let mut store = Store {
            id: WorkerId(0),
            shard: &mut self.shard,
            placement: &self.placement,
        };
        let mut out = Out::default();
        assert!(self.host.take_up(self.now, &mut store, &mut out));
    }

    fn arrives(&mut self, request: Request) -> (Status, String) {
        let slot = slot_of(&request.keys[0].1);
        let mut reply = Output::default();
        let status = self.with(|parking, view, _| {
            parking.on_request::<Commands>(slot, request, view, &mut reply)
        });
        (status, String::from_utf8_lossy(&reply.bytes).into_owned())
    }

    fn waits(&mut self, request: Request) {
        assert_eq!(self.arrives(request), (Status::Later, String::new()));
    }

    fn unserved(&mut self, request: &Request) -> Option<Refused> {
        let (header, key) = (request.header(), &request.keys[0].1);
        self.with(|parking, view, _| parking.unserved::<Commands>(&header, key, view))
    }

    fn ends(&mut self) -> Vec<End> {
        std::iter::from_fn(|| self.out.next_call())
            .map(end_of)
            .collect()
    }

    fn progress(&mut self) -> Vec<End> {
        self.with(|parking, view, out| parking.on_progress::<Commands>(view, out));
        self.ends()
    }

    /// A request has its keys: whether it may be executed.
    fn granted(&mut self, request: Request) -> (bool, Vec<End>) {
        let mut locks = LockTable::default();
        locks.acquire(Scope::keys(request.keys.clone()), ());
        let (ticket, ()) = locks.next_granted().expect("nothing else is held");
        let granted = Granted {
            ticket,
            keys: &request.keys,
            origin: request.origin,
            batch: request.batch,
        };
        let may = self.with(|parking, view, out| {
            let batch = parking.on_granted::<Commands>(granted, view, out);
            batch.is_some()
        });
        (may, self.ends())
    }
}

/// Both nodes have the slot of `k`, and no lease.
const SHARED: &[(&str, &[u16])] = &[("k", &[0, 1])];

#[test]
fn a_request_runs_when_its_slot_is_served() {
    let mut rig = Rig::new();
    assert_eq!(rig.unserved(&write(1, "k")), Some(Refused::NotYet));
    rig.waits(write(1, "k"));
    assert_eq!(rig.progress(), []);
    assert_eq!(rig.parking.len(), 1);
    rig.map(1, &[]);
    assert_eq!(rig.progress(), [Runs(1)]);
    assert_eq!((rig.parking.len(), rig.parking.until_us()), (0, None));
    assert_eq!(rig.unserved(&write(2, "k")), None);
}

#[test]
fn a_request_that_waits_too_long_is_refused() {
    let mut rig = Rig::new();
    rig.map(1, SHARED);
    rig.waits(write(1, "k"));
    let until_us = 1 + SLOT_PATIENCE_US;
    assert_eq!(rig.parking.until_us(), Some(until_us));
    rig.now = at(until_us - 1);
    assert_eq!(rig.progress(), []);
    rig.now = at(until_us);
    assert_eq!(rig.progress(), [replies(1, UNSERVED)]);
    assert_eq!((rig.parking.len(), rig.parking.refused()), (0, 1));
}

#[test]
fn a_node_that_stops_lets_no_request_wait() {
    let mut rig = Rig::new();
    rig.map(1, SHARED);
    rig.waits(write(1, "k"));
    rig.with(|parking, view, out| parking.on_stop::<Commands>(view, out));
    assert_eq!(rig.ends(), [replies(1, UNSERVED)]);
    let refused = rig.arrives(write(2, "k"));
    assert_eq!(refused, (Status::Ready, UNSERVED.to_owned()));
    assert_eq!(rig.parking.len(), 0);
}

#[test]
fn requests_for_a_slot_run_in_order_of_arrival() {
    let mut rig = Rig::new();
    rig.map(1, &[("k", &[0, 1]), ("other", &[0, 1])]);
    for request in [write(1, "k"), write(2, "other"), write(3, "k")] {
        rig.waits(request);
    }
    assert_eq!(rig.unserved(&write(9, "free")), None);
    rig.now = at(2);
    rig.map(2, &[("k", &[0]), ("other", &[0, 1])]);
    // The slot is served, and a later request must not overtake those that wait for it.
    let view = rig.with(|_, view, _| view.unserved(b"k", Needs::Head));
    assert_eq!(view, None);
    assert_eq!(rig.unserved(&write(4, "k")), Some(Refused::NotYet));
    rig.waits(write(4, "k"));
    assert_eq!(rig.progress(), [Runs(1), Runs(3), Runs(4)]);
    assert_eq!(rig.unserved(&write(5, "k")), None);
    rig.map(3, &[("k", &[0]), ("other", &[0])]);
    assert_eq!(rig.progress(), [Runs(2)]);
}

#[test]
fn a_limited_number_of_requests_waits() {
    let mut rig = Rig::new();
    for client in 0..MOST as u32 {
        rig.waits(write(client, "k"));
    }
    let full = (Status::Ready, UNMAPPED.to_owned());
    assert_eq!(rig.arrives(write(5_000, "k")), full);
    let refused = vec![LetGo, replies(5_001, UNMAPPED)];
    assert_eq!(rig.granted(write(5_001, "k")), (false, refused));
    assert_eq!((rig.parking.len(), rig.parking.refused()), (MOST, 2));
    rig.map(1, &[]);
    assert_eq!(rig.progress().len(), MOST);
    assert_eq!(rig.parking.refused(), 2, "those that moved are not counted");
    rig.host = Rig::new().host;
    rig.waits(write(1, "k"));
}

#[test]
fn requests_whose_slot_moves_are_sent_to_its_node() {
    let mut rig = Rig::new();
    rig.map(1, SHARED);
    rig.waits(write(1, "k"));
    rig.waits(request(2, WRITE, Door::Forwarded, &["k"]));
    rig.waits(request(3, WRITE, Door::Redirected, &["k"]));
    rig.map(2, &[("k", &[1])]);
    let slot = slot_of(b"k");
    let moved = format!("MOVED {slot} node-1:7000");
    assert_eq!(rig.progress(), [goes(1), goes(2), replies(3, &moved)]);
    let elsewhere = Refused::Elsewhere(None);
    assert_eq!(rig.unserved(&write(4, "k")), Some(elsewhere));

    // A client of this worker whose request is not kept gets an error.
    let mut refused = |kept| {
        let mut reply = Output::default();
        let header = write(5, "k").header();
        let status = rig
            .with(|_, view, _| view.refuse_elsewhere::<Commands>(slot, &header, kept, &mut reply));
        (status, String::from_utf8_lossy(&reply.bytes).into_owned())
    };
    assert_eq!(refused(Kept::Request).0, Status::NotHere);
    let (status, text) = refused(Kept::Reply);
    assert_eq!(status, Status::Ready);
    assert!(text.starts_with("TRYAGAIN"), "{text}");
}

#[test]
fn a_read_at_a_copy_waits_for_a_short_time_and_goes_to_the_head() {
    let mut rig = Rig::new();
    rig.map(1, &[("k", &[1, 0])]);
    assert_eq!(
        rig.unserved(&write(1, "k")),
        Some(Refused::Elsewhere(Some(NodeNo(1))))
    );
    assert_eq!(rig.unserved(&read(2, "k")), Some(Refused::NotYet));
    rig.waits(read(2, "k"));
    rig.now = at(COPY_PATIENCE_US);
    assert_eq!(rig.progress(), []);
    rig.now = at(1 + COPY_PATIENCE_US);
    let moved = format!("MOVED {} node-1:7000", slot_of(b"k"));
    assert_eq!(rig.progress(), [replies(2, &moved)]);
}

#[test]
fn a_read_at_a_copy_that_becomes_the_head_waits_as_at_any_head() {
    let mut rig = Rig::new();
    rig.map(1, &[("k", &[1, 0])]);
    rig.waits(read(1, "k"));
    assert_eq!(rig.parking.until_us(), Some(1 + COPY_PATIENCE_US));
    rig.map(2, &[("k", &[0, 1])]);
    rig.now = at(1 + COPY_PATIENCE_US);
    assert_eq!(rig.progress(), [], "no other node can tell");
    assert_eq!(rig.parking.until_us(), Some(1 + SLOT_PATIENCE_US));
    rig.now = at(1 + SLOT_PATIENCE_US);
    assert_eq!(rig.progress(), [replies(1, UNSERVED)]);
}

#[test]
fn lattice_keys_wait_for_other_nodes() {
    let mut rig = Rig::new();
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        ..Keyspace::new("all", b"k")
    };
    let table = Keyspaces::default().with(keyspace).expect("it is valid");
    rig.placement.set_keyspaces(&Arc::new(table));
    // The slot is at another node: no chain has data of lattice keys.
    rig.map(1, &[("k", &[1])]);
    rig.awaits_nodes = true;
    assert_eq!(rig.unserved(&read(1, "k")), Some(Refused::NotYet));
    rig.waits(read(1, "k"));
    assert_eq!(rig.parking.until_us(), Some(1 + SLOT_PATIENCE_US));
    assert_eq!(rig.progress(), []);
    rig.awaits_nodes = false;
    assert_eq!(rig.unserved(&write(2, "k")), Some(Refused::NotYet));
    assert_eq!(rig.progress(), [Runs(1)]);
    assert_eq!(rig.unserved(&write(2, "k")), None);
}

#[test]
fn a_request_that_has_its_keys_is_checked_again() {
    let mut rig = Rig::new();
    rig.map(1, SHARED);
    let none = Vec::new();
    assert_eq!(rig.granted(write(1, "free")), (true, none));
    assert_eq!(rig.granted(write(2, "k")), (false, vec![LetGo]));
    assert_eq!(rig.parking.len(), 1);

    let over = |client, keys: &[&str]| request(client, WRITE, Door::Plain, keys);
    let several = vec![LetGo, replies(3, SEVERAL)];
    assert_eq!(rig.granted(over(3, &["free", "k"])), (false, several));
    let none = Vec::new();
    assert_eq!(rig.granted(over(4, &["free", "far"])), (true, none));

    rig.map(2, &[("k", &[1])]);
    assert_eq!(rig.granted(write(5, "k")), (false, vec![LetGo, goes(5)]));
    assert_eq!(rig.progress(), [goes(2)]);
}

#[test]
fn keys_are_awaited_by_requests_that_wait_for_one_slot_alone() {
    let mut rig = Rig::new();
    let key = |key: &str| key.as_bytes().to_vec();
    rig.waits(write(1, "a"));
    rig.waits(request(2, WRITE, Door::Plain, &["{a}b", "{a}c"]));
    rig.waits(request(3, WRITE, Door::Plain, &["d", "e"]));
    for awaited in ["a", "{a}b", "{a}c"] {
        assert!(rig.parking.awaits(&key(awaited)), "{awaited}");
    }
    assert!(!rig.parking.awaits(b"d") && !rig.parking.awaits(b"e"));
    rig.map(1, &[]);
    assert_eq!(rig.progress(), [Runs(1), Runs(2), Runs(3)]);
    assert!(!rig.parking.awaits(b"a") && !rig.parking.awaits(b"{a}b"));
}
