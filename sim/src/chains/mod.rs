//! The third world: nodes of a cluster that replicate strict slots along
//! chains, made of `rufous-chain` and the real planner of `rufous-mapping`. Each
//! has one to three workers, which hear of epochs one by one, stall one by one,
//! and may be others after a start.
//!
//! Links delay, break and come back, one way or both, also in the middle of a
//! copy; nodes stop, start again and pause, alone or all at once, with preference
//! for those that learn; nodes join and drain; clocks start anywhere and run up to
//! a twentieth too fast or too slow; the coordinator is away for some nodes, or
//! for all. Clients append values of their own to lists and read them, at any node
//! that answers.
//!
//! - [`world`]: time, the coordinator, faults; [`node`] and [`network`]
//! - [`clients`]: who asks, and what came back
//! - [`oracle`]: whether one order of all that was asked explains the replies
//! - [`faults`]: what is made wrong on purpose

pub mod clients;
pub mod faults;
mod network;
mod node;
pub mod oracle;
mod world;

use crate::runs::panic_text;
use clients::Place;
use faults::Fault;
use std::collections::BTreeMap;

/// The slots that are looked at, of all.
const SLOTS: [u16; 4] = [0, 3000, 7000, 12345];

/// What came of a seed.
#[derive(Debug, Default)]
pub struct Report {
    pub failure: Option<String>,
    pub epochs: u64,
    pub acknowledged: u64,
    pub reads: u64,
    /// How often rare states were reached.
    pub probes: BTreeMap<&'static str, u64>,
    /// Of all replies and epochs.
    pub hash: u64,
    /// What happened, where that was wanted.
    pub lines: Vec<String>,
    /// What clients saw, and what each list was after quiet.
    pub histories: BTreeMap<Place, (Vec<oracle::Operation>, Vec<u32>)>,
}

/// States that many seeds have to reach.
pub const PROBES: [&str; 12] = [
    "all nodes have started again",
    "a learner has stopped",
    "a copy was broken off",
    "a learner has joined its chain",
    "a head was replaced while it was there",
    "a node has drained",
    "a node has started with other workers",
    "a worker answered by an epoch that was over for the one beside it",
    "the coordinator was away",
    "a lease had to be outwaited",
    "writes went on without the coordinator",
    "an unknown append was there",
];

/// Runs a seed.
pub fn run(seed: u64, fault: Fault, verbose: bool) -> Report {
    rufous_chain::planted::plant(fault.planted());
    let mut world = world::World::new(seed, fault, verbose);
    let run = std::panic::AssertUnwindSafe(|| world.run_all());
    let outcome = std::panic::catch_unwind(run);
    rufous_chain::planted::plant(None);
    let mut report = world.report();
    report.failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(panic_text(&*panic)),
    };
    report
}
