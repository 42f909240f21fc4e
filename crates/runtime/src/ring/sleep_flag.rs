//! The flag that makes a wake-up free while its receiver is running.
//!
//! One side *publishes* (pushes a message, frees a place in a ring) and then
//! asks [`SleepFlag::must_wake`]; the other side *announces* that it is about
//! to sleep and then takes a last look at what was published. No wake-up is
//! lost, because each side writes, passes a sequentially consistent fence, and
//! then reads what the other has written. Fences of that kind are in one
//! total order. If the publisher's comes first, the last look sees what was
//! published; if the sleeper's comes first, the publisher sees the flag. Both
//! may happen (one wake-up too many), neither cannot.
//!
//! `tests/sleep_flag_model.rs` compiles this very file against loom and tries
//! every interleaving; hence `super::sync` instead of `std`.

use super::sync::{AtomicBool, Ordering, fence};

/// Set while the owner sleeps or is about to.
#[derive(Debug)]
pub(crate) struct SleepFlag(AtomicBool);

impl SleepFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Before the last look at what others may have published. A swap rather
    /// than a store, so that it is ordered after every swap of a publisher
    /// that was still busy with an earlier sleep.
    pub(crate) fn announce(&self) {
        self.0.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// The last look found something, or the owner is running again.
    pub(crate) fn withdraw(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// After publishing: whether the caller has to wake the owner. Of several
    /// concurrent callers, one gets true.
    pub(crate) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}
