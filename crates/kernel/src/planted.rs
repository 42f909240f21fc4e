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
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Plants a fault in all nodes of this thread, or takes it away.
    pub fn plant(fault: Option<Planted>) {
        PLANTED.with(|p| p.set(fault));
    }

    #[inline]
    pub(crate) fn is(fault: Planted) -> bool {
        PLANTED.with(|p| p.get() == Some(fault))
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
