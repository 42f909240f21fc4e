//! Rules that can be switched off, to see that the model notices. Without the feature `planted-faults` none is.

/// A rule that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// Transactions are applied in the order of their final stamps.
    Stamps,
    /// Equal times are ordered by identity.
    Ties,
    /// An outcome waits until all predecessors are settled.
    Predecessors,
    /// Readers of what a transaction overwrites are predecessors.
    Readers,
    /// Conflicting transactions wait for one another.
    Waiting,
    /// Conditions are checked.
    Conditions,
    /// Only what is applied is passed back.
    AppliedFirst,
    /// Messages are sent again after a link or a head has changed.
    SentAgain,
    /// What is aborted is remembered.
    Aborts,
    /// The origin's answer is waited for before a transaction is forgotten.
    Heard,
    /// Slots forget after the slot before, when that has synced.
    Forgetting,
    /// Logs have a transaction before it is forgotten.
    Safe,
    /// A slot that has lost the end of its log asks for what it lacks.
    Redone,
    /// What other slots have admitted is admitted again, before anything else.
    Known,
    /// An abort is told when the log has it.
    AbortsSynced,
    /// What waits for keys that are not free is admitted when they are, and not before.
    Free,
    /// Answers count only if they were given after the last loss of any slot.
    Together,
    /// The last removal deletes a key with its deadline, and the next add begins one without it.
    Keys,
    /// Numbers have limits, at which the order of what is added shows.
    Limits,
    /// What was prepared ahead of its message is given up where the slot before has lost it.
    Withdrawn,
    /// A stamp is used ahead of its message when the last slot keeps what it is made of.
    DecidedKept,
    /// Transactions that visit slots in different orders do not wait for one another.
    Orders,
    /// They do not wait for one another behind requests either.
    Behind,
    /// What was forgotten ahead is not taken for new when a message about it arrives late.
    Past,
    /// What was prepared ahead of its message, and did not come yet, is not told to a slot that has lost something.
    AheadNotTold,
    /// What was applied alone is passed back when the slot after keeps it, too.
    RestAwaited,
}

/// All, with their names.
pub const ALL: [(&str, Off); 26] = [
    ("stamps", Off::Stamps),
    ("ties", Off::Ties),
    ("predecessors", Off::Predecessors),
    ("readers", Off::Readers),
    ("waiting", Off::Waiting),
    ("conditions", Off::Conditions),
    ("applied-first", Off::AppliedFirst),
    ("sent-again", Off::SentAgain),
    ("aborts", Off::Aborts),
    ("heard", Off::Heard),
    ("forgetting", Off::Forgetting),
    ("safe", Off::Safe),
    ("redone", Off::Redone),
    ("known", Off::Known),
    ("aborts-synced", Off::AbortsSynced),
    ("free", Off::Free),
    ("together", Off::Together),
    ("keys", Off::Keys),
    ("limits", Off::Limits),
    ("withdrawn", Off::Withdrawn),
    ("decided-kept", Off::DecidedKept),
    ("rest-awaited", Off::RestAwaited),
    ("past", Off::Past),
    ("ahead-not-told", Off::AheadNotTold),
    ("orders", Off::Orders),
    ("behind", Off::Behind),
];

#[cfg(feature = "planted-faults")]
mod switch {
    use super::Off;
    use std::cell::Cell;

    thread_local! {
        static OFF: Cell<Option<Off>> = const { Cell::new(None) };
    }

    /// Switches a rule off for this thread, and the others on.
    pub fn set(off: Option<Off>) {
        OFF.set(off);
    }

    pub(crate) fn is(off: Off) -> bool {
        OFF.get() == Some(off)
    }
}

#[cfg(feature = "planted-faults")]
pub(crate) use switch::is;
#[cfg(feature = "planted-faults")]
pub use switch::set;

#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub(crate) fn is(_: Off) -> bool {
    false
}
