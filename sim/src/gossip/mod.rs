//! A fifth world: nodes of several workers that share lattice keyspaces. Sessions
//! between nodes break and lose what is on its way, nodes crash and start from
//! their logs, others are dropped from the mapping and come back as new members.
//!
//! A run has rounds. Each ends when all are there and nothing is under way: then
//! all workers of all nodes have to show the same, to remember nothing that has
//! gone, to have all that was acknowledged by nodes that were not dropped, and
//! nothing that was removed.
//!
//! Map, in reading order:
//! - [`plan`]: what a seed stands for
//! - [`seat`]: a worker, with its log
//! - [`world`]: nodes, sessions, events in their order
//! - [`deeds`]: what clients do, and whether what becomes of it is right
//! - [`faults`]: what is made wrong on purpose

pub mod deeds;
pub mod faults;
pub mod plan;
pub mod seat;
pub mod world;

use crate::runs::caught_panic;
use crate::trace::Trace;
use faults::Fault;
use plan::Plan;
use std::collections::BTreeMap;
use world::World;

/// Rare states that many seeds have to reach.
pub const PROBES: [&str; 8] = [
    "resent",
    "overflow",
    "repaired",
    "crash",
    "dropped",
    "back",
    "forgotten",
    "pieces",
];

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    pub plan: Plan,
    pub failure: Option<String>,
    pub hash: u64,
    pub operations: u64,
    pub probes: BTreeMap<&'static str, u64>,
    pub lines: Vec<String>,
}

/// Runs one seed. A panic is a failure, too.
pub fn run(seed: u64, fault: Fault, keep_trace: bool) -> Report {
    let plan = Plan::new(seed);
    fault.plant();
    let mut world = World::new(plan.clone(), fault, Trace::new(keep_trace));
    let failure = match caught_panic(|| world.run()) {
        Ok(done) => done.err(),
        Err(panic) => Some(format!("panic: {panic}")),
    };
    Fault::None.plant();
    let probes = world.probes();
    Report {
        plan,
        failure,
        hash: world.trace.hash(),
        operations: world.operations(),
        probes,
        lines: world.trace.into_lines(),
    }
}
