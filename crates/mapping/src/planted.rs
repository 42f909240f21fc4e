//! Deliberate faults of the planner: the model and the simulator plant them one by one to check
//! that they are found. Without the feature `planted-faults` there are none.

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Of members that have all stopped, the first that is back continues.
    FirstBack,
    /// Copies of one chain count as equal, however many writes they have.
    EpochAlone,
    /// The copy with the most writes continues, although a later chain has replaced some.
    SequenceAlone,
    /// A member is dropped before the others have confirmed that they have the slot.
    DroppedAtOnce,
    /// A slot of which no copy is left continues in the chain that it had.
    NotBornAgain,
    /// Halted chains wait for the copies of a member that is forgotten.
    ForgottenHeld,
    /// A restarted member counts as one that has its data.
    RestartUnnoticed,
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Plants a fault in the planner of this thread, or removes it.
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
