//! The scenario "chains": nodes of a cluster that replicate strict slots along
//! chains, made of `rufous-chain` and the real planner of `rufous-mapping`. Each
//! node has one to three workers, which receive epochs one by one, stall one by
//! one, and whose number may change at a restart.
//!
//! Links delay, break and come back, one way or both, also in the middle of a
//! copy; nodes stop, start again and pause, alone or all at once, learners
//! preferably; one comes back with an emptied or old folder when all have
//! stopped; nodes join and drain; clocks start anywhere and run up to
//! a twentieth too fast or too slow; the coordinator is unreachable for some
//! nodes, or for all. Clients append unique values to lists and read them, at any
//! node that answers. In the end some slots lose all of their copies.
//!
//! - [`plan`]: what a seed stands for
//! - [`world`]: time, the coordinator, faults; [`node`] and [`network`]
//! - [`clients`]: requests and replies
//! - [`oracle`]: whether one order of all requests explains the replies

pub mod clients;
mod network;
mod node;
pub mod oracle;
pub mod plan;
mod world;

use crate::engine::runner::Flags;
use crate::engine::{About, Engine, Fault, Scenario, Unsure};
use plan::Plan;
use rufous_chain::planted::Planted;
use rufous_mapping::planted as planner;
pub use world::World;

/// The slots that are looked at, of all.
const SLOTS: [u16; 4] = [0, 3000, 7000, 12345];

impl Scenario for World {
    const ABOUT: About = About {
        name: "chains",
        probes: &[
            "all nodes have started again",
            "a node has started with an emptied folder",
            "a node has started with an old folder",
            "a learner has stopped",
            "a copy was broken off",
            "a learner has joined its chain",
            "a head was replaced while it was there",
            "a node has drained",
            "a node has drained in quiet",
            "a node has started with other workers",
            "a worker answered by an epoch that was over for the one beside it",
            "the coordinator was away",
            "a lease had to be outwaited",
            "writes went on without the coordinator",
            "an unknown append was there",
            "slots wait for the operator because no copy is left",
        ],
        many: 1_000,
        faults: &[
            Fault::Chain(Planted::NotOutwaited),
            Fault::Chain(Planted::GrantsForgotten),
            Fault::Chain(Planted::GrantsUnknowing),
            Fault::Chain(Planted::LearnedEarly),
            Fault::Chain(Planted::NotHandedOver),
            Fault::Chain(Planted::TakenOverShown),
            Fault::Chain(Planted::AckedEarly),
            Fault::Chain(Planted::OldChainTaken),
            Fault::Chain(Planted::NoLease),
            Fault::Chain(Planted::LeaseOfNode),
            Fault::Chain(Planted::NotRepeated),
            Fault::Chain(Planted::CopiedOver),
            Fault::Chain(Planted::PartsNotCounted),
            Fault::Chain(Planted::FormerNotTold),
            Fault::Chain(Planted::BehindForgotten),
            Fault::Mapping(planner::Planted::FirstBack),
            Fault::Mapping(planner::Planted::DroppedAtOnce),
            Fault::Mapping(planner::Planted::RestartUnnoticed),
            Fault::Mapping(planner::Planted::NotBornAgain),
            Fault::Drift,
        ],
        flags: &[],
        unsure: Unsure::NEVER,
    };

    type Options = ();
    type Plan = Plan;
    type Event = world::Step;

    fn options(_: &Flags) -> Result<(), String> {
        Ok(())
    }

    fn plan(seed: u64, (): &(), fault: Fault) -> Plan {
        Plan::new(seed, fault)
    }

    fn build(plan: Plan, _: Fault, engine: Engine<world::Step>) -> Self {
        World::new(plan, engine)
    }

    fn engine(&mut self) -> &mut Engine<world::Step> {
        &mut self.engine
    }

    fn handle(&mut self, _: world::Step) {
        self.on_step();
    }

    fn play(&mut self) -> Result<(), String> {
        let done = self.run_all();
        let (replies, epoch) = (self.clients.hash, self.epoch());
        let what = format_args!("all replies: {replies:016x}, epoch {epoch}");
        self.engine.note("world", what);
        done
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("epochs", self.epoch()),
            ("acknowledged writes", self.clients.acknowledged),
            ("reads", self.clients.reads),
        ]
    }
}
