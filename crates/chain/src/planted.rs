//! Faults on purpose: the simulator plants them one by one to see that its
//! oracles find them. Without the feature `planted-faults` there are none.

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A new chain acts at once, while others may answer by the earlier one.
    NotOutwaited,
    /// A node that has started again forgets that it may have granted leases.
    GrantsForgotten,
    /// Leases are granted before the first mapping after a start is known.
    GrantsUnknowing,
    /// A learner is reported before acknowledgements wait for it.
    LearnedEarly,
    /// A new head does not ask what others have.
    NotHandedOver,
    /// A new head answers before all have what it has taken over.
    TakenOverShown,
    /// A member acknowledges what those behind it have not.
    AckedEarly,
    /// What is said of an earlier chain is taken.
    OldChainTaken,
    /// Nobody needs a lease.
    NoLease,
    /// Leases are of nodes: any worker counts for those beside it.
    LeaseOfNode,
    /// After a link was down nobody says what is here.
    NotRepeated,
    /// A learner keeps what it has of an earlier copy.
    CopiedOver,
    /// A learner does not see that parts of a copy are missing.
    PartsNotCounted,
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Plants a fault in all replicas of this thread, or takes it away.
    pub fn plant(fault: Option<Planted>) {
        PLANTED.with(|planted| planted.set(fault));
    }

    pub(crate) fn is(fault: Planted) -> bool {
        PLANTED.with(|planted| planted.get() == Some(fault))
    }
}

#[cfg(feature = "planted-faults")]
pub use on::plant;

#[cfg(feature = "planted-faults")]
pub(crate) use on::is;

#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub(crate) fn is(_fault: Planted) -> bool {
    false
}
