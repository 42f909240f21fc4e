//! Requests that several nodes execute: the parts of each and its reply, as a machine of one worker.
//!
//! Each part is atomic at its node, but the parts run at different instants. What becomes of a part
//! for another node is [`crate::forward`]'s to decide: each part is answered once, be it with the
//! error that it took too long or is in doubt.
//!
//! Invariants:
//! 1. A request is answered when all of its parts are, and once.
//! 2. If a part failed, its error is the reply.

mod join;
#[cfg(test)]
mod tests;
mod walk;

use join::Join;
pub use join::Joins;
pub(crate) use join::elements;
use rufous_base::Output;
use rufous_kernel::Header;
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;
pub use walk::{Nodes, OF_LATTICE, Step, find};

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    join: u64,
    index: usize,
}

/// How the keys of a request are divided.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// For each key in order, its part.
    pub places: Vec<u32>,
    /// For each part its node, unless it is this one, and the indexes of its keys.
    pub parts: Vec<(Option<NodeNo>, Vec<usize>)>,
}

impl Plan {
    /// One part for each node, in the order of their first keys.
    pub fn new(heads: &[Option<NodeNo>]) -> Self {
        let mut plan = Self::default();
        for (key, head) in heads.iter().enumerate() {
            let found = plan.parts.iter().position(|(of, _)| of == head);
            let part = found.unwrap_or(plan.parts.len());
            if found.is_none() {
                plan.parts.push((*head, Vec::new()));
            }
            plan.parts[part].1.push(key);
            plan.places.push(part as u32);
        }
        plan
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Splitting {
    begun: u64,
    joins: BTreeMap<u64, Join>,
}

impl Splitting {
    /// A request is divided into this many parts; `places` has for each of its keys the part.
    /// Returns the parts, in order, which are to be run now.
    pub fn on_request(
        &mut self,
        header: &Header,
        how: Joins,
        places: Vec<u32>,
        parts: usize,
    ) -> impl Iterator<Item = Part> + use<> {
        self.begun += 1;
        let join = self.begun;
        let waits = Join {
            header: *header,
            how,
            places,
            replies: (0..parts).map(|_| None).collect(),
            missing: parts,
        };
        self.joins.insert(join, waits);
        (0..parts).map(move |index| Part { join, index })
    }

    /// A part was answered. Returns the reply to the whole request if it was the last.
    pub fn on_part(&mut self, part: Part, reply: Output) -> Option<(Header, Output)> {
        let join = self.joins.get_mut(&part.join)?;
        let place = join.replies.get_mut(part.index)?;
        if place.replace(reply).is_some() {
            debug_assert!(false, "a second reply to one part");
            return None;
        }
        join.missing -= 1;
        if join.missing > 0 {
            return None;
        }
        let join = self.joins.remove(&part.join)?;
        Some((join.header, join.whole()))
    }

    /// Requests that were divided.
    pub fn begun(&self) -> u64 {
        self.begun
    }
}
