//! What an operation reads and writes of a key, in parts that can be compared without the state.
//!
//! A key is its presence with its type, its deadline, and its value, which has parts: elements, their number, and two ends.
//! An [`Access`] is to one of these in a mode. Two operations are independent if each access of one commutes with each
//! of the other. That is less than a type's rules know, which look into the state, and it needs no state: it holds in
//! each. What little of the state matters is in a [`Context`].

use super::Type;

/// A place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Anything that can be observed of the key: for conditions on its version.
    Version,
    Deadline,
    /// The value with all of its parts.
    Whole,
    /// The number of elements.
    Size,
    Front,
    Back,
    /// An element, by the hash of its name. Names with one hash count as one.
    Element(u64),
}

impl Place {
    /// Whether it is a part of [`Place::Whole`].
    pub(super) fn is_part(self) -> bool {
        matches!(
            self,
            Self::Size | Self::Front | Self::Back | Self::Element(_)
        )
    }
}

/// What is done at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Read,
    /// Writes, and no reply depends on the state before.
    Write,
    /// Reads and writes.
    Update,
    /// Writes so that any order of these leaves the same, and replies with nothing of it.
    Shift,
    /// Likewise, and they are numbers that are added: any order leaves the same while all sums fit.
    Count(i64),
    /// Puts in what may be there already.
    Insert,
    /// Takes out what may be gone already.
    Discard,
}

impl Mode {
    pub(super) const CLASSES: [Mode; 7] = [
        Mode::Read,
        Mode::Write,
        Mode::Update,
        Mode::Shift,
        Mode::Count(0),
        Mode::Insert,
        Mode::Discard,
    ];

    pub(super) fn class(self) -> usize {
        match self {
            Mode::Read => 0,
            Mode::Write => 1,
            Mode::Update => 2,
            Mode::Shift => 3,
            Mode::Count(_) => 4,
            Mode::Insert => 5,
            Mode::Discard => 6,
        }
    }

    pub(super) fn writes(self) -> bool {
        self != Mode::Read
    }

    fn reads(self) -> bool {
        matches!(self, Mode::Read | Mode::Update | Mode::Count(_))
    }

    /// Whether two at the same place commute.
    pub(super) fn commutes(self, other: Mode, context: Context) -> bool {
        match (self, other) {
            (Mode::Read, Mode::Read)
            | (Mode::Shift, Mode::Shift)
            | (Mode::Insert, Mode::Insert)
            | (Mode::Discard, Mode::Discard) => true,
            (Mode::Count(_), Mode::Count(_)) => context.sums_fit,
            _ => false,
        }
    }

    /// Whether two commute of which one is at a part of what the other is at.
    pub(super) fn commutes_within(self, other: Mode) -> bool {
        (self, other) == (Mode::Read, Mode::Read)
    }

    /// Whether the reply of `self` may depend on whether `other` came before.
    pub(super) fn shows(self, other: Mode) -> bool {
        self.reads() && other.writes()
    }
}

/// What is done about whether the key exists, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// It depends on the type, and leaves the key as it is.
    Sees(Type),
    /// It may create the key.
    Makes(Type),
    /// It may remove the last element, and the key with it.
    Ends(Type),
    /// Likewise, and what it takes depends on whether elements are there.
    Takes(Type),
    /// It depends on whether the key exists.
    Asks,
    /// It leaves the key there, whatever it was.
    Replaces,
    /// It leaves no key.
    Deletes,
}

const TYPES: usize = Type::ALL.len();

impl Presence {
    pub(super) const CLASSES: usize = 4 * TYPES + 3;

    pub(super) fn class(self) -> usize {
        match self {
            Presence::Sees(of) => of as usize,
            Presence::Makes(of) => TYPES + of as usize,
            Presence::Ends(of) => 2 * TYPES + of as usize,
            Presence::Takes(of) => 3 * TYPES + of as usize,
            Presence::Asks => 4 * TYPES,
            Presence::Replaces => 4 * TYPES + 1,
            Presence::Deletes => 4 * TYPES + 2,
        }
    }

    /// What has this class.
    pub(super) fn of_class(class: usize) -> Presence {
        let of = Type::ALL[class % TYPES];
        match class / TYPES {
            0 => Presence::Sees(of),
            1 => Presence::Makes(of),
            2 => Presence::Ends(of),
            3 => Presence::Takes(of),
            _ => match class % TYPES {
                0 => Presence::Asks,
                1 => Presence::Replaces,
                _ => Presence::Deletes,
            },
        }
    }

    fn of(self) -> Option<Type> {
        match self {
            Presence::Sees(of) | Presence::Makes(of) | Presence::Ends(of) | Presence::Takes(of) => {
                Some(of)
            }
            Presence::Asks | Presence::Replaces | Presence::Deletes => None,
        }
    }

    pub(super) fn is_whole(self) -> bool {
        matches!(self, Presence::Replaces | Presence::Deletes)
    }

    pub(super) fn writes(self) -> bool {
        !matches!(self, Presence::Sees(_) | Presence::Asks)
    }

    pub(super) fn commutes(self, other: Presence, context: Context) -> bool {
        use Presence::{Asks, Deletes, Ends, Makes, Sees, Takes};
        if self.is_whole() || other.is_whole() {
            return (self, other) == (Deletes, Deletes);
        }
        if context.is_stable {
            return true;
        }
        if self.of().zip(other.of()).is_some_and(|(a, b)| a != b) {
            return !self.writes() && !other.writes();
        }
        match (self, other) {
            (Asks | Sees(_), Asks | Sees(_))
            | (Sees(_), Makes(_) | Ends(_) | Takes(_))
            | (Makes(_) | Ends(_) | Takes(_), Sees(_))
            | (Makes(_), Makes(_))
            | (Ends(_), Ends(_)) => true,
            // Between them the key may end, and its deadline with it.
            (Makes(_), Ends(_)) | (Ends(_), Makes(_)) => context.has_no_deadline,
            _ => false,
        }
    }

    /// Whether the reply of `self` may depend on whether `other` came before.
    pub(super) fn shows(self, other: Presence) -> bool {
        match self {
            Presence::Replaces | Presence::Deletes => false,
            Presence::Asks | Presence::Takes(_) => other.writes(),
            Presence::Sees(of) | Presence::Makes(of) | Presence::Ends(of) => {
                other.writes() && other.of() != Some(of)
            }
        }
    }
}

/// An access of an operation. What is `fixed` was observed or promised: the reply was shown, or a condition was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub what: What,
    pub fixed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    At(Place, Mode),
    Presence(Presence),
}

impl Access {
    pub fn writes(&self) -> bool {
        match self.what {
            What::At(place, mode) => place != Place::Version && mode.writes(),
            What::Presence(presence) => presence.writes(),
        }
    }

    pub(super) fn commutes(&self, other: &Access, context: Context) -> bool {
        match (self.what, other.what) {
            (What::Presence(a), What::Presence(b)) => a.commutes(b, context),
            (What::At(p, a), What::At(q, b)) if p == q => a.commutes(b, context),
            (What::At(p, a), What::At(q, b))
                if p == Place::Whole && q.is_part() || q == Place::Whole && p.is_part() =>
            {
                a.commutes_within(b)
            }
            _ => true,
        }
    }

    /// Whether one of two that do not commute was observed or promised, and the other may change that.
    pub(super) fn conflicts(&self, other: &Access) -> bool {
        let shows = |a: &Access, b: &Access| match (a.what, b.what) {
            (What::Presence(a), What::Presence(b)) => a.shows(b),
            (What::At(_, a), What::At(_, b)) => a.shows(b),
            _ => false,
        };
        self.fixed && shows(self, other) || other.fixed && shows(other, self)
    }
}

/// What is known of the state for all operations that are compared, whichever of them come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The key exists and stays.
    pub(super) is_stable: bool,
    /// It has no deadline and gets none.
    pub(super) has_no_deadline: bool,
    /// It is a number that can take all that is added.
    pub(super) sums_fit: bool,
}
