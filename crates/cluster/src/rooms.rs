//! How many bytes wait to be sent to each node: the worker that has the session reports it to
//! workers that would send more.

use rufous_mapping::NodeNo;
use rufous_wire::Class;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Nodes with the same number modulo this share a place, which has the last value.
const PLACES: usize = 256;

/// Copies of slots wait while more bytes than this do.
const LEARNING: usize = 512 << 10;
/// Clients wait while more bytes than this do: their writes would queue behind them.
const FULL_LEARNING: usize = 1 << 20;
const FULL_CHAIN: usize = 4 << 20;

/// See the module's description.
#[derive(Debug)]
pub struct Rooms {
    chain: [AtomicUsize; PLACES],
    learning: [AtomicUsize; PLACES],
}

impl Default for Rooms {
    fn default() -> Self {
        let empty = || std::array::from_fn(|_| AtomicUsize::new(0));
        Self {
            chain: empty(),
            learning: empty(),
        }
    }
}

impl Rooms {
    fn of(&self, class: Class, node: NodeNo) -> Option<&AtomicUsize> {
        let all = match class {
            Class::Chain => &self.chain,
            Class::Learning => &self.learning,
            _ => return None,
        };
        all.get(usize::from(node.0) % PLACES)
    }

    pub(crate) fn tell(&self, class: Class, node: NodeNo, bytes: usize) {
        if let Some(place) = self.of(class, node) {
            place.store(bytes, Ordering::Relaxed);
        }
    }

    fn waits(&self, class: Class, node: NodeNo) -> usize {
        let place = self.of(class, node);
        place.map_or(0, |place| place.load(Ordering::Relaxed))
    }

    /// Whether more of a copy may be sent.
    pub fn has_room(&self, node: NodeNo) -> bool {
        self.waits(Class::Learning, node) < LEARNING
    }

    /// Whether clients should pause writes that go to the node.
    pub fn is_full(&self, node: NodeNo) -> bool {
        self.waits(Class::Learning, node) > FULL_LEARNING
            || self.waits(Class::Chain, node) > FULL_CHAIN
    }
}
