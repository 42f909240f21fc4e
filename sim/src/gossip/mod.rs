//! The scenario "gossip": nodes of several workers that share lattice keyspaces. Sessions
//! between nodes break and lose what is in transit, nodes crash and start from
//! their logs, others are dropped from the mapping and rejoin as new members.
//!
//! A run has rounds. Each ends when all nodes are up and no message is in transit: then
//! all workers of all nodes must show the same, keep no graves and tombstones,
//! have all that was acknowledged by nodes that were not dropped, and
//! nothing that was removed.
//!
//! Map, in reading order:
//! - [`plan`]: what a seed stands for
//! - [`seat`]: a worker, with its log
//! - [`world`]: nodes, sessions, events in their order
//! - [`deeds`]: the clients' operations, and whether their results are right

pub mod deeds;
pub mod plan;
pub mod seat;
pub mod world;

use crate::engine::runner::Flags;
use crate::engine::{About, Engine, Fault, Scenario, Unsure};
use plan::Plan;
use rufous_kernel::planted::Planted;
pub use world::World;

impl Scenario for World {
    const ABOUT: About = About {
        name: "gossip",
        probes: &[
            "resent",
            "overflow",
            "repaired",
            "crash",
            "dropped",
            "back",
            "forgotten",
            "pieces",
        ],
        many: 1_000,
        faults: &[
            Fault::KeepsOldData,
            Fault::ServesAtOnce,
            Fault::Kernel(Planted::NotSentAgain),
            Fault::Kernel(Planted::NotCompared),
            Fault::Kernel(Planted::NodeNotAwaited),
            Fault::Kernel(Planted::ToldNotLogged),
        ],
        flags: &[],
        unsure: Unsure::NEVER,
    };

    type Options = ();
    type Plan = Plan;
    type Event = world::Event;

    fn options(_: &Flags) -> Result<(), String> {
        Ok(())
    }

    fn plan(seed: u64, (): &(), _: Fault) -> Plan {
        Plan::new(seed)
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
        let done = self.run();
        self.reach_of_streams();
        done
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("operations", self.operations())]
    }
}
