//! Waits for slots that this node no longer serves.

use super::super::slots::{PERIOD_US, Unserved};
use super::*;
use crate::batch::Status;
use crate::worker::chains::{ChainHost, SlotView, tests as chains};
use crate::worker::linear::Linear;
use rufous_base::limits::SLOT_PATIENCE_US;
use rufous_chain::Refused;
use rufous_mapping::NodeNo;

#[test]
fn waits_for_slots_that_left_are_ended() {
    let mut rig = Rig::new(0);
    rig.wait(1, POP, &["x"]);
    rig.wait(2, POP, &["y", "z"]);
    assert!(rig.waits.must_look(at(PERIOD_US)) && !rig.waits.must_look(at(PERIOD_US - 1)));
    let waiters = rig.waits.queues.all();
    let keys = waiters.flat_map(|(id, waiter)| waiter.keys.iter().map(move |key| (id, &key.1)));
    let keys: Vec<_> = keys.map(|(id, key)| (id, key.to_vec())).collect();
    let unserved = |refused: [Option<Refused>; 3]| {
        let all = keys.iter().zip(refused);
        let all = all.filter_map(|((waiter, key), refused)| {
            Some(Unserved {
                waiter: *waiter,
                slot: u16::from(key[0]),
                refused: refused?,
            })
        });
        all.collect::<Vec<_>>()
    };
    let (first, second) = (keys[0].0, keys[1].0);
    let not_yet = Some(Refused::NotYet);
    let mut ended = |us: u64, refused: [Option<Refused>; 3]| -> Vec<WaiterId> {
        let ends = rig.waits.on_unserved(at(us), unserved(refused));
        ends.iter().map(|end| end.waiter).collect()
    };
    assert_eq!(ended(1, [not_yet, None, not_yet]), []);
    // The slot of `x` is served in between: its patience begins again.
    assert_eq!(ended(2, [None, None, not_yet]), []);
    let late = SLOT_PATIENCE_US + 1;
    assert_eq!(ended(late - 1, [not_yet, None, not_yet]), []);
    assert_eq!(ended(late, [not_yet, not_yet, not_yet]), [second]);
    let elsewhere = Some(Refused::Elsewhere(None));
    assert_eq!(ended(late, [elsewhere, None, None]), [first]);
}

#[test]
fn requests_that_wait_for_slots_of_another_node_go_there_whole() {
    let mut rig = Rig::new(0);
    rig.wait(1, POP, &["x"]);
    rig.wait(2, POP, &["y"]);
    let settings = chains::settings();
    let mut host = ChainHost::new(settings, WorkerId(0), 1);
    host.on_mapping(&chains::mapping(1, &[(b"x", &[1], None)]), Some(NodeNo(0)));
    rig.placement = Placement::new(1);
    rig.with(|waits, store, out| {
        assert!(host.take_up(at(1), store, out));
        let view = SlotView {
            now: at(1),
            chains: &host,
            placement: store.placement,
            linear: &Linear::default(),
            awaits_nodes: false,
        };
        waits.on_slots::<Values>(&view, store);
        assert!(!waits.must_look(at(1)));
    });
    let Some((_, Told::Served(mut batch))) = rig.waits.next_told() else {
        panic!("the wait has not ended");
    };
    assert!(rig.waits.next_told().is_none());
    assert_eq!(batch.requests[0].reply.status, Status::NotHere);
    let (header, args, _) = batch.parts(0);
    assert_eq!(
        (header.conn.slot, args.len(), args.get(1)),
        (1, 2, &b"x"[..])
    );
    assert!(!rig.end(1, WaitEnd::TimedOut), "it has ended");
    rig.put("x");
    assert!(rig.next().is_none());
    rig.put("y");
    assert!(rig.next().is_some());
}
