//! Faults on purpose: the simulator plants them one by one to see that its
//! oracles find them. Without the feature `planted-faults` there are none.

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Frames are taken as they are, whatever their checksum.
    SkippedChecksum,
    /// A record that changes while a snapshot is under way is left out of it.
    SnapshotMissesWrite,
    /// Commands on several keys do not wait for one another.
    NoIsolation,
    /// Now and then nobody looks after those who wait for a key.
    LostWakeUp,
    /// Who waits for a key is served after those behind.
    LaterFirst,
    /// A snapshot leaves out a part of a large collection.
    SnapshotLosesChunk,
    /// Now and then an owner is not told what a command over workers changed.
    DroppedEffect,
    /// The same, of replicated keys alone.
    DroppedReplicaEffect,
    /// Now and then an operation on a collection is answered, and not done.
    ForgottenCommit,
    /// Now and then a quiet command is answered, and not run.
    QuietNotRun,
    /// The change that makes a packed collection a large one is lost.
    GrowthLosesChange,
    /// Of a value of several chunks the log gets the first one.
    LogLosesChunk,
    /// Sessions do not keep what they have read.
    ReadsNotKept,
    /// Sessions do not keep what their writes made of the keys.
    WritesNotKept,
    /// A session's write may have a stamp below its earlier ones.
    NotAboveOwnWrites,
    /// A session's write may have a stamp below what it has read.
    NotAboveReads,
    /// Changes are shown before those that they may depend on.
    CutNotKept,
    /// What replicas are to take over together comes and is shown key by key.
    EpochInParts,
    /// A transaction reads an item anew each time.
    ReadsNotCached,
    /// What was deleted is forgotten at once.
    ForgottenEarly,
    /// What was deleted is forgotten without waiting for other nodes.
    NodeNotAwaited,
    /// One of the other nodes is not told of changes.
    NodeNotTold,
    /// After a break, what the other node has not acknowledged is not sent again.
    NotSentAgain,
    /// What a node missed is not found by digests.
    NotCompared,
    /// A log does not say what other nodes have told.
    ToldNotLogged,
    /// A node that ended before it served goes on with what it had been told.
    UnservedKept,
    /// Now and then other replicas are not told of a change.
    ChangeNotSent,
    /// Now and then what another replica has sent is not merged.
    MergeSkipped,
    /// After a start, others are told but some of what is here.
    StartNotTold,
    /// A start merges counts of nothing with what they had outlived.
    CountsNotHeld,
    /// A start takes away counts that a removal does not name.
    EndTakesCounts,
    /// What is forgotten while a snapshot is under way is left out of it.
    SnapshotMissesForgotten,
    /// A write with causal order replaces also what it has not seen.
    UnseenReplaced,
    /// A write with causal order replaces nothing.
    SeenNotReplaced,
    /// A command is refused for want of memory, and done all the same.
    RefusedAndDone,
    /// The log is not told of deadlines of replicated collections.
    DeadlineNotLogged,
    /// Now and then a write of a transaction is done before it is committed.
    DoneAtOnce,
    /// Each write of a transaction that writes at once has a stamp of its own.
    StampsApart,
    /// Now and then a command of a transaction is not done when that is committed.
    CommitLosesCommand,
    /// Replies wait for the log alone, not for the chains.
    GatesOpen,
    /// Replies that tell of strict keys are taken for such as tell of lattice keys alone.
    AllTakenForLattice,
    /// What other nodes sent goes along the chains as if commands had done it.
    CarriedAsOwn,
    /// What goes on along a chain does not wait for the log.
    SaidBeforeLogged,
    /// The log is not told what is here of which slot.
    MarksNotWritten,
    /// Who leaves a chain keeps what it has of the slot.
    SlotKept,
    /// A write that another node may have done is asked for again.
    DoubtAskedAgain,
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
        static TURN: Cell<u32> = const { Cell::new(0) };
    }

    /// Plants a fault in all nodes of this thread, or takes it away.
    pub fn plant(fault: Option<Planted>) {
        PLANTED.with(|p| p.set(fault));
        TURN.with(|turn| turn.set(0));
    }

    /// Whether this is done wrong.
    #[inline]
    pub fn is(fault: Planted) -> bool {
        PLANTED.with(|p| p.get() == Some(fault))
    }

    /// One time in eight, for faults that have no lot of their own.
    pub fn now_and_then() -> bool {
        TURN.with(|turn| turn.replace(turn.get() + 1) % 8 == 7)
    }
}

#[cfg(feature = "planted-faults")]
pub use on::{is, plant};

#[cfg(feature = "planted-faults")]
pub use on::now_and_then;

/// Nothing is done wrong.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub fn is(_fault: Planted) -> bool {
    false
}

#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub fn now_and_then() -> bool {
    false
}
