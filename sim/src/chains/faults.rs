//! Faults on purpose, by their names on the command line.

use rufous_chain::planted::Planted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    Planted(Planted),
    /// Clocks run up to a quarter too fast or too slow, where a twentieth is
    /// allowed.
    Drift,
}

impl Fault {
    pub const ALL: [(Fault, &'static str); 15] = [
        (Fault::None, "none"),
        (Fault::Planted(Planted::NotOutwaited), "not-outwaited"),
        (Fault::Planted(Planted::GrantsForgotten), "grants-forgotten"),
        (Fault::Planted(Planted::GrantsUnknowing), "grants-unknowing"),
        (Fault::Planted(Planted::LearnedEarly), "learned-early"),
        (Fault::Planted(Planted::NotHandedOver), "not-handed-over"),
        (Fault::Planted(Planted::TakenOverShown), "taken-over-shown"),
        (Fault::Planted(Planted::AckedEarly), "acked-early"),
        (Fault::Planted(Planted::OldChainTaken), "old-chain-taken"),
        (Fault::Planted(Planted::NoLease), "no-lease"),
        (Fault::Planted(Planted::LeaseOfNode), "lease-of-node"),
        (Fault::Planted(Planted::NotRepeated), "not-repeated"),
        (Fault::Planted(Planted::CopiedOver), "copied-over"),
        (
            Fault::Planted(Planted::PartsNotCounted),
            "parts-not-counted",
        ),
        (Fault::Drift, "drift"),
    ];

    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(fault, _)| *fault)
    }

    pub(super) fn planted(self) -> Option<Planted> {
        match self {
            Fault::Planted(planted) => Some(planted),
            Fault::None | Fault::Drift => None,
        }
    }

    /// By how many thousandths clocks may be wrong.
    pub(super) fn drift(self) -> u64 {
        match self {
            Fault::Drift => 250,
            _ => 50,
        }
    }
}
