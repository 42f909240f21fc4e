//! Lists beyond what the checker sees: long ones, and the rules that queues live by.

use super::*;
use crate::algebra::check;

fn wanted(op: Op<'_>) -> Held<Op<'_>> {
    Held { op, wanted: true }
}

fn quiet(op: Op<'_>) -> Held<Op<'_>> {
    Held { op, wanted: false }
}

fn numbers(count: usize) -> State {
    let mut state = List::empty();
    for n in 0..count {
        let element = n.to_string();
        let op = Op::PushBack {
            element: element.as_bytes(),
        };
        List::commit(&mut state, &op, &Tuning::default());
    }
    state
}

#[test]
fn what_the_algebra_states_holds() {
    check::data_type::<List>(77, 2_000)
        .map_err(|failure| failure.to_string())
        .unwrap();
}

#[test]
fn the_ends_of_a_queue_do_not_meet_while_there_is_enough_between() {
    let state = numbers(5);
    let push = Op::PushFront { element: b"x" };
    let (front, back) = (Op::PopFront { count: 2 }, Op::PopBack { count: 2 });
    let admits = |held: &[_], new| List::admits(held, &new, state.view());
    assert!(admits(&[quiet(push)], wanted(back)));
    assert!(
        !admits(&[wanted(push)], wanted(back)),
        "a push answers the length"
    );
    assert!(admits(&[wanted(front)], wanted(back)));
    assert!(
        !admits(&[wanted(front), wanted(back)], wanted(back)),
        "who takes first at one end matters"
    );
    assert!(admits(&[quiet(back)], quiet(back)));
    assert!(
        !admits(&[quiet(back), quiet(back)], wanted(front)),
        "together they take more than there is"
    );
    let (head, all) = (
        Op::Range { start: 0, stop: 1 },
        Op::Range { start: 0, stop: -1 },
    );
    assert!(admits(&[wanted(back)], wanted(head)));
    assert!(!admits(&[wanted(back)], wanted(all)));
    assert!(
        !admits(&[wanted(head), wanted(back)], quiet(back)),
        "the second pop would reach what is read"
    );
}

#[test]
fn one_pop_takes_for_several() {
    let mut state = numbers(3);
    let (first, second) = (Op::PopFront { count: 2 }, Op::PopFront { count: 2 });
    let both = List::combine(&first, &second).unwrap();
    let reply = List::apply(&mut state, &both, &Tuning::default()).reply;
    let element = |text: &str| Box::<[u8]>::from(text.as_bytes());
    assert_eq!(
        List::share(&first, &second, &reply),
        (
            Reply::Elements(vec![element("0"), element("1")]),
            Reply::Elements(vec![element("2")])
        )
    );
    assert!(List::is_empty(state.view()));
}

#[test]
fn what_is_cut_off_is_handed_over_to_be_dropped_elsewhere() {
    let mut state = numbers(100_000);
    let whole = List::heap_bytes(&state);
    let trim = Op::Trim { start: 0, stop: 99 };
    List::commit(&mut state, &trim, &Tuning::default());
    assert!(List::heap_bytes(&state) < whole / 100);
    let copy = state.clone();
    let waste = List::take_waste(&mut state).unwrap();
    assert_eq!(List::len(waste.view()), 99_900);
    assert!(List::take_waste(&mut state).is_none());
    assert!(List::take_waste(&mut copy.clone()).is_none(), "{copy:?}");
    assert_eq!(List::len(state.view()), 100);
}

#[test]
fn removals_of_few_and_of_many_leave_the_same() {
    let elements = |state: &State| -> Vec<Vec<u8>> {
        let all = state.view().iter().map(<[u8]>::to_vec);
        all.collect()
    };
    for (count, left) in [(0, 0), (3, 997), (-3, 997)] {
        let mut state = List::empty();
        for n in 0..3000 {
            let element: &[u8] = if n % 3 == 0 { b"x" } else { b"y" };
            List::commit(&mut state, &Op::PushBack { element }, &Tuning::default());
        }
        let mut model = elements(&state);
        let op = Op::Remove {
            count,
            element: b"x",
        };
        let reply = List::apply(&mut state, &op, &Tuning::default()).reply;
        assert_eq!(reply, Reply::Removed(1000 - left));
        let mut taken = 0;
        let mut keep = |element: &Vec<u8>| {
            let goes = element == b"x" && taken < 1000 - left;
            taken += usize::from(goes);
            !goes
        };
        match count < 0 {
            true => {
                model.reverse();
                model.retain(&mut keep);
                model.reverse();
            }
            false => model.retain(&mut keep),
        }
        assert_eq!(elements(&state), model);
    }
}
