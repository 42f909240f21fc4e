//! The scenario "replicas": the parts of the kernel by which replicas of
//! lattice keyspaces converge, without workers, commands and protocol around
//! them. Clocks differ, links are slow, lossy and cut, all power fails now and
//! then, and clients move from replica to replica. What they saw is checked against
//! the definition of their level; whether one order of all writes
//! explains it follows from what clients saw alone.
//!
//! A run has rounds. Each ends when no message is in transit: then all
//! replicas must show the same, and what they show is later than all other writes
//! of the round. In the first round every key is written once, so that no read
//! finds an absent key, which would not show its time.
//!
//! Map, in reading order:
//! - [`plan`]: what a seed stands for
//! - [`node`]: one replica of everything, with its disk and its clock
//! - [`wires`]: links between them
//! - [`client`]: clients that read and write, and their level
//! - [`world`]: events in their order
//! - [`history`], [`oracle`]: what clients saw, and whether it is right

pub mod client;
pub mod history;
pub mod node;
pub mod oracle;
pub mod plan;
mod shared;
pub mod wires;
pub mod world;

use crate::engine::runner::Flags;
use crate::engine::{About, Engine, Fault, Scenario, Unsure};
use plan::{Mode, Plan};
use rufous_kernel::planted::Planted;
pub use world::World;

impl Scenario for World {
    const ABOUT: About = About {
        name: "replicas",
        // Each run counts its level.
        probes: &[
            "shared",
            "eventual",
            "monotonic-reads",
            "monotonic-writes",
            "writes-follow-reads",
            "read-your-writes",
            "pram",
            "pram+writes-follow-reads",
            "causal",
            "cut",
            "read-uncommitted",
            "read-committed",
            "item-cut",
        ],
        many: 1_000,
        faults: &[
            Fault::StampPerWrite,
            Fault::WritesAtOnce,
            Fault::Kernel(Planted::ReadsNotKept),
            Fault::Kernel(Planted::WritesNotKept),
            Fault::Kernel(Planted::NotAboveOwnWrites),
            Fault::Kernel(Planted::NotAboveReads),
            Fault::Kernel(Planted::CutNotKept),
            Fault::Kernel(Planted::EpochInParts),
            Fault::Kernel(Planted::ReadsNotCached),
            Fault::Kernel(Planted::ForgottenEarly),
            Fault::Kernel(Planted::EndTakesCounts),
            Fault::Kernel(Planted::ChangeNotSent),
            Fault::Kernel(Planted::SnapshotMissesForgotten),
        ],
        flags: &["--mode"],
        unsure: Unsure::NEVER,
    };

    /// The level of all seeds; each has its own where none is given.
    type Options = Option<Mode>;
    type Plan = Plan;
    type Event = world::Event;

    fn options(flags: &Flags) -> Result<Option<Mode>, String> {
        flags.mode.as_deref().map(Mode::named).transpose()
    }

    fn plan(seed: u64, mode: &Option<Mode>, _: Fault) -> Plan {
        Plan::new(seed, *mode)
    }

    fn build(plan: Plan, fault: Fault, engine: Engine<world::Event>) -> Self {
        World::new(plan, fault, engine)
    }

    fn engine(&mut self) -> &mut Engine<world::Event> {
        &mut self.engine
    }

    fn handle(&mut self, event: world::Event) {
        self.on_event(event);
    }

    fn play(&mut self) -> Result<(), String> {
        self.engine.reach(self.plan.mode.name());
        self.run()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("operations", self.operations())]
    }
}
