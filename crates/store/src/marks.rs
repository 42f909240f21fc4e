//! States that a simulated run has reached and that are not visible from outside. Without the feature
//! `planted-faults` nothing is counted.

/// The states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A packed collection became a large one.
    Grew,
    /// A snapshot continued a collection that an earlier step had begun.
    SavedOn,
    /// A chunk reached its full length.
    FullChunk,
}

impl Mark {
    pub const ALL: [Mark; 3] = [Mark::Grew, Mark::SavedOn, Mark::FullChunk];
}

#[cfg(feature = "planted-faults")]
mod on {
    use super::Mark;
    use std::cell::Cell;

    thread_local! {
        static COUNTS: [Cell<u64>; Mark::ALL.len()] = const { [const { Cell::new(0) }; Mark::ALL.len()] };
    }

    pub(crate) fn hit(mark: Mark) {
        COUNTS.with(|counts| counts[mark as usize].update(|count| count + 1));
    }

    /// How often this thread reached the state since the last call.
    pub fn take(mark: Mark) -> u64 {
        COUNTS.with(|counts| counts[mark as usize].take())
    }
}

#[cfg(feature = "planted-faults")]
pub use on::take;

#[cfg(feature = "planted-faults")]
pub(crate) use on::hit;

#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub(crate) fn hit(_mark: Mark) {}
