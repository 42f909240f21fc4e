//! Faults on purpose, to see that the tests' oracle finds them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A new chain acts at once, while others may answer by the earlier one.
    NotOutwaited,
    /// A learner is reported before acknowledgements wait for it.
    LearnedEarly,
    /// A new head does not ask what others have.
    NotHandedOver,
    /// A member acknowledges what those behind it have not.
    AckedEarly,
    /// Effects go to a learner whose copy has not got there.
    CopyNotFiltered,
    /// What is said of an earlier chain is taken.
    OldChainTaken,
    /// Nobody needs a lease.
    NoLease,
    /// After a link was down nobody says what is here.
    NotRepeated,
}

#[cfg(test)]
thread_local! {
    pub(crate) static PLANTED: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(crate) fn is(fault: Planted) -> bool {
    PLANTED.with(|planted| planted.get() == Some(fault))
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn is(_fault: Planted) -> bool {
    false
}
