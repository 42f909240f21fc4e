//! A second, smaller world: the parts of the kernel by which replicas of
//! lattice keyspaces converge, without workers, commands and protocol around
//! them. Clocks differ, links are slow, lossy and cut, all power fails now and
//! then, and clients go from replica to replica. What they saw is held against
//! the definition of their level; that there is one order of all writes that
//! explains it, or none, follows from what clients saw alone.
//!
//! A run has rounds. Each ends when nothing is under way any more: then all
//! replicas have to show the same, and what they show is later than all else
//! of the round. In the first, every key is written once, so that no read
//! finds nothing, which could be any time's.
//!
//! Map, in reading order:
//! - [`plan`]: what a seed stands for
//! - [`node`]: one replica of everything, with its disk and its clock
//! - [`wires`]: links between them
//! - [`client`]: who reads and writes, by which level
//! - [`world`]: events in their order
//! - [`history`], [`oracle`]: what was seen, and whether it is right
//! - [`faults`]: what is made wrong on purpose

pub mod client;
pub mod faults;
pub mod history;
pub mod node;
pub mod oracle;
pub mod plan;
mod shared;
pub mod wires;
pub mod world;

use crate::runs::caught_panic;
use crate::trace::Trace;
use faults::Fault;
use plan::{Mode, Plan};
use world::World;

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    pub plan: Plan,
    pub failure: Option<String>,
    pub hash: u64,
    pub operations: u64,
    pub lines: Vec<String>,
}

/// Runs one seed; where no mode is given, the seed's own. A panic is a
/// failure, too.
pub fn run(seed: u64, mode: Option<Mode>, fault: Fault, keep_trace: bool) -> Report {
    let plan = Plan::new(seed, mode);
    fault.plant();
    let mut world = World::new(plan.clone(), fault, Trace::new(keep_trace));
    let failure = match caught_panic(|| world.run()) {
        Ok(done) => done.err(),
        Err(panic) => Some(format!("panic: {panic}")),
    };
    Fault::None.plant();
    let (hash, operations) = (world.trace.hash(), world.operations());
    Report {
        plan,
        failure,
        hash,
        operations,
        lines: world.trace.into_lines(),
    }
}
