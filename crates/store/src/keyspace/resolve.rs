//! Which of several concurrent values a plain read returns.

use crate::effect::NotAnEffect;
use rufous_datatype::replicated::siblings::Pick;

/// What a plain read returns if a key has several concurrent values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolve {
    /// The one that was written last.
    Newest,
    /// The largest: numbers by value, and below them texts by their bytes.
    Largest,
    Smallest,
    /// An error that says how to read all of them.
    Refuse,
}

impl Resolve {
    pub fn pick(self) -> Pick {
        match self {
            Resolve::Newest | Resolve::Refuse => Pick::Newest,
            Resolve::Largest => Pick::Largest,
            Resolve::Smallest => Pick::Smallest,
        }
    }

    /// Whether a plain read returns one of several values rather than an error.
    pub fn picks(self) -> bool {
        self != Resolve::Refuse
    }

    pub(super) fn byte(self) -> u8 {
        match self {
            Resolve::Newest => 0,
            Resolve::Refuse => 1,
            Resolve::Largest => 2,
            Resolve::Smallest => 3,
        }
    }

    pub(super) fn of_byte(byte: u8) -> Result<Self, NotAnEffect> {
        let all = [Self::Newest, Self::Refuse, Self::Largest, Self::Smallest];
        let found = all.into_iter().find(|resolve| resolve.byte() == byte);
        found.ok_or(NotAnEffect)
    }
}
