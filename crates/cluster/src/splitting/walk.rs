//! `SCAN` over all nodes: first the strict keys of one node after another, then the lattice keys of the client's own node.
//! The upper bits of its cursor hold the node.
//!
//! A client may continue at another node. That one does not walk over its own replicas then, as each node has an order of
//! its own: the cursor has the node whose replicas are walked, and the request goes there.

use super::join::elements;
use rufous_base::Output;
use rufous_base::limits::MAX_WORKERS;
use rufous_mapping::NodeNo;
use rufous_resp::encode;
use std::collections::BTreeSet;

/// Bits of a cursor that one node uses: a worker, and a position in its order.
const OWN_BITS: u32 = 40;

/// In a node's own cursor, this stands for the worker where lattice keys are walked; the rest is the position. It is no
/// worker, and no node with a worker in the cursor of a cluster that has lattice keys.
pub const OF_LATTICE: u32 = 1 << 20;

const _: () = assert!(OF_LATTICE as usize > MAX_WORKERS);

/// The same in the cursor of a cluster. Nodes that share lattice keyspaces have fewer workers.
const OF_LATTICE_IN_ALL: u64 = 0xFF;

/// What the nodes of a walk are.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a> {
    /// All that have slots, and this one.
    pub all: &'a BTreeSet<NodeNo>,
    /// This node.
    pub own: Option<NodeNo>,
    pub has_lattice: bool,
}

/// What follows the keys of a step's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Strict(NodeNo),
    Lattice(NodeNo),
    Nothing,
}

/// One step of `SCAN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub at: NodeNo,
    next: Next,
}

fn cursor_of(no: NodeNo, own: u64) -> u64 {
    (u64::from(no.0) + 1) << OWN_BITS | own
}

/// The start of the walk over a node's replicas.
fn lattice_of(no: NodeNo) -> u64 {
    cursor_of(no, OF_LATTICE_IN_ALL << 32)
}

/// The node and the node's own cursor that a cursor stands for. Nodes without slots are skipped.
pub fn find(nodes: Nodes<'_>, cursor: u64) -> Option<(Step, u64)> {
    let own = cursor & ((1 << OWN_BITS) - 1);
    let named = match cursor >> OWN_BITS {
        0 => None,
        no => Some(NodeNo(u16::try_from(no - 1).ok()?)),
    };
    if nodes.has_lattice && own >> 32 == OF_LATTICE_IN_ALL {
        return find_lattice(nodes, named, own as u32);
    }
    let wanted = named.unwrap_or(NodeNo(0));
    let mut from = nodes.all.range(wanted..);
    let own_lattice = nodes.own.filter(|_| nodes.has_lattice);
    let Some(&at) = from.next() else {
        // The last node has left, or has no slots here that it had there.
        return own_lattice.and_then(|own| find_lattice(nodes, Some(own), 0));
    };
    let next = match (from.next(), own_lattice) {
        (Some(no), _) => Next::Strict(*no),
        (None, Some(no)) => Next::Lattice(no),
        (None, None) => Next::Nothing,
    };
    let is_there = named.is_none() || at == wanted;
    Some((Step { at, next }, if is_there { own } else { 0 }))
}

/// The same where lattice keys are walked. If that node has left, the walk begins again with this node's replicas.
fn find_lattice(nodes: Nodes<'_>, named: Option<NodeNo>, position: u32) -> Option<(Step, u64)> {
    let named = named.or(nodes.own).filter(|no| nodes.all.contains(no));
    let (at, position) = match named {
        Some(no) => (no, position),
        None => (nodes.own?, 0),
    };
    let next = Next::Nothing;
    let own = u64::from(OF_LATTICE) << 32 | u64::from(position);
    Some((Step { at, next }, own))
}

impl Step {
    /// The reply of a node, with the cursor of the whole scan.
    pub(super) fn whole(self, reply: &[u8], out: &mut Output) -> Option<()> {
        let found = elements(reply)?;
        let [cursor, keys] = &found[..] else {
            return None;
        };
        let cursor = reply.get(cursor.clone())?;
        let digits = cursor.split(|byte| *byte == b'\n').nth(1)?;
        let digits = digits.strip_suffix(b"\r")?;
        let own: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let next = match (own, self.next) {
            (0, Next::Nothing) => 0,
            (0, Next::Strict(next)) => cursor_of(next, 0),
            (0, Next::Lattice(no)) => lattice_of(no),
            (own, _) if own >> OWN_BITS == 0 => cursor_of(self.at, own),
            (own, _) if own >> 32 == u64::from(OF_LATTICE) => {
                lattice_of(self.at) | u64::from(own as u32)
            }
            _ => return None,
        };
        encode::array(&mut out.bytes, 2);
        encode::bulk(&mut out.bytes, next.to_string().as_bytes());
        out.bytes.extend_from_slice(reply.get(keys.clone())?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at: u16, next: Next) -> Step {
        let at = NodeNo(at);
        Step { at, next }
    }

    fn strict(no: u16) -> Next {
        Next::Strict(NodeNo(no))
    }

    fn nodes(all: &BTreeSet<NodeNo>, has_lattice: bool) -> Nodes<'_> {
        Nodes {
            all,
            own: Some(NodeNo(3)),
            has_lattice,
        }
    }

    #[test]
    fn a_cursor_names_the_node_and_its_place_there() {
        let all = BTreeSet::from([NodeNo(0), NodeNo(3), NodeNo(u16::MAX)]);
        let nodes = nodes(&all, false);
        assert_eq!(find(nodes, 0), Some((step(0, strict(3)), 0)));
        assert_eq!(find(nodes, 77), Some((step(0, strict(3)), 77)));
        let last = 255 << 32 | u64::from(u32::MAX);
        let cursor = cursor_of(NodeNo(3), last);
        assert_eq!(find(nodes, cursor), Some((step(3, strict(u16::MAX)), last)));
        let cursor = cursor_of(NodeNo(u16::MAX), 9);
        let end = step(u16::MAX, Next::Nothing);
        assert_eq!(find(nodes, cursor), Some((end, 9)));
        // That node has left: continue with the start of the next one.
        let gone = cursor_of(NodeNo(2), 9);
        assert_eq!(find(nodes, gone), Some((step(3, strict(u16::MAX)), 0)));
        assert_eq!(find(nodes, u64::MAX), None);
        let nothing = Nodes {
            all: &BTreeSet::new(),
            own: None,
            has_lattice: true,
        };
        assert_eq!(find(nothing, 0), None);
        assert_eq!(find(nothing, lattice_of(NodeNo(3))), None);
    }

    /// Another node continues where the first one stopped, with that one's replicas.
    #[test]
    fn lattice_keys_follow_the_strict_ones_of_all_nodes() {
        let all = BTreeSet::from([NodeNo(0), NodeNo(3), NodeNo(5)]);
        let nodes = nodes(&all, true);
        let own = NodeNo(3);
        let last = step(5, Next::Lattice(own));
        assert_eq!(find(nodes, cursor_of(NodeNo(5), 9)), Some((last, 9)));
        let end = |at| step(at, Next::Nothing);
        let place = |position: u64| u64::from(OF_LATTICE) << 32 | position;
        for (cursor, found) in [
            (lattice_of(own), (end(3), place(0))),
            (lattice_of(own) | 70, (end(3), place(70))),
            (lattice_of(NodeNo(5)) | 70, (end(5), place(70))),
            // It has left.
            (lattice_of(NodeNo(4)) | 70, (end(3), place(0))),
            (cursor_of(NodeNo(6), 9), (end(3), place(0))),
            (OF_LATTICE_IN_ALL << 32 | 70, (end(3), place(70))),
        ] {
            assert_eq!(find(nodes, cursor), Some(found), "{cursor:x}");
        }
        assert!(
            lattice_of(NodeNo(1023)) < 1 << 53,
            "some clients have floats"
        );
    }

    #[test]
    fn a_walk_ends_at_the_last_node() {
        let whole = |step: Step, reply: &str| {
            let mut out = Output::default();
            step.whole(reply.as_bytes(), &mut out)?;
            Some(String::from_utf8(out.to_vec()).expect("text"))
        };
        let keys = "*1\r\n$1\r\na\r\n";
        let reply =
            |cursor: u64| format!("*2\r\n${}\r\n{cursor}\r\n{keys}", cursor.to_string().len());
        let end = step(3, Next::Nothing);
        assert_eq!(whole(end, &reply(0)), Some(reply(0)));
        let on = cursor_of(NodeNo(3), 12);
        assert_eq!(whole(end, &reply(12)), Some(reply(on)));
        let next = cursor_of(NodeNo(4), 0);
        assert_eq!(whole(step(3, strict(4)), &reply(0)), Some(reply(next)));
        let lattice = step(3, Next::Lattice(NodeNo(2)));
        let next = lattice_of(NodeNo(2));
        assert_eq!(whole(lattice, &reply(0)), Some(reply(next)));
        let on = lattice_of(NodeNo(3)) | 12;
        let own = u64::from(OF_LATTICE) << 32 | 12;
        assert_eq!(whole(end, &reply(own)), Some(reply(on)));
        for wrong in [
            "",
            "+OK\r\n",
            "*2\r\n:1\r\n*0\r\n",
            "*1\r\n$1\r\n0\r\n",
            &reply(1 << 41),
            &reply(1 << 53),
        ] {
            assert_eq!(whole(end, wrong), None, "{wrong}");
        }
    }
}
