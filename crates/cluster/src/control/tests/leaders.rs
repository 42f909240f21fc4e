//! Which node plans, and by which reports.

use super::*;
use planner::{Copy, Report};

/// The coordinator counts it as alive until its lease ends.
#[test]
fn another_node_plans_for_a_leader_whose_process_has_ended() {
    let third = NodeId([3; 20]);
    let ids = [ME, OTHER, third];
    let first = next(&Mapping::new(2), &ids);
    let bytes = encode(&first);
    let number = |id| first.number_of(id).expect("a member");
    let hears = |ids: &[NodeId]| Health {
        hears: Some(ids.iter().map(|id| number(*id)).collect()),
        ..Health::default()
    };
    let seen = |ended: Option<u64>, by_all: &[NodeId]| View {
        ended: ended
            .map(|start| (number(OTHER), start))
            .into_iter()
            .collect(),
        health: [
            (ME, hears(by_all)),
            (OTHER, hears(&ids)),
            (third, hears(by_all)),
        ]
        .into(),
        ..view(OTHER, Some((1, &bytes)), &ids)
    };
    let proposes = |ended, me| {
        let mut control = control();
        control.settings.me = me;
        control.decide(0, &seen(None, &ids));
        (0..2).for_each(|worker| control.on_told(worker, 1));
        let after = |control: &mut Control, us| {
            let actions = control.decide(us, &seen(ended, &[ME, third]));
            actions.iter().map(brief).collect::<Vec<_>>()
        };
        assert!(!after(&mut control, 1_000).contains(&"propose 2 after 1".to_owned()));
        after(&mut control, 301_000)
    };
    assert_eq!(proposes(Some(1), ME), ["unfit [1]", "propose 2 after 1"]);
    assert_eq!(proposes(Some(1), third), ["report to 0", "forget"]);
    assert_eq!(proposes(None, ME), ["report to 1", "forget"]);
    // Another start of it.
    assert_eq!(proposes(Some(7), ME), ["report to 1", "forget"]);
}

/// Of the leader one worker stands still: the others' reports may not reach it.
#[test]
fn another_node_plans_for_a_leader_that_ails() {
    let third = NodeId([3; 20]);
    let ids = [ME, OTHER, third];
    let first = next(&Mapping::new(2), &ids);
    let bytes = encode(&first);
    let seen = |ailing: &[NodeId]| {
        let ails = |id: &NodeId| Health {
            ails: ailing
                .contains(id)
                .then(|| "worker 1: it stands still".into()),
            ..Health::default()
        };
        View {
            health: ids.iter().map(|id| (*id, ails(id))).collect(),
            ..view(OTHER, Some((1, &bytes)), &ids)
        }
    };
    let planner = |me, ailing: &[NodeId]| {
        let mut control = control();
        control.settings.me = me;
        control.decide(0, &seen(&[]));
        (0..2).for_each(|worker| control.on_told(worker, 1));
        let actions = control.decide(1_000, &seen(ailing));
        actions.iter().map(brief).collect::<Vec<_>>()
    };
    assert_eq!(planner(ME, &[OTHER]), ["unfit [1]", "propose 2 after 1"]);
    assert_eq!(planner(third, &[OTHER]), ["report to 0", "forget"]);
    assert_eq!(planner(OTHER, &[OTHER]), ["report to 0", "forget"]);
    assert_eq!(planner(third, &[OTHER, ME])[0], "unfit [0, 1]");
    // Where all do, the leader plans as well as any.
    assert_eq!(planner(ME, &ids), ["report to 1", "forget"]);
    assert_eq!(planner(OTHER, &ids)[0], "unfit [0, 1, 2]");
}

/// A node reports nothing once its chains act: the last report stays, and its copies change.
#[test]
fn a_report_by_an_earlier_mapping_does_not_count() {
    let ids = [ME, OTHER];
    let first = next(&Mapping::new(2), &ids);
    let again = |id| Member {
        incarnation: 2,
        ..member(id)
    };
    let seen = Seen {
        alive: ids.map(|id| (id, again(id))).into(),
        ..Seen::default()
    };
    let second = planner::next(&first, &seen, &Limits::default()).expect("all have restarted");
    assert!(second.chains.of(0).is_halted());
    let bytes = encode(&second);
    let proposes = |by: [Option<u64>; 2]| {
        let mut held = Held::default();
        for (id, epoch) in ids.into_iter().zip(by) {
            let mut report = Report::new(2, true, false);
            report.epoch = epoch;
            report.add(0..16384, Some(Copy { since: 1, seq: 7 }));
            held.hear(second.number_of(id).expect("a member"), report);
        }
        let view = View {
            alive: seen.alive.clone(),
            held,
            ..view(ME, Some((2, &bytes)), &ids)
        };
        let actions = control().decide(0, &view);
        actions
            .iter()
            .any(|action| matches!(action, Action::Propose { .. }))
    };
    assert!(proposes([Some(2), Some(2)]));
    assert!(proposes([Some(3), Some(2)]));
    assert!(!proposes([Some(1), Some(2)]) && !proposes([Some(2), Some(1)]));
    // Older programs do not say it.
    assert!(proposes([None, Some(2)]));
}
