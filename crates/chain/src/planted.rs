//! Deliberate faults: the simulator plants them one by one to check that its oracles find them.
//! Without the feature `planted-faults` there are none.

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A new chain acts at once, while other nodes may still serve by the earlier one.
    NotOutwaited,
    /// A restarted node forgets that it may have granted leases.
    GrantsForgotten,
    /// Leases are granted before the first mapping after a start is known.
    GrantsUnknowing,
    /// A learner is reported before acknowledgements wait for it.
    LearnedEarly,
    /// A new head does not ask for the other members' state.
    NotHandedOver,
    /// A new head serves before all members have the writes that it has adopted.
    TakenOverShown,
    /// A member acknowledges writes that those behind it do not have.
    AckedEarly,
    /// Messages of an earlier chain are accepted.
    OldChainTaken,
    /// Leases are not required.
    NoLease,
    /// Leases are between nodes: any worker counts for the others of its node.
    LeaseOfNode,
    /// After a link was down, states are not sent again.
    NotRepeated,
    /// A learner keeps data of an earlier copy.
    CopiedOver,
    /// A learner does not notice missing parts of a copy.
    PartsNotCounted,
    /// A learner that was told to copy the slot again counts as one that has its earlier copy.
    BehindForgotten,
    /// Peers that a worker shares no slot with any more are not told its epochs.
    FormerNotTold,
    /// Replies wait for all writes of their worker, not for those of their slots. It is planted where
    /// replies are kept, in the kernel.
    GatesOfWorker,
    /// Replies wait for copies without end. Planted there, too.
    NotGivenUp,
    /// A node that stops, and has waited for others, waits again for each later command.
    StopWaitsAgain,
    /// A copy keeps the epoch of the first chain that it was in.
    OldMarkKept,
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Plants a fault in all replicas of this thread, or removes it.
    pub fn plant(fault: Option<Planted>) {
        PLANTED.with(|planted| planted.set(fault));
    }

    pub fn is(fault: Planted) -> bool {
        PLANTED.with(|planted| planted.get() == Some(fault))
    }
}

#[cfg(feature = "planted-faults")]
pub use on::plant;

#[cfg(feature = "planted-faults")]
pub use on::is;

#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub fn is(_fault: Planted) -> bool {
    false
}
