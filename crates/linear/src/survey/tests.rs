//! Slots 1 and 2 ask, and the tests answer.

use super::*;
use crate::Access;
use crate::fact::Stage;
use crate::txn::Part;

type Asked = Survey<Access>;

fn id(number: u64) -> TxnId {
    TxnId {
        number,
        ..TxnId::default()
    }
}

fn found(number: u64, of: &[u16], at: &[u16]) -> Found {
    Found {
        txn: id(number),
        of: of.to_vec(),
        at: at.to_vec(),
    }
}

/// One that reads a key of each of these slots.
fn txn(number: u64, slots: &[u16]) -> Arc<Transaction<Access>> {
    let part = |slot: &u16| Part {
        slot: *slot,
        key: b"k"[..].into(),
        ops: vec![Access::Read],
        expects: None,
    };
    let parts = slots.iter().map(part).collect();
    Arc::new(Transaction::new(id(number), parts, Arc::default()).expect("parts"))
}

fn passed(slots: &[u16]) -> Vec<At> {
    let stage = Some(Stage::Passed);
    let at = slots.iter().map(|slot| At {
        slot: *slot,
        stage: stage.clone(),
    });
    at.collect()
}

fn always(_: u16, _: TxnId) -> bool {
    true
}

fn same(_: u16) -> bool {
    true
}

/// Slots 1 and 2 ask 1, 2, 10 and 20.
fn asked() -> Asked {
    let mut survey = Asked::default();
    survey.on_mapping(4, same);
    assert!(survey.may_begin(1, true));
    let slots = BTreeSet::from([1, 2]);
    survey.begin(1, 4, slots, BTreeSet::from([1, 2, 10, 20]));
    assert!(!survey.may_begin(1, true), "one at a time");
    survey
}

fn at(survey: &Asked) -> u64 {
    survey.question().0
}

fn told(survey: &mut Asked, slot: u16) -> Option<Vec<TxnId>> {
    let facts = survey.take(slot)?;
    Some(facts.iter().map(|fact| fact.txn.id).collect())
}

#[test]
fn transactions_are_found_and_then_told() {
    let mut survey = asked();
    let (now, late) = (at(&survey), AGAIN_US + 1);
    assert_eq!(survey.due(1), Some(Question::Find(vec![1, 2, 10, 20])));
    assert_eq!(survey.due(2), None);
    let is_open = |slot, txn| slot != 2 || txn != id(2);
    let told_first = vec![found(1, &[1, 2], &[20]), found(2, &[2], &[20])];
    let earlier = now - 1;
    assert!(!survey.on_found(earlier, &[1, 2, 10, 20], told_first.clone(), is_open));
    assert!(!survey.on_found(now, &[1, 20], told_first, is_open));
    assert_eq!(survey.due(late), Some(Question::Find(vec![2, 10])));
    assert!(survey.on_found(now, &[2, 10], vec![found(1, &[1], &[10])], is_open));
    let ask = Question::Tell(vec![(id(1), vec![10, 20])]);
    assert_eq!(survey.due(late), Some(ask));
    assert!(!survey.knows(1));
    survey.on_told(now, id(1), (Some(txn(1, &[1, 2, 10, 20])), passed(&[20])));
    survey.on_told(now, id(1), (None, passed(&[20])));
    assert!(!survey.is_over());
    survey.on_told(now, id(1), (None, passed(&[10])));
    assert!(survey.is_over() && survey.knows(1) && survey.knows(2));
    assert!(!survey.knows(10), "it has not asked");
    assert_eq!(told(&mut survey, 1), Some(vec![id(1)]));
    assert_eq!(told(&mut survey, 1), None, "for one head only");
    assert_eq!(told(&mut survey, 2), Some(vec![id(1)]));
}

#[test]
fn after_another_loss_all_begins_again() {
    let mut survey = asked();
    let now = at(&survey);
    survey.on_mapping(4, same);
    survey.on_found(now, &[1, 2, 10, 20], Vec::new(), always);
    assert!(survey.knows(1));
    survey.on_mapping(5, same);
    assert!(!survey.knows(1));
    // Likewise on the way.
    let mut survey = asked();
    survey.on_mapping(5, same);
    assert!(!survey.on_found(now, &[1, 2, 10, 20], Vec::new(), always));
    assert!(survey.may_begin(2, true));
}

#[test]
fn a_slot_that_others_head_meanwhile_asks_again() {
    let mut survey = asked();
    let now = at(&survey);
    survey.on_mapping(4, |slot| slot == 1);
    // Mappings come in series while copies come back.
    survey.on_mapping(4, same);
    survey.on_found(now, &[1, 2, 10, 20], Vec::new(), always);
    assert!(survey.knows(1) && !survey.knows(2));
    assert!(!survey.may_begin(REST_US, true), "not at once");
    assert!(survey.may_begin(1 + REST_US, true));
    survey.on_mapping(4, |_| false);
    assert!(!survey.knows(1));
}

/// What they have comes back with them.
#[test]
fn slots_that_do_not_answer_are_waited_for() {
    let mut survey = asked();
    let now = at(&survey);
    survey.on_found(now, &[1, 2, 10], vec![found(1, &[1], &[10])], always);
    survey.pass_over(|slot| slot == 10);
    assert_eq!(survey.awaited(), BTreeSet::from([20]));
    let asked = |survey: &mut Asked, to_us: u64| {
        let times = (1..=to_us / AGAIN_US).map(|look| look * AGAIN_US);
        times.filter(|at| survey.due(*at).is_some()).count()
    };
    assert_eq!(asked(&mut survey, 9_800_000), 7, "after 0.2, 0.4 … 3.2 s");
    survey.on_found(now, &[3], Vec::new(), always);
    assert!(survey.due(20_000_000).is_some());
    assert!(
        survey.due(20_000_000 + AGAIN_US).is_some(),
        "as there was an answer"
    );
}

#[test]
fn slots_of_earlier_programs_are_passed_over() {
    let mut survey = asked();
    let now = at(&survey);
    survey.on_found(now, &[1, 2], vec![found(1, &[1], &[10, 20])], always);
    survey.pass_over(|slot| slot == 20);
    survey.on_found(now, &[10], Vec::new(), always);
    assert_eq!(survey.awaited(), BTreeSet::from([10, 20]));
    survey.on_told(now, id(1), (Some(txn(1, &[1, 10])), passed(&[10])));
    survey.pass_over(|slot| slot == 20);
    assert_eq!(told(&mut survey, 1), Some(vec![id(1)]));
}
