//! Deliberate faults: the simulator plants them one by one to check that its oracles find them.
//! Without the feature `planted-faults` there are none.

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// What a peer answers to a challenge is not checked.
    ProofNotChecked,
    /// What has waited for another node and was executed is said to be elsewhere.
    ServedAsMoved,
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Plants a fault in all sessions of this thread, or removes it.
    pub fn plant(fault: Option<Planted>) {
        PLANTED.with(|planted| planted.set(fault));
    }

    /// Whether this fault is planted.
    pub fn is(fault: Planted) -> bool {
        PLANTED.with(|planted| planted.get() == Some(fault))
    }
}

#[cfg(feature = "planted-faults")]
pub use on::{is, plant};

#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub fn is(_fault: Planted) -> bool {
    false
}
