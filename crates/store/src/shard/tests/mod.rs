//! Tests of the whole shard.

mod books;
mod by_slot;
mod collections;
mod conflicts;
mod converted;
mod counts;
mod dated;
mod deadlines;
mod ended;
mod files;
mod gone;
mod guarantees;
mod guests;
mod journal;
mod lattice;
mod members;
mod model;
mod recent;
pub(super) mod replicas;
mod single;
mod sketches;
mod slots;
mod snapshot;
mod texts;
mod turn;
mod values;
mod watch;
