//! The coordinator of commands over three workers, driven by hand: the test plays the owners.

mod delays;

use super::*;
use crate::batch::{Batch, Door};
use crate::lock::{KeyName, Scope};
use crate::multi::{Finish, Gathered};
use crate::placement::Placement;
use crate::program::Context;
use crate::shard::{ExpirySetting, NewValue};
use crate::worker::Outcome;
use crate::worker::chains::ChainHost;
use crate::worker::linear::Linear;
use rufous_base::{Args, ConnId};
use std::collections::BTreeSet;

const WORKERS: usize = 3;
const OWN: WorkerId = WorkerId(1);

struct Writes;

impl Program for Writes {
    fn run(_: u16, _: &mut Context<'_>, _: Args<'_>) -> bool {
        unreachable!("the test executes commands")
    }

    fn is_write(_: u16) -> bool {
        true
    }

    fn may_grow(_: u16) -> bool {
        false
    }

    /// A command reads the keys that its arguments name.
    fn others(_: u16, _: &mut Shard, db: u8, args: &Args<'_>, _: Now) -> BTreeSet<KeyName> {
        args.iter_from(0).map(|name| (db, name.into())).collect()
    }

    fn refuse_growth(_: bool, _: &mut Output) {}

    fn refuse(_: u16, _: &str, _: bool, _: &mut Output) {}

    fn refuse_slot(why: &str, _: bool, out: &mut Output) {
        out.bytes.extend_from_slice(why.as_bytes());
    }

    fn refuse_write(_: crate::Unwritable<'_>, _: bool, _: &mut Output) {}
}

struct Rig {
    spanning: Spanning,
    locks: LockTable<Work>,
    shard: Shard,
    placement: Placement,
    table: u64,
    time: u64,
    commits: bool,
    out: Out,
    now: Now,
    chains: Option<ChainHost>,
    linear: Linear,
    /// The tickets of the owners.
    tickets: LockTable<()>,
}

impl Rig {
    fn new() -> Self {
        Self {
            spanning: Spanning::new(7),
            locks: LockTable::default(),
            shard: Shard::new(7),
            placement: Placement::new(WORKERS).seen_by(OWN),
            table: 0,
            time: 40,
            commits: true,
            out: Out::new(WORKERS),
            now: Now::default(),
            chains: None,
            linear: Linear::default(),
            tickets: LockTable::default(),
        }
    }

    /// Passes an event; returns the calls.
    fn on(&mut self, event: impl FnOnce(&mut Spanning, &mut Site<'_>)) -> Vec<Call> {
        let slots = self.chains.as_ref().map(|chains| SlotView {
            now: self.now,
            chains,
            placement: &self.placement,
            linear: &self.linear,
            awaits_nodes: false,
        });
        let mut site = Site {
            now: self.now,
            locks: &mut self.locks,
            store: Store {
                id: OWN,
                shard: &mut self.shard,
                placement: &self.placement,
            },
            slots,
            table: self.table,
            time: self.time,
            commits: self.commits,
            out: &mut self.out,
        };
        event(&mut self.spanning, &mut site);
        self.out.take_first()
    }

    /// A key of a worker.
    fn key(&self, worker: u16) -> KeyName {
        let mut names = (0..).map(|n: u32| (0, n.to_string().into_bytes().into()));
        let is_its = |key: &KeyName| self.placement.owner(&key.1) == WorkerId(worker);
        names.find(is_its).expect("each worker has keys")
    }

    fn begin(&mut self, multi: Multi) {
        let (locks, out) = (&mut self.locks, &mut self.out);
        self.spanning.on_command(multi, OWN, locks, out);
    }

    fn begin_on(&mut self, owners: &[u16]) {
        let owned = owners.iter().map(|&w| (WorkerId(w), self.key(w)));
        let owned = owned.collect();
        self.begin(Multi::on_keys(request(), owned));
    }

    fn begin_exec(&mut self, owners: &[u16]) {
        let plan = ExecPlan {
            exec: 5,
            client: 9,
            keys: owners.iter().map(|&w| self.key(w)).collect(),
            watched: Vec::new(),
            watcher: None,
            watches: false,
            whole: false,
            touch: true,
        };
        let multi = plan.into_multi(&self.placement);
        self.begin(multi);
    }

    /// The workers that were asked for keys since the last call, with the numbers of commands.
    fn asked(&mut self) -> Vec<(u16, u64)> {
        let mut asked = Vec::new();
        while let Some((_, work)) = self.locks.next_granted() {
            if let Work::Hold { multi, .. } = work {
                asked.push((OWN.0, multi));
            }
        }
        for (to, message) in self.out.mail.take() {
            if let Message::Acquire { multi, .. } = message {
                asked.push((to.0, multi));
            }
        }
        asked
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets.acquire(Scope::keys(Vec::new()), ());
        self.tickets.next_granted().expect("no key is held").0
    }

    fn hold(&self, worker: u16) -> Hold {
        let gathered = Gathered {
            owner: WorkerId(worker),
            key: self.key(worker),
            entry: None,
            context: None,
        };
        Hold {
            gathered: vec![gathered],
            ..Hold::default()
        }
    }

    /// A worker reports that it holds the keys of a command.
    fn acquired(&mut self, number: u64, worker: u16, hold: Hold) -> Vec<Call> {
        let by = (WorkerId(worker), self.ticket());
        self.on(|spanning, site| spanning.on_acquired::<Writes>(number, by, hold, site))
    }

    fn all_held(&mut self, number: u64, owners: &[u16]) -> Vec<Call> {
        let mut calls = Vec::new();
        for &worker in owners {
            assert!(calls.is_empty(), "some keys are not held yet: {calls:?}");
            calls = self.acquired(number, worker, self.hold(worker));
        }
        calls
    }

    /// Executes a command that sets keys of these workers.
    fn run(&mut self, calls: Vec<Call>, owners: &[u16]) -> Vec<Call> {
        let [Call::Run(multi)] = <[Call; 1]>::try_from(calls).expect("one call") else {
            panic!("everything is held");
        };
        self.spanning.begin_run(&multi, Now::default(), &self.shard);
        for &worker in owners {
            let (db, name) = self.key(worker);
            let scratch = self.spanning.scratch();
            let key = scratch.key(&name);
            let value = NewValue::Own(b"new".to_vec());
            let db = usize::from(db);
            scratch.set(db, key, value, ExpirySetting::Clear, Now::default());
        }
        self.on(|spanning, site| {
            spanning.on_ran::<Writes>(*multi, Some(OWN), BTreeMap::new(), site);
        })
    }

    fn committed(&mut self, number: u64) -> Vec<Call> {
        self.on(|spanning, site| spanning.on_committed(number, site))
    }
}

fn request() -> Box<Batch> {
    request_of(&[])
}

fn request_of(names: &[KeyName]) -> Box<Batch> {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for (_, name) in names {
        spans.push((bytes.len() as u32, name.len() as u32));
        bytes.extend_from_slice(name);
    }
    let header = Header {
        conn: ConnId {
            slot: 1,
            generation: 0,
        },
        client: 9,
        seq: 1,
        command: 0,
        db: 0,
        resp3: false,
        no_touch: false,
        quiet: false,
        door: Door::default(),
        key: 1,
        hash: 0,
        strict_in: None,
    };
    let mut batch = Box::<Batch>::default();
    batch.push(header, Args::new(&bytes, &spans, &mut []));
    batch
}

/// The releases among calls: owners, numbers of writes, and what follows.
fn releases(calls: &[Call]) -> Vec<(u16, usize, &Finish)> {
    let part = |call| match call {
        &Call::Release(to, ref release) => Some((to.0, release.writes.len(), &release.finish)),
        _ => None,
    };
    calls.iter().filter_map(part).collect()
}

#[test]
fn workers_are_visited_in_ascending_order_and_one_at_a_time() {
    let mut rig = Rig::new();
    rig.begin_on(&[2, 0, 1]);
    assert_eq!(rig.asked(), [(0, 0)]);
    assert!(rig.acquired(0, 0, rig.hold(0)).is_empty());
    assert_eq!(rig.asked(), [(1, 0)]);
    // A second command does not overtake the first at the worker that it waits for.
    rig.begin_on(&[2, 1]);
    assert!(rig.asked().is_empty(), "the own key is held");
    assert!(rig.acquired(0, 1, rig.hold(1)).is_empty());
    assert_eq!(rig.asked(), [(2, 0)]);
    assert_eq!(rig.spanning.len(), 2);
    let calls = rig.acquired(0, 2, rig.hold(2));
    assert!(matches!(&calls[..], [Call::Run(_)]), "{calls:?}");
}

#[test]
fn a_reply_waits_for_all_parts_and_keys_are_held_until_then() {
    let mut rig = Rig::new();
    rig.begin_on(&[0, 1, 2]);
    let calls = rig.all_held(0, &[0, 1, 2]);
    rig.time = 77;
    let calls = rig.run(calls, &[0, 2]);
    let parts = releases(&calls);
    assert_eq!(calls.len(), 3, "no reply yet: {calls:?}");
    assert!(matches!(parts[0], (0, 1, Finish::Hold { .. })), "{parts:?}");
    assert!(matches!(parts[1], (1, 0, Finish::LetGo)), "{parts:?}");
    let (2, 1, Finish::Hold { multi, piece }) = parts[2] else {
        panic!("{parts:?}");
    };
    assert_eq!(piece.participants, [0, 2]);
    for call in &calls {
        let Call::Release(_, release) = call else {
            panic!("{call:?}");
        };
        assert_eq!(
            release.upto, 77,
            "later stamps of the owner are above these"
        );
    }
    assert!(rig.committed(*multi).is_empty());
    let calls = rig.committed(*multi);
    let [
        Call::Answer(OWN, _),
        Call::Unlock(first, ..),
        Call::Unlock(second, ..),
    ] = &calls[..]
    else {
        panic!("{calls:?}");
    };
    assert_eq!((first.0, second.0, rig.spanning.len()), (0, 2, 0));
}

#[test]
fn one_part_needs_no_unlock_and_without_a_log_no_commit() {
    let mut rig = Rig::new();
    rig.begin_on(&[0, 2]);
    let calls = rig.all_held(0, &[0, 2]);
    let calls = rig.run(calls, &[2]);
    let (2, 1, Finish::Tell { multi }) = releases(&calls)[1] else {
        panic!("{calls:?}");
    };
    let calls = rig.committed(*multi);
    assert!(matches!(&calls[..], [Call::Answer(OWN, _)]), "{calls:?}");
    rig.commits = false;
    rig.begin_on(&[0, 2]);
    let calls = rig.all_held(2, &[0, 2]);
    let calls = rig.run(calls, &[0, 2]);
    let parts = releases(&calls);
    assert!(parts.iter().all(|part| *part.2 == Finish::LetGo));
    assert!(
        matches!(calls.last(), Some(Call::Answer(OWN, _))),
        "{calls:?}"
    );
}

#[test]
fn a_touched_watch_ends_the_visits_and_the_transaction_writes_nothing() {
    let mut rig = Rig::new();
    rig.begin_exec(&[0, 2]);
    assert_eq!(rig.asked(), [(0, 0)]);
    let dirty = Hold {
        dirty: true,
        ..Hold::default()
    };
    let calls = rig.acquired(0, 0, dirty);
    assert!(rig.asked().is_empty(), "worker 2 is not asked");
    let [Call::Ready(multi)] = <[Call; 1]>::try_from(calls).expect("one call") else {
        panic!("it goes to the embedder");
    };
    rig.on(|spanning, site| spanning.on_ready(*multi, None, Contexts::default(), site));
    let held = rig.spanning.next_held().expect("it is held");
    assert!(held.dirty && rig.spanning.next_held().is_none());
    assert_eq!(rig.spanning.len(), 1, "it runs");
    let header = request().requests[0].header;
    let calls =
        rig.on(|spanning, site| spanning.on_end(held, Some((&header, Output::default())), site));
    assert!(
        matches!(releases(&calls)[..], [(0, 0, Finish::LetGo)]),
        "{calls:?}"
    );
    assert!(
        matches!(calls.last(), Some(Call::Answer(OWN, _))),
        "{calls:?}"
    );
    assert_eq!(rig.spanning.len(), 0);
}

#[test]
fn a_command_whose_keys_have_moved_begins_again() {
    let mut rig = Rig::new();
    rig.begin_on(&[0, 2]);
    rig.table = 1;
    rig.acquired(0, 0, rig.hold(0));
    // The table in force gives this key another owner than the one that holds it.
    let mut moved = rig.hold(2);
    moved.gathered[0].key = rig.key(1);
    let calls = rig.acquired(0, 2, moved);
    assert_eq!(releases(&calls).len(), 2);
    let Some(Call::Begin(again)) = calls.into_iter().next_back() else {
        panic!("it begins again");
    };
    rig.begin(*again);
    assert_eq!(
        rig.asked().first(),
        Some(&(0, 0)),
        "the first hold of the old one"
    );
    assert_eq!(rig.spanning.len(), 1);
}

#[test]
fn a_command_that_reads_other_keys_holds_nothing_while_it_asks_for_them() {
    let mut rig = Rig::new();
    let (named, other) = (rig.key(2), rig.key(0));
    let keys = vec![(WorkerId(2), named.clone())];
    rig.begin(Multi::on_open(
        request_of(&[named, other]),
        keys,
        0,
        WORKERS,
    ));
    assert_eq!(rig.asked(), [(2, 0)]);
    let calls = rig.acquired(0, 2, rig.hold(2));
    let [Call::Release(WorkerId(2), _), Call::Begin(_)] = &calls[..] else {
        panic!("{calls:?}");
    };
    let Some(Call::Begin(wider)) = calls.into_iter().next_back() else {
        unreachable!("as above");
    };
    rig.begin(*wider);
    assert_eq!(rig.asked(), [(0, 1)], "from the first worker on");
    let calls = rig.all_held(1, &[0, 2]);
    assert!(matches!(&calls[..], [Call::Run(_)]), "{calls:?}");
}

#[test]
fn a_command_that_holds_everything_waits_for_the_keys_that_it_fetches() {
    let mut rig = Rig::new();
    let (named, other) = (rig.key(0), rig.key(2));
    let keys = vec![(WorkerId(0), named.clone())];
    rig.begin(Multi::on_open(
        request_of(&[named, other]),
        keys,
        3,
        WORKERS,
    ));
    assert!(rig.acquired(0, 0, rig.hold(0)).is_empty());
    assert!(rig.acquired(0, 1, Hold::default()).is_empty());
    assert!(rig.acquired(0, 2, Hold::default()).is_empty());
    let sent: Vec<_> = rig.out.mail.take().collect();
    let fetched = |sent: &&(WorkerId, Message)| matches!(sent.1, Message::Fetch { multi: 1, .. });
    assert_eq!(
        sent.iter().find(fetched).map(|sent| sent.0),
        Some(WorkerId(2))
    );
    assert_eq!(rig.spanning.len(), 1);
    let gathered = rig.hold(2).gathered;
    let calls = rig.on(|spanning, site| spanning.on_fetched::<Writes>(1, gathered, site));
    let [Call::Run(multi)] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert_eq!((multi.gathered.len(), multi.held.len()), (2, 3));
}

#[test]
fn a_doubtful_commit_ends_the_request_but_not_the_holds() {
    let mut rig = Rig::new();
    rig.begin_on(&[0, 2]);
    let calls = rig.all_held(0, &[0, 2]);
    rig.run(calls, &[0, 2]);
    assert!(
        rig.on(|spanning, site| spanning.on_doubtful(1, site))
            .is_empty()
    );
    assert!(matches!(rig.out.next_outcome(), Some(Outcome::Lost(header)) if header.client == 9));
    assert!(rig.committed(1).is_empty());
    let calls = rig.committed(1);
    assert_eq!(calls.len(), 3, "the reply and two unlocks");
    let is_told = |call: &Call| matches!(call, Call::Answer(_, batch) if batch.is_doubtful);
    assert!(calls.iter().any(is_told), "the client was told already");
}
