//! Changes of the table of keyspaces.

use super::super::Draining;
use super::{Host, at, hosts, strict_hosts, table, ticket};
use crate::keyspace::{Keyspaces, Regime};
use crate::shard::{ExpirySetting, NewValue};
use crate::worker::Message;
use crate::worker::out::Call;
use rufous_base::WorkerId;
use std::sync::Arc;

/// A table without lattice keyspaces, as a change of that of [`hosts`].
fn without() -> Arc<Keyspaces> {
    let before = table(Regime::Lattice);
    Arc::new(before.without("all").expect("it has it"))
}

/// Ends turns until all changes are sent. Returns the workers that were told so.
fn sent(host: &mut Host, taken: bool) -> Vec<u16> {
    let mut told = Vec::new();
    for _ in 0..3 {
        for call in host.turn(at(1)) {
            match call {
                Call::SendLogged(to, Message::Draining(Draining::Sent { taken: is, .. })) => {
                    assert_eq!(is, taken);
                    told.push(to.0);
                }
                Call::Replicate(..) => assert!(told.is_empty(), "changes come first"),
                call => panic!("{call:?}"),
            }
        }
    }
    told
}

#[test]
fn a_drain_ends_only_when_every_worker_has_sent_its_changes() {
    let mut hosts = hosts(3);
    let host = &mut hosts[0];
    let new = without();
    let (version, taken) = (new.version(), false);
    let begin = Draining::Begin {
        multi: 9,
        table: new,
    };
    host.lattices.on_draining(WorkerId(2), begin);
    assert!(host.settle(at(1)).is_empty(), "its changes are not sent");
    assert_eq!(sent(host, taken), [1, 2]);
    for from in [1, 2] {
        assert!(host.settle(at(1)).is_empty(), "a worker has not reported");
        let note = Draining::Sent { version, taken };
        host.lattices.on_draining(WorkerId(from), note);
    }
    let calls = host.settle(at(1));
    let settled = matches!(
        calls[..],
        [Call::Send(
            WorkerId(2),
            Message::Draining(Draining::Settled { multi: 9, .. })
        )]
    );
    assert!(settled, "{calls:?}");
}

#[test]
fn changes_after_a_drain_are_taken_when_the_table_was_adopted() {
    let mut both = hosts(2);
    let [host, other] = &mut both[..] else {
        panic!("there are two");
    };
    let new = without();
    let (version, taken) = (new.version(), false);
    let begin = Draining::Begin {
        multi: 9,
        table: new,
    };
    host.lattices.on_draining(WorkerId(0), begin);
    sent(host, taken);
    let note = Draining::Sent { version, taken };
    host.lattices.on_draining(WorkerId(1), note);
    assert_eq!(host.settle(at(1)).len(), 1);
    other.set(at(1), b"k", b"later");
    for call in other.turn(at(500)) {
        if let Call::Replicate(_, bytes) = call {
            host.hear(at(500), WorkerId(1), Message::Replicate(bytes));
        }
    }
    assert_eq!(host.get(b"k"), None);
    host.with(|lattices, store, _| lattices.take_early(at(500), store));
    assert_eq!(host.get(b"k").as_deref(), Some(&b"later"[..]));
}

#[test]
fn converted_keys_stay_held_until_the_other_workers_have_them() {
    let mut hosts = strict_hosts(2);
    let owner = usize::from(hosts[0].placement.owner(b"k").0);
    let host = &mut hosts[owner];
    let (key, value) = (host.shard.key(b"k"), NewValue::Copy(b"v"));
    host.shard.set(0, key, value, ExpirySetting::Clear, at(0));
    let new = table(Regime::Lattice);
    let found = host.with(|lattices, store, _| lattices.on_hold(at(1), &new, store));
    assert!(found.converts() && !found.is_shared());
    assert_eq!(found.refusal(), None);
    let before = host.adopt(&new);
    host.with(|lattices, store, _| lattices.on_change(at(1), &before, store));
    assert_eq!(host.lattices.count(&host.shard).converted_keys, 1);
    let hold = ticket();
    let ended = host.with(|lattices, store, _| lattices.on_hold_ends(at(1), hold, store));
    assert!(ended.is_none(), "the other worker has no replica yet");
    assert_eq!(sent(host, true), [1 - owner as u16]);
    assert!(host.settle(at(1)).is_empty(), "the other has not converted");
    let note = Draining::Sent {
        version: new.version(),
        taken: true,
    };
    host.lattices.on_draining(WorkerId(1 - owner as u16), note);
    let calls = host.settle(at(1));
    assert!(
        matches!(calls[..], [Call::LetGo(ticket)] if ticket == hold),
        "{calls:?}"
    );
    let ended = host.with(|lattices, store, _| lattices.on_hold_ends(at(1), hold, store));
    assert_eq!(ended, Some(hold), "other holds end at once");
}

#[test]
fn keys_that_other_nodes_have_are_not_converted() {
    let mut hosts = hosts(1);
    let host = &mut hosts[0];
    host.set(at(0), b"k", b"v");
    for is_refused in [false, true] {
        let found = host.with(|lattices, store, _| lattices.on_hold(at(1), &without(), store));
        assert_eq!(found.refusal().is_some(), is_refused);
        // No mapping says that it is the only node.
        host.lattices.on_join(super::super::Past::Unknown);
    }
}
