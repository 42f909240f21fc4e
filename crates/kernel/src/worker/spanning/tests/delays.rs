//! Commands of which an owner does not serve a slot.

use super::*;
use crate::worker::chains::tests::{at, mapping, settings};
use rufous_base::limits::SLOT_PATIENCE_US;
use rufous_base::slot::slot_of;
use rufous_chain::Refused;
use rufous_mapping::NodeNo;

impl Rig {
    /// A node of two: the slot of this worker's key has this chain, and all others node 0, which is this one.
    fn of_two(worker: u16, chain: &[u16]) -> Self {
        let mut rig = Self::new();
        rig.now = at(1);
        rig.map(1, worker, chain);
        rig
    }

    fn map(&mut self, epoch: u64, worker: u16, chain: &[u16]) {
        let key = self.key(worker).1;
        let mut mapping = mapping(epoch, &[(&key, chain, None)]);
        for member in Arc::make_mut(&mut mapping).members.values_mut() {
            member.workers = WORKERS as u16;
        }
        let mut host = ChainHost::new(settings(), OWN, WORKERS);
        host.on_mapping(&mapping, Some(NodeNo(0)));
        let mut store = Store {
            id: OWN,
            shard: &mut self.shard,
            placement: &self.placement,
        };
        assert!(host.take_up(self.now, &mut store, &mut self.out));
        self.out = Out::new(WORKERS);
        self.chains = Some(host);
    }

    /// A worker holds its key, and does not serve its slot.
    fn unserved(&self, worker: u16, why: Refused) -> Hold {
        let slot = slot_of(&self.key(worker).1);
        Hold {
            unserved: Some(Gap { slot, why }),
            unread: Some(Gap { slot, why }),
            ..self.hold(worker)
        }
    }

    fn passes(&mut self, us: u64) -> Vec<Call> {
        self.now = at(self.now.mono_us + us);
        self.on(Spanning::on_time)
    }

    /// What the client of a command is told.
    fn told(calls: &[Call]) -> String {
        let Some(Call::Answer(OWN, batch)) = calls.last() else {
            panic!("{calls:?}");
        };
        String::from_utf8_lossy(&batch.replies.bytes).into_owned()
    }

    /// The one command that begins.
    fn begins(&mut self, calls: Vec<Call>) {
        let [Call::Begin(again)] = <[Call; 1]>::try_from(calls).expect("one call") else {
            panic!("a command begins again");
        };
        self.begin(*again);
    }
}

#[test]
fn what_another_node_has_is_refused_at_once_and_nothing_stays_held() {
    let mut rig = Rig::of_two(2, &[1]);
    let elsewhere = Refused::Elsewhere(Some(NodeNo(1)));
    rig.begin_on(&[0, 2]);
    rig.acquired(0, 0, rig.hold(0));
    let calls = rig.acquired(0, 2, rig.unserved(2, elsewhere));
    assert_eq!(releases(&calls).len(), 2);
    assert_eq!(Rig::told(&calls), "NOTHERE", "it is forwarded");
    rig.begin_exec(&[2]);
    let calls = rig.acquired(1, 2, rig.unserved(2, Refused::NotYet));
    let [Call::Release(..), Call::Ready(multi)] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert!(multi.unserved.is_some() && multi.held.is_empty() && multi.gathered.is_empty());
    assert_eq!(rig.spanning.delays.len(), 0);
}

#[test]
fn a_command_waits_for_its_slot() {
    let mut rig = Rig::of_two(2, &[0, 1]);
    rig.begin_on(&[2]);
    let calls = rig.acquired(0, 2, rig.unserved(2, Refused::NotYet));
    assert!(matches!(calls[..], [Call::Release(..)]), "{calls:?}");
    assert_eq!((rig.spanning.delays.len(), rig.spanning.len()), (1, 1));
    assert!(rig.passes(900).is_empty(), "it pauses");
    let calls = rig.passes(200);
    assert_eq!(rig.spanning.delays.len(), 0);
    rig.begins(calls);
    let calls = rig.all_held(1, &[2]);
    assert!(matches!(calls[..], [Call::Run(_)]), "{calls:?}");
    assert_eq!(rig.spanning.delays.refused(), 0);
}

#[test]
fn a_transaction_waits_for_its_slot_and_is_refused_after_a_while() {
    let mut rig = Rig::of_two(2, &[0, 1]);
    rig.begin_exec(&[2]);
    let begun_us = rig.now.mono_us;
    let mut attempts = 0;
    for number in 0.. {
        let calls = rig.acquired(number, 2, rig.unserved(2, Refused::NotYet));
        if let Some(Call::Ready(multi)) = calls.last() {
            assert!(multi.unserved.is_some() && multi.held.is_empty());
            break;
        }
        assert!(matches!(calls[..], [Call::Release(..)]), "{calls:?}");
        let at_us = rig.spanning.delays.wake_us().expect("it waits");
        let calls = rig.passes(at_us - rig.now.mono_us);
        rig.begins(calls);
        attempts += 1;
    }
    assert_eq!(rig.now.mono_us - begun_us, SLOT_PATIENCE_US);
    assert!((100..400).contains(&attempts), "{attempts} attempts");
    assert_eq!(
        (rig.spanning.delays.refused(), rig.spanning.delays.len()),
        (1, 0)
    );
}

#[test]
fn a_transaction_holds_nothing_while_it_waits_and_is_executed_then() {
    let mut rig = Rig::of_two(2, &[0, 1]);
    rig.begin_exec(&[0, 2]);
    rig.acquired(0, 0, rig.hold(0));
    let calls = rig.acquired(0, 2, rig.unserved(2, Refused::NotYet));
    assert_eq!((releases(&calls).len(), calls.len()), (2, 2));
    let calls = rig.passes(1_000);
    rig.begins(calls);
    let calls = rig.all_held(1, &[0, 2]);
    let [Call::Ready(multi)] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert!(multi.unserved.is_none());
}

/// This worker has yet to hear of the mapping by which the owner of the key judges.
#[test]
fn what_only_the_owner_knows_to_be_elsewhere_waits_for_the_mapping() {
    let mut rig = Rig::of_two(2, &[0, 1]);
    let elsewhere = Refused::Elsewhere(Some(NodeNo(1)));
    rig.begin_exec(&[2]);
    rig.acquired(0, 2, rig.unserved(2, elsewhere));
    assert_eq!(rig.spanning.delays.len(), 1);
    let calls = rig.passes(1_000);
    rig.begins(calls);
    rig.map(2, 2, &[1]);
    let calls = rig.acquired(1, 2, rig.unserved(2, elsewhere));
    assert!(
        matches!(calls[..], [Call::Release(..), Call::Ready(_)]),
        "{calls:?}"
    );
}

#[test]
fn a_touched_watch_ends_a_transaction_that_would_wait() {
    let mut rig = Rig::of_two(0, &[0, 1]);
    rig.begin_exec(&[0, 2]);
    rig.acquired(0, 0, rig.unserved(0, Refused::NotYet));
    let dirty = Hold {
        dirty: true,
        ..rig.hold(2)
    };
    let calls = rig.acquired(0, 2, dirty);
    let [Call::Ready(multi)] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert!(multi.dirty && multi.unserved.is_none());
}

#[test]
fn nothing_waits_at_a_node_that_stops() {
    let mut rig = Rig::of_two(2, &[0, 1]);
    rig.begin_on(&[2]);
    rig.acquired(0, 2, rig.unserved(2, Refused::NotYet));
    let calls = rig.on(Spanning::on_stop);
    rig.begins(calls);
    let calls = rig.acquired(1, 2, rig.unserved(2, Refused::NotYet));
    assert!(Rig::told(&calls).starts_with("CLUSTERDOWN "));
    assert_eq!(rig.spanning.len(), 0);
}

#[test]
fn too_many_do_not_wait() {
    let mut rig = Rig::of_two(2, &[0, 1]);
    let most = crate::worker::parking::MOST as u64;
    for number in 0..=most {
        rig.begin_on(&[2]);
        let calls = rig.acquired(number, 2, rig.unserved(2, Refused::NotYet));
        if number == most {
            assert!(Rig::told(&calls).starts_with("CLUSTERDOWN "));
        }
    }
    assert_eq!(rig.spanning.delays.len() as u64, most);
    assert_eq!(rig.spanning.delays.refused(), 1);
}
