//! What clients did to lattice keys, and how sure it is that it was done and
//! is kept.

use super::Thing;
use super::timed::Time;
use crate::history::{Epoch, Outcome, Record};
use crate::model::{Op, Step};

/// What a command does to a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deed {
    /// A string is written, or deleted; it may have a time to live. `over`:
    /// values that its connection had seen or written there before.
    Write {
        key: usize,
        value: Option<Thing>,
        px: Option<u64>,
        over: Vec<Thing>,
    },
    /// A string with causal order is written or deleted, and replaces what
    /// its writer had seen; `None`: it is unknown what that was.
    Replace {
        key: usize,
        value: Option<Thing>,
        over: Option<Vec<Thing>>,
        /// What he may have seen besides.
        perhaps: Vec<Thing>,
        /// A token says what was seen, and not what the connection did before.
        by_token: bool,
    },
    /// It turned out that nothing was to be done.
    Nothing {
        key: usize,
    },
    /// A string is to go after this many milliseconds, or is to stay.
    Expire {
        key: usize,
        px: Option<u64>,
        /// As its reply says.
        was_there: bool,
    },
    /// `needs`: what has to be shown to every client that is shown this.
    Add {
        key: usize,
        thing: Thing,
        needs: Vec<(usize, Thing)>,
    },
    /// One thing, or the key. `covered`: the things that it removed.
    Remove {
        key: usize,
        thing: Option<Thing>,
        covered: Vec<Thing>,
    },
    /// A collection is to go at a time.
    Time {
        key: usize,
        time: Time,
        /// As its reply says.
        was_there: bool,
    },
    /// A HyperLogLog gets all that another has: `things`, and perhaps more.
    Join {
        key: usize,
        from: usize,
        things: Vec<Thing>,
    },
    /// It is deleted, if it was there.
    Empty {
        key: usize,
        was_there: bool,
    },
    /// By this many quarters.
    Count {
        key: usize,
        by: i64,
    },
    /// Nothing is counted any more.
    Clear {
        key: usize,
    },
    Flush {
        db: usize,
    },
}

impl Deed {
    /// The key; a flush has none.
    pub(super) fn key(&self) -> Option<usize> {
        match *self {
            Deed::Write { key, .. }
            | Deed::Replace { key, .. }
            | Deed::Nothing { key }
            | Deed::Expire { key, .. }
            | Deed::Add { key, .. }
            | Deed::Remove { key, .. }
            | Deed::Time { key, .. }
            | Deed::Join { key, .. }
            | Deed::Empty { key, .. }
            | Deed::Count { key, .. }
            | Deed::Clear { key } => Some(key),
            Deed::Flush { .. } => None,
        }
    }

    /// See [`Deed::Expire`].
    pub(super) fn expire(key: usize, px: Option<u64>) -> Vec<Deed> {
        let was_there = true;
        vec![Deed::Expire { key, px, was_there }]
    }

    /// What is written once, here.
    pub(super) fn makes(&self) -> Option<Thing> {
        match *self {
            Deed::Write { value, .. } | Deed::Replace { value, .. } => value,
            Deed::Add { thing, .. } => Some(thing),
            _ => None,
        }
    }
}

/// A command, or a transaction of several.
#[derive(Clone, Debug)]
pub(super) struct Act {
    /// Of the node, from 1 on.
    pub life: usize,
    /// That of its connection.
    pub worker: usize,
    pub asked_us: u64,
    /// `u64::MAX`: it is unknown whether it was done.
    pub answered_us: u64,
    pub refused: bool,
    pub deeds: Vec<Deed>,
}

impl Act {
    /// Whether it was done, and all of these ends of the node have to keep it.
    pub(super) fn is_sure(&self, epochs: &[Epoch]) -> bool {
        let record = Record {
            op: Op::One(Step::Flush),
            outcome: Outcome::Open,
            connection: 0,
            order: 0,
            asked_us: self.asked_us,
            answered_us: self.answered_us,
        };
        let ends = &epochs[self.life - 1..];
        !self.refused
            && self.answered_us != u64::MAX
            && ends.iter().all(|epoch| epoch.holds(&record))
    }

    /// Whether it was over when the other was asked for.
    pub(super) fn is_before(&self, other: &Act) -> bool {
        self.life < other.life || self.answered_us <= other.asked_us
    }
}
