//! Rules that can be switched off, each of which a search has to notice.

use rufous_chain::planted as chain;
use rufous_mapping::planted as mapping;

/// What is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    Chain(chain::Planted),
    Mapping(mapping::Planted),
    Own(Own),
}

/// Rules of what surrounds chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Messages leave before the log has what they tell.
    SentBeforeLogged,
    /// Each folder counts its node's starts: an emptied or old one counts some of them again.
    StartsCounted,
}

/// All, with the names on the command line and the search that notices each.
pub const ALL: [(&str, Off); 16] = [
    ("first-back", Off::Mapping(mapping::Planted::FirstBack)),
    ("epoch-alone", Off::Mapping(mapping::Planted::EpochAlone)),
    (
        "sequence-alone",
        Off::Mapping(mapping::Planted::SequenceAlone),
    ),
    (
        "restart-unnoticed",
        Off::Mapping(mapping::Planted::RestartUnnoticed),
    ),
    ("old-mark-kept", Off::Chain(chain::Planted::OldMarkKept)),
    ("not-outwaited", Off::Chain(chain::Planted::NotOutwaited)),
    ("learned-early", Off::Chain(chain::Planted::LearnedEarly)),
    ("not-handed-over", Off::Chain(chain::Planted::NotHandedOver)),
    (
        "taken-over-shown",
        Off::Chain(chain::Planted::TakenOverShown),
    ),
    ("acked-early", Off::Chain(chain::Planted::AckedEarly)),
    ("old-chain-taken", Off::Chain(chain::Planted::OldChainTaken)),
    ("no-lease", Off::Chain(chain::Planted::NoLease)),
    ("not-repeated", Off::Chain(chain::Planted::NotRepeated)),
    (
        "behind-forgotten",
        Off::Chain(chain::Planted::BehindForgotten),
    ),
    ("sent-before-logged", Off::Own(Own::SentBeforeLogged)),
    ("starts-counted", Off::Own(Own::StartsCounted)),
];

impl Off {
    pub fn named(name: &str) -> Option<Self> {
        let mut all = ALL.iter();
        all.find(|(known, _)| *known == name).map(|(_, off)| *off)
    }

    pub fn own(self) -> Option<Own> {
        match self {
            Self::Own(own) => Some(own),
            _ => None,
        }
    }
}

/// Switches a rule of chains or of the planner off in this thread, or all on again.
pub fn switch(off: Option<Off>) {
    chain::plant(match off {
        Some(Off::Chain(planted)) => Some(planted),
        _ => None,
    });
    mapping::plant(match off {
        Some(Off::Mapping(planted)) => Some(planted),
        _ => None,
    });
}
