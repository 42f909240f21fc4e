//! Of several concurrent values, the one that answers for all.

use crate::effect::NotAnEffect;
use rufous_datatype::replicated::siblings::Pick;

/// What a plain read shows where a key has several concurrent values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolve {
    /// The one that was written last.
    Newest,
    /// Numbers by their size, before texts by their bytes.
    Largest,
    Smallest,
    /// An error that says how to read them all.
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

    /// Whether there is a plain read where there are several values.
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
