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
//! - [`side`]: a second keyspace with other promises, in some of the seeds
//! - [`texts`]: in their place, sessions that read and write strings at one worker, or change it; what they saw
//!   is judged by the level of the keyspace ([`crate::oracle::sessions`])

pub mod deeds;
pub mod plan;
pub mod seat;
pub mod side;
pub mod texts;
pub mod world;

use crate::engine::runner::Flags;
use crate::engine::{About, Engine, Fault, Scenario, Unsure};
use plan::{Mode, Plan};
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
            "snapshot",
            // Each run counts what its clients do.
            "shared",
            "saved",
            "eventual",
            "monotonic-reads",
            "monotonic-writes",
            "writes-follow-reads",
            "read-your-writes",
            "pram",
            "pram+writes-follow-reads",
            "causal",
            "cut",
            "deadlines set",
            "parted",
            "session moved",
            "waited for a session",
            "two keyspaces",
            "all started again",
        ],
        many: 1_000,
        faults: &[
            Fault::KeepsOldData,
            Fault::ServesAtOnce,
            Fault::NewServesAlone,
            Fault::Kernel(Planted::NotSentAgain),
            Fault::Kernel(Planted::NotCompared),
            Fault::Kernel(Planted::LeadAdmitted),
            Fault::Kernel(Planted::NodeNotAwaited),
            Fault::Kernel(Planted::JoinUnnoticed),
            Fault::Kernel(Planted::GoneAwaited),
            Fault::Kernel(Planted::ToldNotLogged),
            Fault::Kernel(Planted::ReportNotLogged),
            Fault::Kernel(Planted::ForgottenEarly),
            Fault::Kernel(Planted::ChangeNotSent),
            Fault::Kernel(Planted::CutNotKept),
            Fault::Kernel(Planted::RelayNotSent),
            Fault::Kernel(Planted::SessionNotAwaited),
            Fault::Kernel(Planted::OwnNotSeen),
            Fault::Kernel(Planted::OpenNotSeen),
            Fault::Kernel(Planted::EpochInParts),
            Fault::Kernel(Planted::EndTakesCounts),
            Fault::Kernel(Planted::SnapshotMissesForgotten),
            Fault::Kernel(Planted::DeadlineWritesValue),
        ],
        flags: &["--mode"],
        unsure: Unsure::NEVER,
    };

    /// What the clients of all seeds do; each seed has its own where none is given.
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
        self.reach_mode();
        let done = self.run();
        self.reach_of_streams();
        done
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("operations", self.operations())]
    }
}
