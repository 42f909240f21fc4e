//! Requests for several nodes: what the parts of each are.
//!
//! Commands that read, count or remove each key independently are split; commands on all keys go to
//! all nodes that have slots. All others are refused before any part runs.

use crate::front::lookahead::ParsedKey;
use rufous_base::{Args, Span};
use rufous_cluster::splitting::{Joins, Nodes, Plan, find};
use rufous_command::{Failure, Flags, Joined, Reply, Spec};
use rufous_datatype::integer;
use rufous_kernel::Header;
use rufous_mapping::NodeNo;
use std::collections::BTreeSet;

pub(super) fn can_split(spec: &Spec) -> bool {
    spec.flags.has(Flags::PER_KEY)
}

/// The words of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The node that they are for, unless it is this one.
    pub(super) node: Option<NodeNo>,
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<Span>,
}

impl Words {
    fn new<'a>(node: Option<NodeNo>, words: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word);
        }
        Self { node, bytes, spans }
    }
}

/// The parts of a request, and how their replies become one.
pub(super) struct Parts {
    pub(super) how: Joins,
    /// For each key in order, its part.
    pub(super) places: Vec<u32>,
    pub(super) parts: Vec<Words>,
}

/// The nodes that a request about all keys goes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllNodes<'a> {
    pub(super) own: Option<NodeNo>,
    /// The others that have slots.
    pub(super) others: &'a [NodeNo],
    pub(super) has_lattice: bool,
}

/// Why a walk over all keys has no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    NoCursor,
    /// Nothing follows the cursor, which is none of this cluster's.
    Over,
}

impl Ended {
    pub(super) fn reply(self, reply: &mut Reply<'_>) {
        match self {
            Self::NoCursor => reply.error(&Failure::INVALID_CURSOR),
            Self::Over => {
                reply.array(2);
                reply.bulk(b"0");
                reply.array(0);
            }
        }
    }
}

impl Parts {
    /// Of a request with keys at these nodes.
    pub(super) fn of_keys(
        spec: &Spec,
        header: &Header,
        (heads, keys): (&[Option<NodeNo>], &[ParsedKey]),
        args: &Args<'_>,
    ) -> Self {
        debug_assert!(can_split(spec), "such a request was refused");
        let how = match spec.flags.joined() {
            _ if header.quiet => Joins::Quiet,
            Joined::Sum => Joins::Sum,
            Joined::List => Joins::Elements,
            Joined::Ok | Joined::Any | Joined::Walk => Joins::Quiet,
        };
        let plan = Plan::new(heads);
        let parts = plan.parts.iter().map(|(head, of)| {
            let keys = of.iter().map(|key| args.get(keys[*key].arg as usize));
            Words::new(*head, [args.get(0)].into_iter().chain(keys))
        });
        Self {
            how,
            parts: parts.collect(),
            places: plan.places,
        }
    }

    /// Of a request about all keys, of this node and the others.
    pub(super) fn of_all(
        spec: &Spec,
        nodes: AllNodes<'_>,
        args: &Args<'_>,
        random: impl FnOnce() -> u64,
    ) -> Result<Self, Ended> {
        let how = match spec.flags.joined() {
            Joined::Walk => return Self::of_walk(nodes, args),
            Joined::Sum => Joins::Sum,
            Joined::List => Joins::Lists,
            Joined::Any => Joins::One(random()),
            Joined::Ok => Joins::Quiet,
        };
        let nodes = [None]
            .into_iter()
            .chain(nodes.others.iter().copied().map(Some));
        let parts = nodes.map(|node| Words::new(node, args.iter_from(0)));
        Ok(Self {
            how,
            places: Vec::new(),
            parts: parts.collect(),
        })
    }

    fn of_walk(nodes: AllNodes<'_>, args: &Args<'_>) -> Result<Self, Ended> {
        let own = nodes.own;
        let all: BTreeSet<NodeNo> = nodes.others.iter().copied().chain(own).collect();
        let nodes = Nodes {
            all: &all,
            own,
            has_lattice: nodes.has_lattice,
        };
        let text = args.get(1);
        let cursor = if text.is_empty() {
            Some(0)
        } else {
            integer::parse_u64_lenient(text)
        };
        let cursor = cursor.ok_or(Ended::NoCursor)?;
        let (step, cursor) = find(nodes, cursor).ok_or(Ended::Over)?;
        let cursor = cursor.to_string();
        let mut words: Vec<&[u8]> = args.iter_from(0).collect();
        words[1] = cursor.as_bytes();
        let node = Some(step.at).filter(|no| Some(*no) != own);
        Ok(Self {
            how: Joins::Walk(step),
            places: Vec::new(),
            parts: vec![Words::new(node, words.into_iter())],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::connection::Connection;
    use crate::front::testing::{id, info, with_args};
    use rufous_base::WorkerId;

    fn spec(name: &str) -> &'static Spec {
        let table = crate::command::table();
        table.spec(table.find(name.as_bytes()).expect("a command"))
    }

    /// The node of each part, and its words.
    fn shown(parts: &Parts) -> Vec<(u16, String)> {
        let all = parts.parts.iter().map(|part| {
            let word = |(at, len): &Span| {
                let bytes = &part.bytes[*at as usize..(at + len) as usize];
                String::from_utf8_lossy(bytes).into_owned()
            };
            let words: Vec<_> = part.spans.iter().map(word).collect();
            (part.node.map_or(0, |no| no.0), words.join(" "))
        });
        all.collect()
    }

    fn part(node: u16, words: &str) -> (u16, String) {
        (node, words.to_owned())
    }

    #[test]
    fn each_node_gets_its_keys() {
        let header = Connection::new(id(0, 1), 1, info(), 0).header(0, false, None);
        let heads = [Some(NodeNo(2)), None, Some(NodeNo(2))];
        let keys = [1, 2, 3].map(|arg| ParsedKey {
            db: 0,
            arg,
            hash: 0,
            owner: WorkerId(0),
        });
        with_args(&[b"MGET", b"a", b"b", b"c"], |args| {
            let parts = Parts::of_keys(spec("mget"), &header, (&heads, &keys), args);
            assert_eq!(shown(&parts), [part(2, "MGET a c"), part(0, "MGET b")]);
            assert_eq!(parts.places, [0, 1, 0]);
        });
    }

    #[test]
    fn a_request_about_all_keys_goes_to_all_nodes() {
        let nodes = AllNodes {
            own: Some(NodeNo(1)),
            others: &[NodeNo(2), NodeNo(3)],
            has_lattice: false,
        };
        with_args(&[b"DBSIZE"], |args| {
            let parts = Parts::of_all(spec("dbsize"), nodes, args, || 7);
            let all = [0, 2, 3].map(|node| part(node, "DBSIZE"));
            assert_eq!(parts.map(|parts| shown(&parts)), Ok(all.to_vec()));
        });
    }

    #[test]
    fn a_walk_is_at_one_node_at_a_time() {
        let nodes = AllNodes {
            own: Some(NodeNo(1)),
            others: &[NodeNo(2)],
            has_lattice: false,
        };
        let walk = |cursor: &[u8]| {
            with_args(&[b"SCAN", cursor], |args| {
                let parts = Parts::of_all(spec("scan"), nodes, args, || 7);
                parts.map(|parts| shown(&parts))
            })
        };
        assert_eq!(walk(b"0"), Ok(vec![part(0, "SCAN 0")]));
        assert_eq!(walk(b""), walk(b"0"));
        assert_eq!(walk(b"x"), Err(Ended::NoCursor));
    }
}
