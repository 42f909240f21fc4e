//! Mechanisms that are switched off on purpose, to see that the oracles find it.

use rufous_kernel::planted::{self, Planted};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Who was dropped comes back with what its files have.
    KeepsOldData,
    /// A node that starts serves before others have told it what they have.
    ServesAtOnce,
    /// Of the kernel.
    Kernel(Planted),
}

impl Fault {
    pub const ALL: [(Fault, &'static str); 6] = [
        (Fault::KeepsOldData, "keeps-old-data"),
        (Fault::ServesAtOnce, "serves-at-once"),
        (Fault::Kernel(Planted::NotSentAgain), "not-sent-again"),
        (Fault::Kernel(Planted::NotCompared), "not-compared"),
        (Fault::Kernel(Planted::NodeNotAwaited), "node-not-awaited"),
        (Fault::Kernel(Planted::ToldNotLogged), "told-not-logged"),
    ];

    pub fn named(name: &str) -> Option<Fault> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(fault, _)| *fault)
    }

    /// Tells the kernels of this thread.
    pub(super) fn plant(self) {
        planted::plant(match self {
            Fault::Kernel(fault) => Some(fault),
            _ => None,
        });
    }
}
