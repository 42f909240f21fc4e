//! Faults on purpose, by their names on the command line.

use rufous_kernel::planted::{self, Planted};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    Kernel(Planted),
}

impl Fault {
    pub const ALL: [(Fault, &'static str); 5] = [
        (Fault::None, "none"),
        (Fault::Kernel(Planted::GatesOpen), "gates-open"),
        (Fault::Kernel(Planted::CarriedAsOwn), "carried-as-own"),
        (
            Fault::Kernel(Planted::SaidBeforeLogged),
            "said-before-logged",
        ),
        (Fault::Kernel(Planted::MarksNotWritten), "marks-not-written"),
    ];

    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(fault, _)| *fault)
    }

    /// Tells the kernels of this thread.
    pub(super) fn plant(self) {
        planted::plant(match self {
            Fault::Kernel(fault) => Some(fault),
            Fault::None => None,
        });
    }
}
