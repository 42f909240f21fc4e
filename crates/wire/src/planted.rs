//! Deliberate faults: the simulator plants them one by one to check that its oracles find them.
//! Without the feature `planted-faults` there are none.

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// What a peer answers to a challenge is not checked.
    ProofNotChecked,
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
