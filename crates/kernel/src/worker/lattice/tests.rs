//! Lattice keyspaces at the workers of one node, driven by hand: their inputs, and the calls that
//! they make.

mod nodes;
mod table;

use super::{Lattices, Turn, Why};
use crate::keyspace::{Keyspace, Keyspaces, Regime};
use crate::lock::{LockTable, Scope, Ticket};
use crate::placement::Placement;
use crate::replicate::replicas::To;
use crate::shard::{ExpirySetting, NewValue, Shard};
use crate::worker::Message;
use crate::worker::out::{Call, Out};
use crate::worker::store::Store;
use rufous_base::{Now, WorkerId};
use std::sync::Arc;

const PERIOD_MS: u64 = 100;

/// One worker, without the rest of it.
struct Host {
    id: WorkerId,
    lattices: Lattices,
    shard: Shard,
    placement: Placement,
    out: Out,
    /// Positions: of everything that happened, and of what the log has.
    position: u64,
    logged: u64,
    /// The log cannot be written.
    is_in_trouble: bool,
    /// Keys are held.
    is_held: bool,
}

fn at(ms: u64) -> Now {
    Now {
        mono_us: ms * 1_000,
        unix_us: 1_000_000_000 + ms * 1_000,
    }
}

/// A table with one keyspace, of all keys.
fn table(regime: Regime) -> Arc<Keyspaces> {
    let keyspace = Keyspace {
        regime,
        threads: u16::from(regime == Regime::Strict),
        ..Keyspace::new("all", b"k")
    };
    Arc::new(Keyspaces::default().with(keyspace).expect("it is valid"))
}

/// Workers of a node without keyspaces.
fn strict_hosts(workers: u16) -> Vec<Host> {
    let host = |id| Host {
        id: WorkerId(id),
        lattices: Lattices::new(WorkerId(id), usize::from(workers)),
        shard: Shard::new(7),
        placement: Placement::new(usize::from(workers)).seen_by(WorkerId(id)),
        out: Out::default(),
        position: 0,
        logged: 0,
        is_in_trouble: false,
        is_held: false,
    };
    (0..workers).map(host).collect()
}

/// Workers of a node whose keys are lattice keys.
fn hosts(workers: u16) -> Vec<Host> {
    let mut hosts = strict_hosts(workers);
    for host in &mut hosts {
        host.adopt(&table(Regime::Lattice));
    }
    hosts
}

fn ticket() -> Ticket {
    let mut locks = LockTable::default();
    locks.acquire(Scope::keys(vec![(0, b"k"[..].into())]), ());
    locks.next_granted().expect("nothing else is held").0
}

impl Host {
    fn with<R>(&mut self, act: impl FnOnce(&mut Lattices, &mut Store<'_>, &mut Out) -> R) -> R {
        let mut store = Store {
            id: self.id,
            shard: &mut self.shard,
            placement: &self.placement,
        };
        act(&mut self.lattices, &mut store, &mut self.out)
    }

    fn adopt(&mut self, table: &Arc<Keyspaces>) -> Arc<Keyspaces> {
        self.placement.set_keyspaces(table);
        self.with(|lattices, store, _| lattices.on_table(table, store))
    }

    /// Executes a command that sets a key.
    fn set(&mut self, now: Now, name: &[u8], text: &[u8]) {
        self.lattices.begin_writes(now, &mut self.shard);
        let (key, value) = (self.shard.key(name), NewValue::Copy(text));
        self.shard.set(0, key, value, ExpirySetting::Clear, now);
        let refused = self.lattices.end_writes(now, &mut self.shard);
        assert_eq!(refused, None);
    }

    fn get(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        let key = self.shard.key(name);
        let value = self.shard.peek(0, key, at(99_999)).expect("a string");
        value.map(|value| value.bytes().to_vec())
    }

    /// Executes the calls that concern only this machine. Returns the others.
    fn calls(&mut self) -> Vec<Call> {
        let mut others = Vec::new();
        while let Some(call) = self.out.next_call() {
            match call {
                Call::Replicate(To::Nodes { is_report }, bytes) => {
                    self.lattices.on_changes(self.position, bytes, is_report);
                }
                Call::Replicated => {
                    let logged = self.logged;
                    self.with(|lattices, store, out| lattices.on_replicated(logged, store, out));
                }
                call => others.push(call),
            }
        }
        others
    }

    /// Ends a turn.
    fn turn(&mut self, now: Now) -> Vec<Call> {
        let turn = Turn {
            now,
            position: self.position,
            is_in_trouble: self.is_in_trouble,
            is_held: &|_, _| self.is_held,
        };
        let mut store = Store {
            id: self.id,
            shard: &mut self.shard,
            placement: &self.placement,
        };
        self.lattices.on_turn(&turn, &mut store, &mut self.out);
        self.calls()
    }

    fn settle(&mut self, now: Now) -> Vec<Call> {
        self.with(|lattices, store, out| lattices.on_settle(now, store, out));
        self.calls()
    }

    fn wake_us(&self) -> Option<u64> {
        self.lattices.wake_us(&self.placement)
    }

    fn hear(&mut self, now: Now, from: WorkerId, message: Message) {
        self.with(|lattices, store, _| match message {
            Message::Replicate(bytes) => lattices.on_replicate(now, bytes, store),
            Message::Draining(note) => lattices.on_draining(from, note),
            message => panic!("{message:?}"),
        });
    }
}

/// Executes calls that send messages to other workers, or returns them.
fn deliver(hosts: &mut [Host], now: Now, from: usize, calls: Vec<Call>) -> Vec<Call> {
    let mut others = Vec::new();
    for call in calls {
        let (to, message) = match call {
            Call::Replicate(To::Worker(to), bytes) => (to, Message::Replicate(bytes)),
            Call::SendLogged(to, message) => (to, message),
            call => {
                others.push(call);
                continue;
            }
        };
        hosts[to.index()].hear(now, WorkerId(from as u16), message);
    }
    others
}

/// All workers end turns until nothing is left to be done at once.
fn turns(hosts: &mut [Host], now: Now) {
    while hosts
        .iter()
        .any(|host| host.wake_us().is_some_and(|at| at <= now.mono_us))
    {
        for from in 0..hosts.len() {
            let calls = hosts[from].turn(now);
            let others = deliver(hosts, now, from, calls);
            assert!(others.is_empty(), "{others:?}");
        }
    }
}

#[test]
fn a_write_is_told_to_the_other_workers_after_its_period() {
    let mut hosts = hosts(2);
    assert_eq!(hosts[0].wake_us(), None);
    hosts[0].set(at(5), b"k", b"v");
    let due_us = hosts[0].wake_us().expect("there is a change");
    assert!(due_us > at(5).mono_us);
    let due = at(due_us.div_ceil(1_000));
    let before = at(due_us.div_ceil(1_000) - 1);
    assert!(hosts[0].turn(before).is_empty(), "not due yet");
    turns(&mut hosts, due);
    assert_eq!(hosts[1].get(b"k").as_deref(), Some(&b"v"[..]));
}

#[test]
fn writes_of_a_command_over_several_workers_wait_until_it_is_committed() {
    for is_in_trouble in [false, true] {
        let mut hosts = hosts(2);
        let hold = ticket();
        let host = &mut hosts[0];
        host.set(at(0), b"k", b"v");
        host.lattices.on_uncommitted(hold);
        host.is_held = true;
        while host.wake_us().is_some() {
            assert!(host.turn(at(PERIOD_MS)).is_empty(), "it is not committed");
        }
        host.is_in_trouble = is_in_trouble;
        let mut calls = host.turn(at(2 * PERIOD_MS));
        assert_eq!(calls.is_empty(), !is_in_trouble);
        if !is_in_trouble {
            host.lattices.on_committed(hold, &mut host.out);
            calls = host.calls();
        }
        deliver(&mut hosts, at(2 * PERIOD_MS), 0, calls);
        assert_eq!(hosts[1].get(b"k").as_deref(), Some(&b"v"[..]));
        assert_eq!(hosts[0].lattices.count(&hosts[0].shard).epochs_waited, 1);
    }
}

#[test]
fn a_command_that_replicas_cannot_execute_alone_is_refused() {
    let mut hosts = hosts(1);
    let host = &mut hosts[0];
    host.lattices.begin_writes(at(1), &mut host.shard);
    let key = host.shard.key(b"k");
    host.shard.append(0, key, b"more", at(1));
    let why = host.lattices.end_writes(at(1), &mut host.shard);
    let Some(Why::Order(why)) = why else {
        panic!("APPEND has an order: {why:?}");
    };
    assert!(why.contains("Keyspace 'all' is of regime lattice"), "{why}");
}

#[test]
fn writes_of_a_transaction_have_consecutive_stamps() {
    let mut hosts = hosts(1);
    let host = &mut hosts[0];
    host.lattices.begin_transaction(at(1));
    host.set(at(1), b"k", b"v");
    let next = host.lattices.end_transaction().expect("it had begun");
    let mut stamp = Some(next);
    host.lattices.resume_transaction(at(9), &mut stamp);
    assert_eq!((stamp, host.lattices.end_transaction()), (None, Some(next)));
    assert!(host.lattices.stamp(at(1)) > next);
    host.lattices.on_time(next.time + 100);
    assert!(host.lattices.stamp(at(1)).time > next.time + 100);
}

#[test]
fn a_start_waits_until_it_has_the_state_of_the_other_workers() {
    let mut hosts = hosts(2);
    hosts[1].set(at(0), b"k", b"kept");
    hosts[1].shard.changeset().clear();
    for host in &mut hosts {
        host.with(|lattices, store, _| lattices.on_exchange(store));
        assert!(host.settle(at(1)).is_empty(), "it has heard nothing");
    }
    let calls = hosts[1].turn(at(1));
    let rest = hosts[1].turn(at(1));
    deliver(&mut hosts, at(1), 1, calls);
    deliver(&mut hosts, at(1), 1, rest);
    assert!(hosts[0].settle(at(1)).is_empty(), "it has not sent its own");
    while hosts[0].lattices.replicas.wake_us(0) == Some(0) {
        let calls = hosts[0].turn(at(1));
        deliver(&mut hosts, at(1), 0, calls);
    }
    assert_eq!(hosts[0].get(b"k").as_deref(), Some(&b"kept"[..]));
    assert!(matches!(hosts[0].settle(at(1))[..], [Call::ReplicasEqual]));
    assert!(hosts[0].settle(at(1)).is_empty(), "it is reported once");
}
