//! The algebra checker: tries what a type states.
