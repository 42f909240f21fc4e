//! Lists of both shapes: what large ones do without a visit to their elements, and rules that matter to queues.

use super::*;
use crate::algebra::check;

#[test]
fn what_the_algebra_states_holds() {
    check::data_type::<List>(77, 2_000)
        .map_err(|f| f.to_string())
        .unwrap();
}
