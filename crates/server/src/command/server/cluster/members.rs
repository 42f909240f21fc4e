//! CLUSTER NODES, SLOTS and SHARDS.

use super::Known;
use crate::cluster::identity::hex;
use rufous_command::Reply;
use rufous_mapping::member::host_and_port;
use rufous_mapping::{Member, Members, NodeNo};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

/// Neighbouring slots with the same nodes, those that nobody has left out.
fn ranges(known: &Known) -> Vec<(Range<u16>, Members)> {
    let mut all: Vec<(Range<u16>, Members)> = Vec::new();
    for (slots, chain) in known.mapping.chains.ranges() {
        match all.last_mut() {
            _ if chain.members.is_empty() => {}
            Some((last, members)) if last.end == slots.start && *members == chain.members => {
                last.end = slots.end;
            }
            _ => all.push((slots, chain.members)),
        }
    }
    all
}

/// Where clients reach a node: host and port.
fn address(member: &Member) -> (&str, i64) {
    let (host, port) = member.for_clients();
    (host, port.into())
}

/// A line for each node, and for this one also where it is no member: clients look for
/// the line of the node that they ask. In the form of Redis:
/// `<id> <host:port@port> <flags> <master> <ping> <pong> <epoch> <link> <slots…>`.
pub(super) fn nodes(known: &Known) -> String {
    let mut slots: BTreeMap<NodeNo, String> = BTreeMap::new();
    for (range, members) in ranges(known) {
        if let Some(head) = members.first() {
            let (first, last) = (range.start, range.end - 1);
            let all = slots.entry(*head).or_default();
            let _ = match first == last {
                true => write!(all, " {first}"),
                false => write!(all, " {first}-{last}"),
            };
        }
    }
    let mut text = String::new();
    for (no, member) in &known.mapping.members {
        let ((host, port), (_, peer)) = (address(member), host_and_port(&member.peer));
        let is_reached = known.is_reached(*no);
        let flags = match (known.own == Some(*no), is_reached) {
            (true, _) => "myself,master",
            (false, true) => "master",
            (false, false) => "master,fail?",
        };
        let link = if is_reached {
            "connected"
        } else {
            "disconnected"
        };
        let all = slots.get(no).map_or("", String::as_str);
        let epoch = known.mapping.epoch;
        let _ = writeln!(
            text,
            "{} {host}:{port}@{peer} {flags} - 0 0 {epoch} {link}{all}",
            member.id
        );
    }
    if let Some(member) = &known.apart {
        let ((host, port), (_, peer)) = (address(member), host_and_port(&member.peer));
        let (id, epoch) = (member.id, known.mapping.epoch);
        let _ = writeln!(
            text,
            "{id} {host}:{port}@{peer} myself,master - 0 0 {epoch} connected"
        );
    }
    text
}

/// For each range: its first and last slot, its head, the others of its chain.
pub(super) fn slots(known: &Known, reply: &mut Reply<'_>) {
    let ranges = ranges(known);
    reply.array(ranges.len());
    for (range, members) in ranges {
        let members: Vec<&Member> = members
            .iter()
            .filter_map(|no| known.mapping.members.get(no))
            .collect();
        reply.array(2 + members.len());
        reply.integer(range.start.into());
        reply.integer(i64::from(range.end) - 1);
        for member in members {
            let (host, port) = address(member);
            reply.array(4);
            reply.bulk(host.as_bytes());
            reply.integer(port);
            reply.bulk(hex(&member.id.0).as_bytes());
            reply.map(0);
        }
    }
}

/// For each node: the slots that it is the head of, and who has copies of them.
pub(super) fn shards(known: &Known, reply: &mut Reply<'_>) {
    let ranges = ranges(known);
    reply.array(known.mapping.members.len());
    for no in known.mapping.members.keys() {
        let own = ranges
            .iter()
            .filter(|(_, members)| members.first() == Some(no));
        let copies: BTreeSet<NodeNo> = own
            .clone()
            .flat_map(|(_, members)| members.iter().skip(1).copied())
            .collect();
        let own: Vec<&Range<u16>> = own.map(|(range, _)| range).collect();
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(own.len() * 2);
        for range in own {
            reply.integer(range.start.into());
            reply.integer(i64::from(range.end) - 1);
        }
        reply.bulk(b"nodes");
        reply.array(1 + copies.len());
        node(known, *no, "master", reply);
        for copy in copies {
            node(known, copy, "replica", reply);
        }
    }
}

fn node(known: &Known, no: NodeNo, role: &str, reply: &mut Reply<'_>) {
    let Some(member) = known.mapping.members.get(&no) else {
        // Of a mapping that was let through, whoever is in a chain is a member.
        return reply.map(0);
    };
    let (host, port) = address(member);
    let health = match known.is_reached(no) {
        true => "online",
        false => "fail",
    };
    reply.map(7);
    let mut text = |name: &str, value: &str| {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    };
    text("id", &hex(&member.id.0));
    text("ip", host);
    text("endpoint", host);
    text("role", role);
    text("health", health);
    reply.bulk(b"port");
    reply.integer(port);
    reply.bulk(b"replication-offset");
    reply.integer(0);
}
