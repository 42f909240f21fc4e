//! What would move if nodes had other weights, compared with the minimum: for operators, before
//! they change anything. As text it is the reply to `CLUSTER PREVIEW`, which `rufous cluster
//! rebalance` reads.

use rufous_base::limits::SLOTS;
use rufous_mapping::{Mapping, NodeNo};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// In copies of slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Copies that would move to nodes that do not have them.
    pub moving: usize,
    /// The minimum of copies that have to move for nodes to have as many as they would have.
    pub minimum: usize,
    pub nodes: Vec<Change>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    pub number: u16,
    pub has: usize,
    pub will_have: usize,
}

impl Preview {
    /// Weights of nodes that have none in the ring have no effect.
    pub fn of(mapping: &Mapping, weights: &[(NodeNo, u16)]) -> Self {
        let mut ring = mapping.ring.clone();
        for (no, weight) in weights {
            if let Some(has) = ring.members().get(no) {
                let zone = has.zone.clone();
                ring.join(*no, *weight, &zone);
            }
        }
        let mut preview = Self::default();
        let nodes = mapping.members.keys().map(|no| (*no, Change::default()));
        let mut nodes: BTreeMap<NodeNo, Change> = nodes.collect();
        for slot in 0..SLOTS as u16 {
            let (chain, owners) = (mapping.chains.of(slot), ring.owners(slot));
            for no in chain.members.iter() {
                if let Some(node) = nodes.get_mut(no) {
                    node.has += 1;
                }
            }
            for no in owners {
                if let Some(node) = nodes.get_mut(no) {
                    node.will_have += 1;
                }
                preview.moving += usize::from(!chain.members.contains(no));
            }
        }
        for (no, mut node) in nodes {
            preview.minimum += node.will_have.saturating_sub(node.has);
            node.number = no.0;
            preview.nodes.push(node);
        }
        preview
    }

    pub fn text(&self) -> String {
        let (moving, minimum) = (self.moving, self.minimum);
        let mut out = format!("moving:{moving}\r\nminimum:{minimum}\r\n");
        for node in &self.nodes {
            let Change {
                number,
                has,
                will_have,
            } = node;
            let _ = write!(out, "node:{number},{has},{will_have}\r\n");
        }
        out
    }

    /// The same, read from text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut preview = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(':')?;
            match name {
                "moving" => preview.moving = value.parse().ok()?,
                "minimum" => preview.minimum = value.parse().ok()?,
                "node" => {
                    let mut fields = value.split(',');
                    preview.nodes.push(Change {
                        number: fields.next()?.parse().ok()?,
                        has: fields.next()?.parse().ok()?,
                        will_have: fields.next()?.parse().ok()?,
                    });
                }
                _ => {}
            }
        }
        (!preview.nodes.is_empty()).then_some(preview)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::status::tests::mapping;

    #[test]
    fn what_would_move() {
        let three = mapping(&[1, 2, 3], 2);
        let nothing = Preview::of(&three, &[]);
        assert_eq!((nothing.moving, nothing.minimum), (0, 0));
        let all: usize = nothing.nodes.iter().map(|node| node.has).sum();
        assert_eq!(all, 2 * SLOTS);

        let half = Preview::of(&three, &[(NodeNo(0), 50), (NodeNo(77), 5)]);
        let first = &half.nodes[0];
        assert!(first.will_have < first.has, "{half:?}");
        let less = first.has - first.will_have;
        assert_eq!(half.minimum, less);
        // Little more than the minimum.
        assert!((less..less + less / 4).contains(&half.moving), "{half:?}");
        assert_eq!(Preview::parse(&half.text()), Some(half));
        for wrong in ["", "moving:1\r\n", "node:1,2\r\n", "moving"] {
            assert_eq!(Preview::parse(wrong), None, "{wrong}");
        }
    }
}
