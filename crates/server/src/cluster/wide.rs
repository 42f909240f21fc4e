//! Commands on all keys, at all nodes that have slots.
//!
//! Each node answers at an instant of its own. `SCAN` visits one node after another: the upper bits
//! of its cursor hold the node.

use super::split::{Joins, Words, elements, words_of};
use super::way::Way;
use crate::front::turn::Request;
use crate::front::{Front, Message};
use rufous_base::{Args, Effects, Now, Output};
use rufous_command::{Failure, Flags, Joined, Reply};
use rufous_datatype::integer;
use rufous_kernel::{Header, Submitted};
use rufous_mapping::NodeNo;
use rufous_resp::encode;
use std::collections::BTreeSet;

/// Bits of a cursor that one node uses: a worker, and a position in its order.
const OWN_BITS: u32 = 40;

/// One step of `SCAN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    at: NodeNo,
    /// Where the scan continues when it has finished that node.
    next: Option<NodeNo>,
}

fn cursor_of(no: NodeNo, own: u64) -> u64 {
    (u64::from(no.0) + 1) << OWN_BITS | own
}

/// The node and the node's own cursor that a cursor stands for. Nodes without slots are skipped.
fn find(nodes: &BTreeSet<NodeNo>, cursor: u64) -> Option<(Step, u64)> {
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

impl Front {
    /// The route to all other nodes that have slots.
    pub(super) fn way_to_all(&self) -> Way {
        self.links()
            .map_or(Way::Here, |links| links.routing().to_all())
    }

    /// Sends a request to all nodes that have its keys, if there are others.
    #[cold]
    pub(crate) fn submit_elsewhere(
        &mut self,
        now: Now,
        way: &Way,
        request: &Request<'_>,
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let reads = self.table.spec(header.command).flags.has(Flags::READONLY);
        if let Some(connection) = self.connection(header.conn) {
            connection.is_far = reads;
        }
        match way {
            Way::There(no) => self.forward(*no, header, args),
            Way::Apart(heads) => self.submit_split(now, request, heads, header, args, fx),
            Way::All(others) => self.submit_wide(now, others, header, args, fx),
            Way::Here | Way::None(_) => {
                debug_assert!(false, "run here, or refused");
                Submitted::Done
            }
        }
    }

    fn submit_wide(
        &mut self,
        now: Now,
        others: &[NodeNo],
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let how = match self.table.spec(header.command).flags.joined() {
            Joined::Walk => return self.submit_walk(now, others, header, args, fx),
            Joined::Sum => Joins::Sum,
            Joined::List => Joins::Lists,
            Joined::Any => Joins::One(self.kernel.rng().next_u64()),
            Joined::Ok => Joins::Quiet,
        };
        let all: Vec<usize> = (1..args.len()).collect();
        let nodes = [None].into_iter().chain(others.iter().copied().map(Some));
        let parts = nodes.map(|node| {
            let (bytes, spans) = words_of(args, &all);
            (node, bytes, spans)
        });
        let parts: Vec<Words> = parts.collect();
        self.submit_parts(now, header, (how, Vec::new()), &parts, fx)
    }

    fn submit_walk(
        &mut self,
        now: Now,
        others: &[NodeNo],
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let own = self.links().and_then(|links| links.own());
        let nodes: BTreeSet<NodeNo> = others.iter().copied().chain(own).collect();
        let text = args.get(1);
        let cursor = match text.is_empty() {
            true => Some(0),
            false => integer::parse_u64_lenient(text),
        };
        let Some(cursor) = cursor else {
            Reply::new(&mut fx.output, header.resp3).error(&Failure::INVALID_CURSOR);
            return Submitted::Done;
        };
        let Some((step, cursor)) = find(&nodes, cursor) else {
            // The cursor is invalid: nothing follows it.
            let mut reply = Reply::new(&mut fx.output, header.resp3);
            reply.array(2);
            reply.bulk(b"0");
            reply.array(0);
            return Submitted::Done;
        };
        let cursor = cursor.to_string();
        let mut words: Vec<&[u8]> = args.iter_from(0).collect();
        words[1] = cursor.as_bytes();
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word);
        }
        let node = Some(step.at).filter(|no| Some(*no) != own);
        let parts = [(node, bytes, spans)];
        self.submit_parts(now, header, (Joins::Walk(step), Vec::new()), &parts, fx)
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
