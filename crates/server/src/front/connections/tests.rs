//! Connections, driven by hand.

use super::super::testing::{id, info};
use super::*;
use rufous_base::limits::OUTPUT_HIGH_WATER;
use rufous_base::{Output, WorkerId};
use rufous_mapping::NodeNo;

fn open(all: &mut Connections, id: ConnId) -> u64 {
    let place = Place {
        own: WorkerId(1),
        workers: 4,
    };
    all.on_opened(Now::default(), id, info(), place).client_id
}

/// A request of the connection runs, with this reply, or one that is pending.
fn run(all: &mut Connections, id: ConnId, reply: Option<&str>, fx: &mut Effects<()>) {
    let mark = fx.output.mark();
    let submitted = match reply {
        Some(reply) => {
            fx.output.bytes.extend_from_slice(reply.as_bytes());
            Submitted::Done
        }
        None => Submitted::Pending,
    };
    let table = crate::command::table();
    all.on_submitted(id, submitted, table, mark, fx);
}

/// The reply to a pending request arrives.
fn answer(all: &mut Connections, id: ConnId, seq: u32, fx: &mut Effects<()>) {
    let mut reply = Output::default();
    reply.bytes.extend_from_slice(b"+OK");
    all.on_reply(id, seq, Written::all(&reply), fx);
}

fn resume(all: &mut Connections, is_paused: bool, fx: &mut Effects<()>) -> Vec<ConnId> {
    let (mut resumed, forwarding) = (Vec::new(), Forwarding::default());
    let awaited = Awaited {
        now: Now::default(),
        is_paused,
        forwarding: &forwarding,
    };
    all.resume(&awaited, &mut resumed, fx);
    resumed
}

fn closes(all: &mut Connections) -> Vec<(ConnId, Close)> {
    let mut fx = Effects::<()>::default();
    all.take_closes(&mut fx);
    fx.closes
}

#[test]
fn a_reused_slot_is_another_connection() {
    let mut all = Connections::default();
    assert_eq!(open(&mut all, id(2, 1)), 2);
    assert!(all.get(id(2, 2)).is_none() && all.get(id(0, 1)).is_none());
    assert!(all.on_closed(id(2, 2)).is_none());
    assert!(all.on_closed(id(2, 1)).is_some());
    assert_eq!(open(&mut all, id(2, 2)), 6, "in steps of the workers");
    assert!(all.get(id(2, 1)).is_none() && all.get(id(2, 2)).is_some());
    all.close_now(id(2, 1));
    assert_eq!(closes(&mut all), []);
}

#[test]
fn a_connection_with_a_pending_reply_is_closed_at_once_or_later() {
    let mut all = Connections::default();
    for slot in 0..3 {
        open(&mut all, id(slot, 1));
    }
    run(&mut all, id(0, 1), None, &mut Effects::default());
    run(&mut all, id(1, 1), None, &mut Effects::default());
    all.close_after_reply(id(0, 1));
    all.close_now(id(1, 1));
    all.close_after_reply(id(2, 1));
    let now = [(id(1, 1), Close::Now), (id(2, 1), Close::AfterReplies)];
    assert_eq!(closes(&mut all), now);
    assert!(all.iter().all(|connection| connection.closing));
}

#[test]
fn an_ended_client_gets_its_replies_first() {
    let mut all = Connections::default();
    open(&mut all, id(0, 1));
    let fx = &mut Effects::default();
    run(&mut all, id(0, 1), None, fx);
    all.suspend(id(0, 1), Suspended::Barrier, fx);
    all.on_ended(id(0, 1));
    all.close_ended();
    answer(&mut all, id(0, 1), 0, fx);
    all.close_ended();
    assert_eq!(closes(&mut all), [], "it is suspended");
    assert_eq!(resume(&mut all, false, fx), [id(0, 1)]);
    all.close_ended();
    assert_eq!(closes(&mut all), [(id(0, 1), Close::AfterReplies)]);
    all.close_ended();
    assert_eq!(closes(&mut all), [], "only once");
}

#[test]
fn the_driver_hears_of_a_backlog_when_it_changes() {
    let mut all = Connections::default();
    open(&mut all, id(0, 1));
    let mut fx = Effects::<()>::default();
    all.renew_backlog(id(0, 1));
    all.authenticate_all();
    all.authenticate_all();
    all.take_notes(&mut fx);
    let kinds = [Backlog::Stranger, Backlog::Client];
    assert_eq!(fx.backlogs, kinds.map(|kind| (id(0, 1), kind)));
}

#[test]
fn a_connection_resumes_when_the_reason_to_wait_is_gone() {
    let mut all = Connections::default();
    open(&mut all, id(0, 1));
    open(&mut all, id(1, 1));
    let fx = &mut Effects::default();
    all.suspend(id(0, 1), Suspended::Paused, fx);
    all.suspend(id(1, 1), Suspended::Crowded(NodeNo(3)), fx);
    assert_eq!(fx.holds, [(id(0, 1), true), (id(1, 1), true)]);
    fx.holds.clear();
    assert_eq!(resume(&mut all, true, fx), [id(1, 1)]);
    assert_eq!((all.suspended(), &*fx.holds), (1, &[(id(1, 1), false)][..]));
    assert_eq!(resume(&mut all, false, fx), [id(0, 1)]);
    all.suspend(id(0, 1), Suspended::Paused, fx);
    all.on_closed(id(0, 1));
    assert_eq!(all.suspended(), 0);
}

#[test]
fn a_connection_with_much_to_send_waits_for_the_driver() {
    let mut all = Connections::default();
    open(&mut all, id(0, 1));
    let fx = &mut Effects::default();
    run(
        &mut all,
        id(0, 1),
        Some(&"x".repeat(OUTPUT_HIGH_WATER + 1)),
        fx,
    );
    assert_eq!(fx.drains, [id(0, 1)]);
    assert_eq!(resume(&mut all, false, fx), []);
    all.on_drained(id(0, 1));
    assert_eq!(resume(&mut all, false, fx), [id(0, 1)]);
}

#[test]
fn the_last_reply_of_a_closing_connection_closes_it() {
    let mut all = Connections::default();
    open(&mut all, id(0, 1));
    let fx = &mut Effects::default();
    run(&mut all, id(0, 1), None, fx);
    run(&mut all, id(0, 1), None, fx);
    all.close_after_reply(id(0, 1));
    answer(&mut all, id(0, 1), 1, fx);
    assert_eq!(fx.closes, []);
    answer(&mut all, id(0, 1), 0, fx);
    assert_eq!(fx.closes, [(id(0, 1), Close::AfterReplies)]);
}

#[test]
fn replies_wait_for_copies_until_it_is_known_which_need_not() {
    let mut all = Connections::default();
    open(&mut all, id(0, 1));
    let until = |all: &mut Connections| {
        let fx = &mut Effects::default();
        let mark = fx.output.mark();
        run(all, id(0, 1), Some("+OK"), fx);
        all.write(id(0, 1), mark, fx);
        fx.writes[0].until
    };
    assert_eq!(until(&mut all), Until::Passed);
    all.on_splits(true);
    assert_eq!(until(&mut all), Until::Passed);
    assert_eq!(until(&mut all), Until::Logged);
    all.wait_for_copies(id(0, 1));
    assert_eq!(until(&mut all), Until::Passed);
}

#[test]
fn a_client_that_waits_for_data_is_read_unless_it_is_gone() {
    let mut all = Connections::default();
    open(&mut all, id(0, 1));
    let fx = &mut Effects::default();
    let header = all.get(id(0, 1)).expect("open").header(0, false, None);
    run(&mut all, id(0, 1), None, fx);
    assert!(all.block(&header, fx));
    assert_eq!(fx.holds, [(id(0, 1), false)]);
    assert!(all.get(id(0, 1)).expect("open").is_blocked());
    answer(&mut all, id(0, 1), header.seq, fx);
    assert!(!all.get(id(0, 1)).expect("open").is_blocked());
    all.get(id(0, 1)).expect("open").ended = true;
    assert!(!all.block(&header, fx));
    assert_eq!(fx.closes, [(id(0, 1), Close::Now)]);
}
