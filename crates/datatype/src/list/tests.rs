//! Lists of both shapes: what large ones do without a visit to their elements, and rules that matter to queues.

use super::*;
use crate::algebra::check;

fn list(elements: &[&[u8]], tuning: &Tuning) -> State {
    let mut state = List::empty();
    for element in elements {
        List::commit(&mut state, &Op::PushBack { element }, tuning);
    }
    state
}

#[test]
fn what_the_algebra_states_holds() {
    check::data_type::<List>(77, 100_000)
        .map_err(|f| f.to_string())
        .unwrap();
}
