//! Places of a walk over the keys of a node.

use rufous_cluster::splitting::OF_LATTICE;
use rufous_command::Failure;
use rufous_datatype::integer;

/// A worker (high half) and a place in the order of its strict keys (low half); or [`OF_LATTICE`] and a place in the
/// order of the lattice keys of all workers. 0 both starts and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) worker: u32,
    pub(super) at: u32,
}

impl Cursor {
    /// As lenient as Redis: no digits at all are the start.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Failure> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let number = integer::parse_u64_lenient(text).ok_or(Failure::INVALID_CURSOR)?;
        Ok(Self {
            worker: (number >> 32) as u32,
            at: number as u32,
        })
    }

    pub(super) fn of_worker(worker: u32) -> Self {
        Self { worker, at: 0 }
    }

    pub(super) fn of_lattice(at: u32) -> Self {
        Self {
            worker: OF_LATTICE,
            at,
        }
    }

    pub(super) fn is_lattice(self) -> bool {
        self.worker == OF_LATTICE
    }

    pub(super) fn number(self) -> u64 {
        u64::from(self.worker) << 32 | u64::from(self.at)
    }
}
