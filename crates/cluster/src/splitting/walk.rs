//! `SCAN` over all nodes, one after another: the upper bits of its cursor hold the node.

use super::join::elements;
use rufous_base::Output;
use rufous_mapping::NodeNo;
use rufous_resp::encode;
use std::collections::BTreeSet;

/// Bits of a cursor that one node uses: a worker, and a position in its order.
const OWN_BITS: u32 = 40;

/// One step of `SCAN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub at: NodeNo,
    /// Where the scan continues when it has finished that node.
    next: Option<NodeNo>,
}

fn cursor_of(no: NodeNo, own: u64) -> u64 {
    (u64::from(no.0) + 1) << OWN_BITS | own
}

/// The node and the node's own cursor that a cursor stands for. Nodes without slots are skipped.
pub fn find(nodes: &BTreeSet<NodeNo>, cursor: u64) -> Option<(Step, u64)> {
    let own = cursor & ((1 << OWN_BITS) - 1);
    let wanted = match cursor >> OWN_BITS {
        0 => NodeNo(0),
        no => NodeNo(u16::try_from(no - 1).ok()?),
    };
    let mut from = nodes.range(wanted..);
    let at = *from.next()?;
    let next = from.next().copied();
    let is_there = cursor >> OWN_BITS == 0 || at == wanted;
    Some((Step { at, next }, if is_there { own } else { 0 }))
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
            (0, None) => 0,
            (0, Some(next)) => cursor_of(next, 0),
            (own, _) if own >> OWN_BITS == 0 => cursor_of(self.at, own),
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

    fn step(at: u16, next: Option<u16>) -> Step {
        Step {
            at: NodeNo(at),
            next: next.map(NodeNo),
        }
    }

    #[test]
    fn a_cursor_names_the_node_and_its_place_there() {
        let nodes = BTreeSet::from([NodeNo(0), NodeNo(3), NodeNo(u16::MAX)]);
        assert_eq!(find(&nodes, 0), Some((step(0, Some(3)), 0)));
        assert_eq!(find(&nodes, 77), Some((step(0, Some(3)), 77)));
        let last = 255 << 32 | u64::from(u32::MAX);
        let cursor = cursor_of(NodeNo(3), last);
        assert_eq!(find(&nodes, cursor), Some((step(3, Some(u16::MAX)), last)));
        let cursor = cursor_of(NodeNo(u16::MAX), 9);
        assert_eq!(find(&nodes, cursor), Some((step(u16::MAX, None), 9)));
        // That node has left: continue with the start of the next one.
        let gone = cursor_of(NodeNo(2), 9);
        assert_eq!(find(&nodes, gone), Some((step(3, Some(u16::MAX)), 0)));
        assert_eq!(find(&nodes, u64::MAX), None);
        assert_eq!(find(&BTreeSet::new(), 0), None);
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
        assert_eq!(whole(step(3, None), &reply(0)), Some(reply(0)));
        let on = cursor_of(NodeNo(3), 12);
        assert_eq!(whole(step(3, None), &reply(12)), Some(reply(on)));
        let next = cursor_of(NodeNo(4), 0);
        assert_eq!(whole(step(3, Some(4)), &reply(0)), Some(reply(next)));
        for wrong in [
            "",
            "+OK\r\n",
            "*2\r\n:1\r\n*0\r\n",
            "*1\r\n$1\r\n0\r\n",
            &reply(1 << 40),
        ] {
            assert_eq!(whole(step(3, None), wrong), None, "{wrong}");
        }
    }
}
