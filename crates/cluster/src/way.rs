//! Which nodes a request goes to: a pure function of the mapping, the reachable nodes and the slots
//! of the request's keys.
//!
//! The head of a slot's chain serves it. Keys of lattice keyspaces have no slot: every node
//! serves them.

use rufous_mapping::{Mapping, NodeNo};
use std::collections::BTreeSet;

/// The location of the keys of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    Here,
    There(NodeNo),
    /// The node of each key; `None` is this one.
    Apart(Vec<Option<NodeNo>>),
    /// This node and all of these.
    All(Vec<NodeNo>),
    /// They cannot be reached at present.
    None(NoWay),
}

/// Why keys cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWay {
    /// This node has no mapping yet.
    Unmapped,
    /// No node has the slot.
    Nobody(u16),
    /// There is no session with the node that has the slot.
    Unreachable(NodeNo, u16),
    /// The same, for a request that is not about a slot.
    Away(NodeNo),
}

/// The reply to clients that follow redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// The slots are on several nodes, or may be so later.
    CrossSlot,
    /// No node serves the slot.
    Down,
    Moved {
        slot: u16,
        to: NodeNo,
    },
}

/// The inputs of routing. `reaches` returns whether there is a session with a node.
#[derive(Clone, Copy, Debug)]
pub struct Routing<'a, R> {
    pub mapping: Option<&'a Mapping>,
    /// This node's number in it.
    pub own: Option<NodeNo>,
    pub reaches: R,
}

impl<R> Routing<'_, R> {
    /// That of the mapping; 0 without one.
    pub fn epoch(&self) -> u64 {
        self.mapping.map_or(0, |mapping| mapping.epoch)
    }
}

impl<R: Fn(NodeNo) -> bool> Routing<'_, R> {
    /// The route to keys of these slots; `None`: a key that every node serves.
    pub fn to_slots(&self, slots: impl IntoIterator<Item = Option<u16>>) -> Way {
        let mut found = Vec::new();
        for slot in slots {
            match slot.map(|slot| self.to_slot(slot)) {
                None => found.push(None),
                Some(Ok(node)) => found.push(node),
                Some(Err(why)) => return Way::None(why),
            }
        }
        match found.first().copied() {
            Some(first) if found.iter().any(|node| *node != first) => Way::Apart(found),
            Some(Some(no)) => Way::There(no),
            Some(None) | None => Way::Here,
        }
    }

    /// The node that serves a slot; `None` is this one.
    fn to_slot(&self, slot: u16) -> Result<Option<NodeNo>, NoWay> {
        let mapping = self.mapping.ok_or(NoWay::Unmapped)?;
        let head = mapping.chains.of(slot).head();
        self.to_head(head, slot)
    }

    fn to_head(&self, head: Option<NodeNo>, slot: u16) -> Result<Option<NodeNo>, NoWay> {
        match head {
            None => Err(NoWay::Nobody(slot)),
            Some(head) if Some(head) == self.own => Ok(None),
            Some(head) if !(self.reaches)(head) => Err(NoWay::Unreachable(head, slot)),
            Some(head) => Ok(Some(head)),
        }
    }

    /// The route to all nodes that have slots.
    pub fn to_all(&self) -> Way {
        let Some(mapping) = self.mapping else {
            return Way::None(NoWay::Unmapped);
        };
        let mut others = BTreeSet::new();
        for (slots, chain) in mapping.chains.ranges() {
            match self.to_head(chain.head(), slots.start) {
                Ok(node) => others.extend(node),
                Err(why) => return Way::None(why),
            }
        }
        if others.is_empty() {
            return Way::Here;
        }
        Way::All(others.into_iter().collect())
    }

    /// The route to a node, whatever slots it has.
    pub fn to_node(&self, no: NodeNo) -> Way {
        if (self.reaches)(no) {
            return Way::There(no);
        }
        Way::None(NoWay::Away(no))
    }

    /// Why clients that follow redirections cannot be told which node has one of these slots.
    pub fn names_none(&self, slots: impl IntoIterator<Item = u16>) -> Option<NoWay> {
        slots.into_iter().find_map(|slot| match self.mapping {
            None => Some(NoWay::Unmapped),
            Some(mapping) => head_of(mapping, slot)
                .is_none()
                .then_some(NoWay::Nobody(slot)),
        })
    }

    /// The redirection for a request for these slots, unless this node serves it. `reads`: any node
    /// of the chain serves it.
    pub fn redirects(&self, slots: impl IntoIterator<Item = u16>, reads: bool) -> Option<Redirect> {
        let mut slots = slots.into_iter();
        let slot = slots.next()?;
        if slots.any(|other| other != slot) {
            return Some(Redirect::CrossSlot);
        }
        let Some(mapping) = self.mapping else {
            return Some(Redirect::Down);
        };
        let Some(to) = head_of(mapping, slot) else {
            return Some(Redirect::Down);
        };
        let chain = mapping.chains.of(slot);
        let serves = |own| own == to || reads && chain.members.contains(&own);
        let is_here = self.own.is_some_and(serves);
        (!is_here).then_some(Redirect::Moved { slot, to })
    }
}

fn head_of(mapping: &Mapping, slot: u16) -> Option<NodeNo> {
    let head = mapping.chains.of(slot).head();
    head.filter(|no| mapping.members.contains_key(no))
}

impl NoWay {
    /// The error for clients.
    pub fn text(self, mapping: Option<&Mapping>) -> String {
        match self {
            Self::Unmapped => "CLUSTERDOWN This node has no mapping of slots yet: check its coordinator and INFO cluster, then try again".into(),
            Self::Nobody(slot) => format!("CLUSTERDOWN No node has slot {slot}, which the key belongs to: try again, and see INFO cluster"),
            Self::Away(no) => format!("CLUSTERDOWN Node {} cannot be reached from here: try again, and see INFO cluster", name_of(mapping, no)),
            Self::Unreachable(no, slot) => format!("CLUSTERDOWN Node {}, which has slot {slot}, cannot be reached from here: try again, and see INFO cluster", name_of(mapping, no)),
        }
    }
}

/// Why a request fails whose keys are on several nodes.
pub const CROSSNODE: &str = "CROSSNODE Keys of this command are on several nodes: give them one hash tag, as in {tag}key, or use a command for each";

/// A node's name in errors: its number, and the address for clients.
pub fn name_of(mapping: Option<&Mapping>, no: NodeNo) -> String {
    let member = mapping.and_then(|mapping| mapping.members.get(&no));
    match member.map_or("", |member| &member.plain) {
        "" => no.to_string(),
        plain => format!("{no} at {plain}"),
    }
}

/// Whether one node is the head of all slots.
pub fn has_one_head(mapping: &Mapping) -> bool {
    let mut heads = mapping.chains.ranges().map(|(_, chain)| chain.head());
    let first = heads.next();
    heads.all(|head| Some(head) == first)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rufous_mapping::planner::{self, Limits, Seen};
    use rufous_mapping::{Member, NodeId};

    /// Three nodes, one copy: the mapping, and a slot of each node.
    pub(crate) fn three() -> (Mapping, [u16; 3]) {
        let member = |id: u8| Member {
            id: NodeId([id; 20]),
            incarnation: 1,
            peer: format!("node-{id}:1"),
            plain: String::new(),
            cluster: String::new(),
            zone: String::new(),
            weight: 100,
            workers: 1,
            drains: false,
            folder: Default::default(),
        };
        let seen = Seen {
            alive: (0..3).map(|id| (NodeId([id; 20]), member(id))).collect(),
            ..Seen::default()
        };
        let mapping = planner::next(&Mapping::new(1), &seen, &Limits::default());
        let mapping = mapping.expect("a mapping");
        let slot = |no: u16| {
            let mut ranges = mapping.chains.ranges();
            let found = ranges.find(|(_, chain)| chain.head() == Some(NodeNo(no)));
            found.expect("it has slots").0.start
        };
        let slots = [slot(0), slot(1), slot(2)];
        (mapping, slots)
    }

    #[test]
    fn a_request_goes_to_the_heads_of_its_slots() {
        let (mapping, [a, b, c]) = three();
        let routing = Routing {
            mapping: Some(&mapping),
            own: Some(NodeNo(0)),
            reaches: |no| no == NodeNo(1),
        };
        let (one, two) = (NodeNo(1), NodeNo(2));
        let unreachable = Way::None(NoWay::Unreachable(two, c));
        let cases: [(&[Option<u16>], Way); 7] = [
            (&[], Way::Here),
            (&[None, Some(a)], Way::Here),
            (&[Some(b), Some(b)], Way::There(one)),
            (&[Some(a), Some(b)], Way::Apart(vec![None, Some(one)])),
            (&[None, Some(b)], Way::Apart(vec![None, Some(one)])),
            (&[Some(c)], unreachable.clone()),
            (&[Some(b), Some(c)], unreachable.clone()),
        ];
        for (slots, expected) in cases {
            assert_eq!(
                routing.to_slots(slots.iter().copied()),
                expected,
                "{slots:?}"
            );
        }
        assert!(matches!(routing.to_all(), Way::None(NoWay::Unreachable(no, _)) if no == two));
        assert_eq!(routing.to_node(one), Way::There(one));
        assert_eq!(routing.to_node(two), Way::None(NoWay::Away(two)));
        let all = Routing {
            mapping: Some(&mapping),
            own: Some(NodeNo(0)),
            reaches: |_| true,
        };
        assert_eq!(all.to_all(), Way::All(vec![one, two]));
    }

    #[test]
    fn without_a_mapping_only_keys_of_every_node_are_served() {
        let routing = Routing {
            mapping: None,
            own: None,
            reaches: |_| false,
        };
        assert_eq!(routing.to_slots([None, None]), Way::Here);
        let unmapped = Way::None(NoWay::Unmapped);
        assert_eq!(routing.to_slots([None, Some(3)]), unmapped);
        assert_eq!(routing.to_all(), unmapped);
        assert_eq!(routing.redirects([3], true), Some(Redirect::Down));
        assert_eq!(routing.redirects([], true), None);
        assert_eq!(routing.names_none([3]), Some(NoWay::Unmapped));
        assert_eq!(routing.names_none([]), None);
    }

    #[test]
    fn a_slot_without_a_node_is_named() {
        let mapping = Mapping::new(1);
        let routing = Routing {
            mapping: Some(&mapping),
            own: Some(NodeNo(0)),
            reaches: |_| true,
        };
        assert_eq!(routing.to_slots([Some(7)]), Way::None(NoWay::Nobody(7)));
        assert_eq!(routing.to_all(), Way::None(NoWay::Nobody(0)));
        assert_eq!(routing.names_none([7]), Some(NoWay::Nobody(7)));
    }

    #[test]
    fn clients_are_sent_to_the_head_of_one_slot() {
        let (mapping, [a, b, _]) = three();
        let routing = Routing {
            mapping: Some(&mapping),
            own: Some(NodeNo(0)),
            reaches: |_| false,
        };
        let moved = Redirect::Moved {
            slot: b,
            to: NodeNo(1),
        };
        assert_eq!(routing.redirects([a, a], false), None);
        assert_eq!(routing.names_none([a, b]), None);
        assert_eq!(routing.redirects([b], true), Some(moved));
        assert_eq!(routing.redirects([a, b], false), Some(Redirect::CrossSlot));
    }
}
