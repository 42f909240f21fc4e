//! Every type, through the checker.

use super::shelf::Shelf;
use super::{TEST_ROUNDS, data_type};
use crate::object::{Registered, Visitor, visit_types};

/// Shows all failures, not the first alone.
struct Try(Vec<String>);

impl Visitor for Try {
    fn visit<T: Registered>(&mut self) {
        if let Err(failure) = data_type::<T>(1, TEST_ROUNDS) {
            self.0.push(failure.to_string());
        }
    }
}

#[test]
fn every_registered_type_keeps_what_it_states() {
    let mut all = Try(Vec::new());
    visit_types(&mut all);
    assert!(all.0.is_empty(), "{}", all.0.join("\n\n"));
}

#[test]
fn the_type_that_mistakes_are_planted_in_is_right() {
    if let Err(failure) = data_type::<Shelf>(1, TEST_ROUNDS) {
        panic!("{failure}");
    }
}
