//! Faults that are planted on purpose, to see that the oracles find them.

use crate::random::Random;
use rufous_base::Now;
use rufous_kernel::planted::{self, Planted};
use rufous_kernel::worker;
use rufous_server::front::Message;

/// What is wrong with the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Replies leave before what they tell of is on disk.
    ReplyBeforeSync,
    /// Now and then a worker believes that it is later than it is.
    ExpiryTooEarly,
    /// A message between workers is lost now and then.
    MessageLost,
    /// A batch for another replica is lost now and then.
    BatchLost,
    /// Of the kernel.
    Kernel(Planted),
}

impl Fault {
    pub const ALL: [(Fault, &'static str); 29] = [
        (Fault::ReplyBeforeSync, "reply-before-sync"),
        (Fault::ExpiryTooEarly, "expiry-too-early"),
        (Fault::MessageLost, "message-lost"),
        (Fault::Kernel(Planted::SkippedChecksum), "skipped-checksum"),
        (
            Fault::Kernel(Planted::SnapshotMissesWrite),
            "snapshot-misses-write",
        ),
        (Fault::Kernel(Planted::NoIsolation), "no-isolation"),
        (Fault::Kernel(Planted::LostWakeUp), "lost-wake-up"),
        (Fault::Kernel(Planted::LaterFirst), "later-first"),
        (
            Fault::Kernel(Planted::SnapshotLosesChunk),
            "snapshot-loses-chunk",
        ),
        (Fault::Kernel(Planted::DroppedEffect), "dropped-effect"),
        (
            Fault::Kernel(Planted::DroppedReplicaEffect),
            "dropped-replica-effect",
        ),
        (Fault::Kernel(Planted::ForgottenCommit), "forgotten-commit"),
        (Fault::Kernel(Planted::QuietNotRun), "quiet-not-run"),
        (
            Fault::Kernel(Planted::GrowthLosesChange),
            "growth-loses-change",
        ),
        (Fault::Kernel(Planted::LogLosesChunk), "log-loses-chunk"),
        (Fault::BatchLost, "batch-lost"),
        (Fault::Kernel(Planted::MergeSkipped), "merge-skipped"),
        (Fault::Kernel(Planted::StartNotTold), "start-not-told"),
        (Fault::Kernel(Planted::CountsNotHeld), "counts-not-held"),
        (Fault::Kernel(Planted::ForgottenEarly), "forgotten-early"),
        (Fault::Kernel(Planted::ChangeNotSent), "change-not-sent"),
        (Fault::Kernel(Planted::UnseenReplaced), "unseen-replaced"),
        (Fault::Kernel(Planted::SeenNotReplaced), "seen-not-replaced"),
        (Fault::Kernel(Planted::RefusedAndDone), "refused-and-done"),
        (
            Fault::Kernel(Planted::DeadlineNotLogged),
            "deadline-not-logged",
        ),
        (Fault::Kernel(Planted::DoneAtOnce), "done-at-once"),
        (Fault::Kernel(Planted::ReadsNotCached), "reads-not-cached"),
        (Fault::Kernel(Planted::StampsApart), "stamps-apart"),
        (
            Fault::Kernel(Planted::CommitLosesCommand),
            "commit-loses-command",
        ),
    ];

    pub fn named(name: &str) -> Option<Fault> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(fault, _)| *fault)
    }

    /// Tells the kernels of this thread.
    pub(crate) fn plant(self) {
        planted::plant(match self {
            Fault::Kernel(fault) => Some(fault),
            _ => None,
        });
    }

    pub(crate) fn change_clock(self, now: &mut Now, random: &mut Random) {
        if self == Fault::ExpiryTooEarly && random.chance(0.2) {
            now.unix_us += 200_000;
        }
    }

    pub(crate) fn loses_message(self, message: &Message, random: &mut Random) -> bool {
        let replicates = || matches!(message, Message::Kernel(worker::Message::Replicate(_)));
        match self {
            Fault::MessageLost => random.chance(0.01),
            Fault::BatchLost => replicates() && random.chance(0.1),
            _ => false,
        }
    }
}
