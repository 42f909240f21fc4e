//! The scenario "cluster": a cluster of whole nodes. Every worker is a real front with real
//! sessions, chains and logs; between nodes there are virtual connections, and a
//! virtual coordinator runs the real planner.
//!
//! Connections delay, split the bytes that they carry, and break; the network parts
//! nodes one way or both, once or many times in a row; workers and nodes pause or are
//! slow, clocks are wrong and drift (where nodes share lattice keys, wall clocks are seconds apart); nodes join, are killed, lose power, stop in order,
//! start again, drain and come back, each start with a wire version of its own; the
//! coordinator is unreachable. Some clients follow
//! redirections, others have a node forward their requests; both are judged per key: one
//! order of commands must explain all replies. No request is refused for a slot that no node serves before it has
//! waited for that. No two nodes answer for a slot at the same
//! time. After quiet all members of a chain have the same keys, and no other node has any
//! of them; all nodes have the same lattice keys.
//!
//! - [`plan`]: what a seed stands for
//! - `world`: time and events; `turns` workers and their disks
//! - `node`: one node, from its start to its end
//! - `wires`: connections and the network under them
//! - `coordinator`: the members, and the agreed mapping
//! - `trouble`: faults, and the end of them; `lasting`: one that lasts; `stops`: nodes that are
//!   stopped in the middle of a turn
//! - `operator`: members are forgotten, and the coordinator is restored to an earlier state
//! - `clients`: requests and replies; `wishes`: which requests
//! - `units`: collections, transactions, watched keys, lists that are waited for
//! - `spread`: keys of several slots, and transactions over them; `begun`: those that read before they write
//! - `losses`: all nodes lose power while transactions over several slots are under way
//! - `fleeting`: a key with deadlines; `pairs`: keys that are written together
//! - `loose`: keys of the lattice keyspace, and whether they are right
//! - `strangers`: processes that claim to be nodes
//! - `watch`: which nodes answer for slots; `refusals`: what they may refuse
//! - `judge`: whether the end state is right

mod begun;
mod clients;
mod coordinator;
mod fleeting;
mod followed;
mod judge;
mod lasting;
mod loose;
mod losses;
mod node;
mod operator;
mod pairs;
pub mod plan;
mod refusals;
mod spread;
mod stops;
mod strangers;
mod trouble;
mod turns;
mod undone;
mod units;
mod watch;
mod wires;
mod wishes;
mod world;

use crate::engine::runner::Flags;
use crate::engine::{About, Engine, Fault, Scenario, Unsure};
use plan::{Plan, Size};
use rufous_chain::planted as chain;
use rufous_kernel::planted::Planted;
use rufous_linear::planted::Off;
use rufous_mapping::planted as mapping;
use rufous_wire::planted as wire;
pub use world::World;

impl Scenario for World {
    const ABOUT: About = About {
        name: "cluster",
        probes: &[
            "a node has joined",
            "a node has drained",
            "a node was killed",
            "a node lost power",
            "a node has stopped in order",
            "all nodes were killed",
            "all nodes lost power with unsynced logs",
            "a node stayed away for long after all had lost power",
            "slots continued that may lack the ends of their logs",
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
            "a start served lattice keys without a node that was away",
            "a reply about lattice keys passed replies that wait for copies",
            "two keys that are written together were read",
            "a fault lasted",
            "a worker stood still",
            "a live member was replaced",
            "a key has expired",
            "a transaction was executed",
            "a watched key was touched",
            "a watched key was as it had been",
            "elements were waited for",
            "a transaction over slots was executed",
            "a transaction over slots was prepared ahead of its message",
            "a transaction over slots was begun again in another order",
            "a transaction that only reads took no keys",
            "a transaction that only reads had to take its keys",
            "what a transaction reads has changed from one time to the next",
            "a value was copied to another slot",
            "a transaction over slots has an unknown outcome",
            "a transaction over slots has met its condition",
            "a transaction over slots has failed its condition",
            "a transaction over slots was undone",
            "a begun transaction was committed",
            "what a begun transaction had read was changed",
            "a begun transaction with a token was undone",
            "a client asks for an outcome",
            "an outcome was that all was executed",
            "an outcome was that nothing was executed",
            "a command of a begun transaction was refused",
            "a process without the secret was refused",
            "a node was stopped within a turn",
            "a member that was gone was forgotten",
            "a member was away for too long",
            "the coordinator was restored to an earlier state",
        ],
        many: 300,
        faults: &[
            Fault::Kernel(Planted::GatesOpen),
            Fault::Kernel(Planted::AllTakenForLattice),
            Fault::Kernel(Planted::CarriedAsOwn),
            Fault::Kernel(Planted::SaidBeforeLogged),
            Fault::Kernel(Planted::MarksNotWritten),
            Fault::Kernel(Planted::SlotKept),
            Fault::Kernel(Planted::GroupCut),
            Fault::Kernel(Planted::CopyExpires),
            Fault::Kernel(Planted::ExpiryNotAwaited),
            Fault::Kernel(Planted::DoubtAnswered),
            Fault::Kernel(Planted::SlotsNotAwaited),
            Fault::HealthNotSaid,
            Fault::WorkersNotSeen,
            Fault::Kernel(Planted::DoubtAskedAgain),
            Fault::Kernel(Planted::NodeNotTold),
            Fault::Kernel(Planted::NotCompared),
            Fault::Kernel(Planted::ToldNotLogged),
            Fault::Kernel(Planted::NodeNotAwaited),
            Fault::Kernel(Planted::MappingNotAwaited),
            Fault::Kernel(Planted::MergeSkipped),
            Fault::Chain(chain::Planted::NoLease),
            Fault::Wire(wire::Planted::ProofNotChecked),
            Fault::Kernel(Planted::TurnTimeKept),
            Fault::Kernel(Planted::KeysNotTaken),
            Fault::Kernel(Planted::DependentBeside),
            Fault::Kernel(Planted::DependentOrdered),
            Fault::Kernel(Planted::OutcomeNotSet),
            Fault::Kernel(Planted::CopiesNotClosed),
            Fault::Kernel(Planted::LossNotMarked),
            Fault::Kernel(Planted::AwayNotAwaited),
            Fault::Kernel(Planted::SyncNotAwaited),
            Fault::Kernel(Planted::LettersNotAwaited),
            Fault::Kernel(Planted::BookNotRead),
            Fault::Kernel(Planted::LettersNotRepeated),
            Fault::Kernel(Planted::ReadOnce),
            Fault::Kernel(Planted::UndoneInPart),
            Fault::Kernel(Planted::LeftAwaited),
            Fault::Kernel(Planted::WentBackUnnoticed),
            Fault::Mapping(mapping::Planted::ForgottenHeld),
            Fault::Kernel(Planted::ConditionsNotChecked),
            Fault::Kernel(Planted::ValuesNotGathered),
            Fault::Kernel(Planted::ChangesNotMade),
            Fault::Kernel(Planted::CopyNotWatched),
            Fault::Kernel(Planted::LostWatchTrusted),
            Fault::Kernel(Planted::EarlierHeadsHeard),
            Fault::Linear(Off::Waiting),
            Fault::Linear(Off::AppliedFirst),
            Fault::Linear(Off::SentAgain),
            Fault::Linear(Off::RestAwaited),
            Fault::Chain(chain::Planted::GatesOfWorker),
            Fault::Chain(chain::Planted::NotGivenUp),
            Fault::Chain(chain::Planted::StopWaitsAgain),
        ],
        flags: &["--nodes"],
        unsure: Unsure::NEVER,
    };

    type Options = Size;
    type Plan = Plan;
    type Event = world::Event;

    fn options(flags: &Flags) -> Result<Size, String> {
        Ok(flags.nodes.map_or(Size::Any, Size::Of))
    }

    fn plan(seed: u64, size: &Size, _: Fault) -> Plan {
        Plan::of(seed, *size)
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
        self.run_all()
    }

    fn describe(&self) -> String {
        self.state()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("epochs", self.coordinator.epoch()),
            ("operations", self.operations),
        ]
    }

    fn unsure(&self) -> u64 {
        self.history.unsure
    }
}
