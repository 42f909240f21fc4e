//! Deliberate faults: the simulator plants them one by one to verify that its oracles find them. Without the feature
//! `planted-faults` there are none.

/// The faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Frames are accepted whatever their checksum.
    SkippedChecksum,
    /// A record that changes during a snapshot is missing from it.
    SnapshotMissesWrite,
    /// Commands on several keys do not wait for one another.
    NoIsolation,
    /// Occasionally the waiters of a key are not served.
    LostWakeUp,
    /// A later waiter of a key is served before an earlier one.
    LaterFirst,
    /// The log counts as in use before a start would find what it has.
    LogSaidEarly,
    /// Neither the reply nor a stop waits for a log that is being switched on.
    SwitchNotAwaited,
    /// A last frame that is whole but for a bit is taken for one that a loss of power cut short.
    FlipTakenForTorn,
    /// Replies do not wait where unsynced writes are older than the settings allow.
    BoundNotKept,
    /// A snapshot omits a part of a large collection.
    SnapshotLosesChunk,
    /// Occasionally an effect of a command over workers does not reach the owner.
    DroppedEffect,
    /// The same, of replicated keys only.
    DroppedReplicaEffect,
    /// Occasionally an operation on a collection is answered but not applied.
    ForgottenCommit,
    /// Occasionally a quiet command is answered but not executed.
    QuietNotRun,
    /// The change that turns a packed collection into a large one is lost.
    GrowthLosesChange,
    /// Of a value of several chunks the log has only the first one.
    LogLosesChunk,
    /// Changes are shown before those that they may depend on.
    CutNotKept,
    /// What a node had sent that is away is not sent on.
    RelayNotSent,
    /// A session goes on at a worker that lacks something of what it has seen.
    SessionNotAwaited,
    /// A session does not take along what its worker has not sent yet.
    OwnNotSeen,
    /// Nor what it has read of an epoch that is being received.
    OpenNotSeen,
    /// Changes that replicas must apply together are sent and applied key by key.
    EpochInParts,
    /// A transaction reads the current value of an item each time.
    ReadsNotCached,
    /// Deletions are forgotten at once.
    ForgottenEarly,
    /// Deletions are forgotten without waiting for other nodes.
    NodeNotAwaited,
    /// Before it knows the mapping, a node forgets deletions as if it were alone.
    MappingNotAwaited,
    /// The first node of a cluster goes on with its replicas as those of a node without one.
    JoinUnnoticed,
    /// Nodes that are no members any more are awaited.
    GoneAwaited,
    /// What a coordinator has is taken for later than what a node knows, also where it was restored to an earlier state.
    WentBackUnnoticed,
    /// One of the other nodes is not sent changes.
    NodeNotTold,
    /// After a connection failure, unacknowledged changes are not sent again.
    NotSentAgain,
    /// Changes that a node missed are not found by digests.
    NotCompared,
    /// A log lacks what was received from other nodes.
    ToldNotLogged,
    /// The log lacks up to which time a node has reported to have sent everything.
    ReportNotLogged,
    /// Occasionally a change is not sent to other replicas.
    ChangeNotSent,
    /// Occasionally what another replica has sent is not merged.
    MergeSkipped,
    /// At startup, only some of the local state is sent to other replicas.
    StartNotTold,
    /// At startup, counts that began on nothing are merged with what preceded them.
    CountsNotHeld,
    /// At startup, counts are dropped that a removal does not name.
    EndTakesCounts,
    /// What is forgotten during a snapshot is missing from it.
    SnapshotMissesForgotten,
    /// A write with causal order replaces also what it has not seen.
    UnseenReplaced,
    /// A write with causal order replaces nothing.
    SeenNotReplaced,
    /// A command is refused for lack of memory, but executed.
    RefusedAndDone,
    /// Deadlines of replicated collections are missing from the log.
    DeadlineNotLogged,
    /// Deadlines of replicated keys count from the wall clock, whatever stamps are ahead of it.
    DeadlineByWall,
    /// A deadline of a replicated string writes the value again that is shown with it.
    DeadlineWritesValue,
    /// Replicated keys are written however far clocks lead.
    LeadIgnored,
    /// Stamps of other nodes are taken however far they lead.
    LeadAdmitted,
    /// Occasionally a write of a transaction is applied before the commit.
    DoneAtOnce,
    /// Each write of a transaction at `read-uncommitted` has a stamp of its own.
    StampsApart,
    /// Occasionally a command of a transaction is not applied at its commit.
    CommitLosesCommand,
    /// Replies wait for the log alone, not for the chains.
    GatesOpen,
    /// Replies that depend on strict keys are treated as if they depended on lattice keys only.
    AllTakenForLattice,
    /// What other nodes sent is forwarded along the chains like local changes.
    CarriedAsOwn,
    /// Messages along a chain are sent before their frame is logged.
    SaidBeforeLogged,
    /// The log does not say how much of each slot is here.
    MarksNotWritten,
    /// What a command writes is passed along the chain in parts.
    GroupCut,
    /// A node that leaves a chain keeps the slot's data.
    SlotKept,
    /// A write that another node may have executed is sent again.
    DoubtAskedAgain,
    /// Commands over workers whose outcome was told to be unknown are answered.
    DoubtAnswered,
    /// A copy judges by its own clock whether a key has expired.
    CopyExpires,
    /// Replies do not wait until copies have the removal of an expired key.
    ExpiryNotAwaited,
    /// Commands over workers are refused at once while no node serves their slot.
    SlotsNotAwaited,
    /// A turn goes by the time at which it began, whatever has stopped it since.
    TurnTimeKept,
    /// A transaction over slots does not keep others from its keys.
    KeysNotTaken,
    /// Transactions that depend on one another are open at the same time.
    DependentBeside,
    /// The question for an outcome that there is not does not decide it.
    OutcomeNotSet,
    /// Transactions that depend on one another are ordered, instead of kept apart.
    DependentOrdered,
    /// Copies answer reads of a slot while transactions are open there.
    CopiesNotClosed,
    /// Messages of a slot's transactions leave before copies and log have what they tell of.
    LettersNotAwaited,
    /// A new head of a slot does not know the transactions of the one before it.
    BookNotRead,
    /// Messages of transactions are not sent again.
    LettersNotRepeated,
    /// Transactions over slots are executed whatever their conditions.
    ConditionsNotChecked,
    /// A slot does not add its values to transactions whose commands are executed together.
    ValuesNotGathered,
    /// A slot does not change its keys as commands that were executed at another slot tell.
    ChangesNotMade,
    /// A key that is copied for a transaction is not watched.
    CopyNotWatched,
    /// A watch counts as if it had lasted, though the chain of its slot has changed.
    LostWatchTrusted,
    /// Messages between slots have an effect whichever chains they are of.
    EarlierHeadsHeard,
    /// Transactions that only read are answered with the first values that slots tell.
    ReadOnce,
    /// What an error undoes stays at the slot that has executed the commands.
    UndoneInPart,
    /// A slot that may have lost the end of its log goes on without asking others.
    LossNotMarked,
    /// It does not wait for slots without a head.
    AwayNotAwaited,
    /// What lets other slots forget a transaction does not wait until the log is synced.
    SyncNotAwaited,
    /// Replies of a node that has left the chains of their keys are awaited without end, by it and by others.
    LeftAwaited,
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
        static TURN: Cell<u32> = const { Cell::new(0) };
    }

    /// Plants a fault in all nodes of this thread, or removes it.
    pub fn plant(fault: Option<Planted>) {
        PLANTED.with(|p| p.set(fault));
        TURN.with(|turn| turn.set(0));
    }

    /// Whether this fault is planted.
    #[inline]
    pub fn is(fault: Planted) -> bool {
        PLANTED.with(|p| p.get() == Some(fault))
    }

    /// True one time in eight, for faults without randomness of their own.
    pub fn now_and_then() -> bool {
        TURN.with(|turn| turn.replace(turn.get() + 1) % 8 == 7)
    }
}

#[cfg(feature = "planted-faults")]
pub use on::{is, plant};

#[cfg(feature = "planted-faults")]
pub use on::now_and_then;

/// No fault is planted.
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
