//! Which keys of a command decide whether it writes lattice keys.

use super::row_of;
use crate::{Flags, Spec};
use rufous_base::Args;

/// Which keys of a command decide, of those that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    Any,
    /// The first; the others are only read.
    First,
    /// The last, where there is more than one.
    Last,
}

impl Decides {
    pub(super) fn of(self, keys: &[(u8, u32)]) -> &[(u8, u32)] {
        match self {
            Decides::Any => keys,
            Decides::First => keys.get(..1).unwrap_or_default(),
            Decides::Last if keys.len() < 2 => &[],
            Decides::Last => &keys[keys.len() - 1..],
        }
    }
}

/// Whether a request writes lattice keys that it names; `is_lattice` tells them.
pub fn writes(
    spec: &Spec,
    args: &Args<'_>,
    keys: &[(u8, u32)],
    is_lattice: impl Fn(&[u8]) -> bool,
) -> bool {
    let row = row_of(spec);
    let written = row.map_or(keys, |row| row.decides.of(keys));
    spec.flags.has(Flags::WRITE)
        && written
            .iter()
            .any(|&(_, arg)| is_lattice(args.get(arg as usize)))
}
