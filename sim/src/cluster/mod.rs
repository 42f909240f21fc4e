//! The fourth world: a cluster of whole nodes. Every worker is a real front with real
//! sessions, chains and logs; between nodes there are virtual connections, and a
//! virtual coordinator has the real planner say who has what.
//!
//! Connections delay, cut what they carry into pieces, and break; the network parts
//! nodes one way or both, once or many times in a row; workers and nodes pause or are
//! slow, clocks are wrong and drift; nodes join, are killed, lose power, stop in order,
//! start again, drain and come back, each start with a wire version of its own; the
//! coordinator is away. Some clients follow
//! redirections, others have one node ask for them; both are judged per key: one order
//! of commands must explain all replies. At no time two nodes answer for a slot. After
//! quiet all members of a chain have the same, and nobody else has any of it; all have
//! the same of lattice keys.
//!
//! - [`plan`]: what a seed stands for
//! - `world`: time and what happens in it; `turns` workers and their disks
//! - `node`: one node, from its start to its end
//! - `wires`: connections and the network under them
//! - `coordinator`: who is there, and what is agreed on
//! - `trouble`: what goes wrong, and the end of it
//! - `clients`: who asks, and what came back; `wishes` for what
//! - `loose`: keys of the lattice keyspace, and whether they are right
//! - `watch`: who answers for slots
//! - `judge`: whether all that was right
//! - [`faults`]: what is made wrong on purpose

mod clients;
mod coordinator;
pub mod faults;
mod judge;
mod loose;
mod node;
pub mod plan;
mod trouble;
mod turns;
mod watch;
mod wires;
mod wishes;
mod world;

use crate::runs::panic_text;
use faults::Fault;
use plan::{Plan, Size};
use std::collections::BTreeMap;

/// What came of a seed.
#[derive(Debug, Default)]
pub struct Report {
    pub failure: Option<String>,
    pub epochs: u64,
    pub events: u64,
    pub operations: u64,
    /// Keys whose histories were too wide to be judged.
    pub unsure: u64,
    /// How often rare states were reached.
    pub probes: BTreeMap<&'static str, u64>,
    pub hash: u64,
    pub lines: Vec<String>,
}

/// States that many seeds have to reach.
pub const PROBES: [&str; 27] = [
    "a node has joined",
    "a node has drained",
    "a node was killed",
    "a node lost power",
    "a node has stopped in order",
    "all nodes were killed",
    "a connection was cut",
    "the network was parted",
    "a node was silent one way",
    "a node paused",
    "a worker paused",
    "the coordinator was away",
    "a client was sent elsewhere",
    "a client was told to try again",
    "an outcome is unknown",
    "a head was replaced while it was there",
    "two wire versions were spoken",
    "links broke and came back in a row",
    "a node was slow",
    "a node that had left came back",
    "a request was passed on",
    "a request that was passed on was turned away",
    "a request was passed on once more",
    "who has passed a request on does not know what became of it",
    "something was done with lattice keys at a node that has left",
    "a node ended before it first served lattice keys",
    "a reply about lattice keys passed replies that wait for copies",
];

/// Runs a seed.
pub fn run(seed: u64, fault: Fault, verbose: bool) -> Report {
    run_of(seed, Size::Any, fault, verbose)
}

/// Likewise, of a cluster of that size.
pub fn run_of(seed: u64, size: Size, fault: Fault, verbose: bool) -> Report {
    fault.plant();
    let mut world = world::World::new(Plan::of(seed, size), verbose);
    let run = std::panic::AssertUnwindSafe(|| world.run_all());
    let outcome = std::panic::catch_unwind(run);
    Fault::None.plant();
    let mut report = world.report();
    report.failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(panic_text(&*panic)),
    };
    report
}
