//! Mechanisms that are switched off on purpose, to see that the oracles of
//! the levels find it.

use rufous_kernel::planted::{self, Planted};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Each write of a transaction has a stamp of its own.
    StampPerWrite,
    /// Writes of a transaction are done before it is committed.
    WritesAtOnce,
    /// Of the kernel.
    Kernel(Planted),
}

impl Fault {
    pub const ALL: [(Fault, &'static str); 13] = [
        (Fault::StampPerWrite, "stamp-per-write"),
        (Fault::WritesAtOnce, "writes-at-once"),
        (Fault::Kernel(Planted::ReadsNotKept), "reads-not-kept"),
        (Fault::Kernel(Planted::WritesNotKept), "writes-not-kept"),
        (
            Fault::Kernel(Planted::NotAboveOwnWrites),
            "not-above-own-writes",
        ),
        (Fault::Kernel(Planted::NotAboveReads), "not-above-reads"),
        (Fault::Kernel(Planted::CutNotKept), "cut-not-kept"),
        (Fault::Kernel(Planted::EpochInParts), "epoch-in-parts"),
        (Fault::Kernel(Planted::ReadsNotCached), "reads-not-cached"),
        (Fault::Kernel(Planted::ForgottenEarly), "forgotten-early"),
        (Fault::Kernel(Planted::EndTakesCounts), "end-takes-counts"),
        (Fault::Kernel(Planted::ChangeNotSent), "change-not-sent"),
        (
            Fault::Kernel(Planted::SnapshotMissesForgotten),
            "snapshot-misses-forgotten",
        ),
    ];

    pub fn named(name: &str) -> Option<Fault> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(fault, _)| *fault)
    }

    /// Tells the kernels of this thread.
    pub(super) fn plant(self) {
        planted::plant(match self {
            Fault::Kernel(fault) => Some(fault),
            _ => None,
        });
    }
}
