//! Faults on purpose, by their names on the command line.

use rufous_chain::planted as chain;
use rufous_kernel::planted::{self, Planted};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    Kernel(Planted),
    Chain(chain::Planted),
}

impl Fault {
    pub const ALL: [(Fault, &'static str); 15] = [
        (Fault::None, "none"),
        (Fault::Kernel(Planted::GatesOpen), "gates-open"),
        (
            Fault::Kernel(Planted::AllTakenForLattice),
            "all-taken-for-lattice",
        ),
        (Fault::Kernel(Planted::CarriedAsOwn), "carried-as-own"),
        (
            Fault::Kernel(Planted::SaidBeforeLogged),
            "said-before-logged",
        ),
        (Fault::Kernel(Planted::MarksNotWritten), "marks-not-written"),
        (Fault::Kernel(Planted::SlotKept), "slot-kept"),
        (Fault::Kernel(Planted::DoubtAskedAgain), "doubt-asked-again"),
        (Fault::Kernel(Planted::NodeNotTold), "node-not-told"),
        (Fault::Kernel(Planted::NotCompared), "not-compared"),
        (Fault::Kernel(Planted::ToldNotLogged), "told-not-logged"),
        (Fault::Kernel(Planted::NodeNotAwaited), "node-not-awaited"),
        (Fault::Kernel(Planted::UnservedKept), "unserved-kept"),
        (Fault::Kernel(Planted::MergeSkipped), "merge-skipped"),
        (Fault::Chain(chain::Planted::NoLease), "no-lease"),
    ];

    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(fault, _)| *fault)
    }

    /// Tells the kernels of this thread.
    pub(super) fn plant(self) {
        planted::plant(match self {
            Fault::Kernel(fault) => Some(fault),
            Fault::None | Fault::Chain(_) => None,
        });
        chain::plant(match self {
            Fault::Chain(fault) => Some(fault),
            Fault::None | Fault::Kernel(_) => None,
        });
    }
}
