//! The node as a scenario.

use super::{Event, World};
use crate::engine::runner::Flags;
use crate::engine::{About, Engine, Fault, Scenario, Unsure};
use crate::node::plan::{Limits, Plan};
use rufous_base::Now;
use rufous_kernel::planted::Planted;
use rufous_kernel::worker;
use rufous_server::front::Message;

impl Scenario for World {
    const ABOUT: About = About {
        name: "node",
        probes: &[
            "turn with many inputs",
            "request split",
            "read held",
            "connection lost with requests",
            "clock jumped back",
            "clock jumped ahead",
            "key expired",
            "messages overtook",
            "exec succeeded",
            "exec aborted",
            "watched key touched",
            "reply waited for gate",
            "replies abandoned",
            "process killed",
            "power lost",
            "clean stop",
            "write torn",
            "name lost",
            "disk full",
            "write failed",
            "sync failed",
            "bit flipped",
            "loading",
            "misconf",
            "out of memory",
            "evicted",
            "lattice key evicted",
            "workers changed",
            "segment rotated",
            "manifest replaced",
            "earlier save kept",
            "crash during snapshot",
            "crash during load",
            "loss allowed and seen",
            "start refused",
            "outcome unknown",
            "wait served",
            "wait timed out",
            "order judged",
            "collection grew",
            "collection shrank",
            "collection saved in parts",
            "chunk of 64 KiB",
            "wrong type",
            "quiet update",
            "lattice refused",
            "lattice exec",
            "table changed",
            "siblings shown",
            "log switched on",
            "ended without a log",
        ],
        many: 1_000,
        faults: &[
            Fault::ReplyBeforeSync,
            Fault::ExpiryTooEarly,
            Fault::MessageLost,
            Fault::Kernel(Planted::SkippedChecksum),
            Fault::Kernel(Planted::SnapshotMissesWrite),
            Fault::Kernel(Planted::NoIsolation),
            Fault::Kernel(Planted::LostWakeUp),
            Fault::Kernel(Planted::LaterFirst),
            Fault::Kernel(Planted::SnapshotLosesChunk),
            Fault::Kernel(Planted::DroppedEffect),
            Fault::Kernel(Planted::DroppedReplicaEffect),
            Fault::Kernel(Planted::ForgottenCommit),
            Fault::Kernel(Planted::QuietNotRun),
            Fault::Kernel(Planted::GrowthLosesChange),
            Fault::Kernel(Planted::LogLosesChunk),
            Fault::BatchLost,
            Fault::Kernel(Planted::MergeSkipped),
            Fault::Kernel(Planted::StartNotTold),
            Fault::Kernel(Planted::CountsNotHeld),
            Fault::Kernel(Planted::ForgottenEarly),
            Fault::Kernel(Planted::ChangeNotSent),
            Fault::Kernel(Planted::UnseenReplaced),
            Fault::Kernel(Planted::SeenNotReplaced),
            Fault::Kernel(Planted::RefusedAndDone),
            Fault::Kernel(Planted::DeadlineNotLogged),
            Fault::Kernel(Planted::DeadlineByWall),
            Fault::Kernel(Planted::LeadIgnored),
            Fault::Kernel(Planted::DoneAtOnce),
            Fault::Kernel(Planted::ReadsNotCached),
            Fault::Kernel(Planted::StampsApart),
            Fault::Kernel(Planted::CommitLosesCommand),
            Fault::Kernel(Planted::CutNotKept),
            Fault::Kernel(Planted::EpochInParts),
            Fault::Kernel(Planted::EndTakesCounts),
            Fault::Kernel(Planted::SnapshotMissesForgotten),
            Fault::Kernel(Planted::LogSaidEarly),
            Fault::Kernel(Planted::SwitchNotAwaited),
            Fault::Kernel(Planted::FlipTakenForTorn),
            Fault::Kernel(Planted::BoundNotKept),
        ],
        flags: &["--lattice", "--small-jumps"],
        unsure: Unsure {
            per_thousand_seeds: 12,
            why: "the history of a unit is too wide where many of its writes have no known outcome; \
                  6 of seeds 0 to 499",
        },
    };

    type Options = Limits;
    type Plan = Plan;
    type Event = Event;

    fn options(flags: &Flags) -> Result<Limits, String> {
        Ok(Limits {
            lattice: flags.lattice.then_some(true),
            small_jumps: flags.small_jumps,
            ..Limits::default()
        })
    }

    fn plan(seed: u64, limits: &Limits, _: Fault) -> Plan {
        Plan::new(seed, limits)
    }

    fn build(plan: Plan, fault: Fault, engine: Engine<Event>) -> Self {
        World::new(plan, fault, engine)
    }

    fn engine(&mut self) -> &mut Engine<Event> {
        &mut self.engine
    }

    fn handle(&mut self, event: Event) {
        self.on_event(event);
    }

    fn play(&mut self) -> Result<(), String> {
        self.take_marks(false);
        self.script();
        self.take_marks(true);
        if !self.engine.has_failed() {
            self.judge();
        }
        self.engine.outcome()
    }

    fn describe(&self) -> String {
        self.state()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("operations", self.finished + self.lattice.operations())]
    }

    fn unsure(&self) -> u64 {
        self.history.unsure
    }
}

/// Planted faults of the world around the node.
impl World {
    /// What a worker takes for the time.
    pub(super) fn time_of_turn(&mut self) -> Now {
        let mut now = self.now();
        if self.fault == Fault::ExpiryTooEarly && self.chance.chance(0.2) {
            now.unix_us += 200_000;
        }
        now
    }

    pub(super) fn loses(&mut self, message: &Message) -> bool {
        let replicates = || matches!(message, Message::Kernel(worker::Message::Replicate(_)));
        match self.fault {
            Fault::MessageLost => self.chance.chance(0.01),
            Fault::BatchLost => replicates() && self.chance.chance(0.1),
            _ => false,
        }
    }
}
