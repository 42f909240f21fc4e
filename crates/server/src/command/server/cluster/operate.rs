//! What operators ask of a cluster and of its node: STATUS, DRAIN, WEIGHT, PREVIEW.
//!
//! A node says of itself what it is asked to, and who plans heeds it: the answer
//! comes at once, and STATUS shows what becomes of it.

use super::{known, spec};
use crate::cluster::preview::Preview;
use crate::cluster::status::Status;
use crate::cluster::versions;
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_command::{Failure, Flags, Reply, Spec};
use rufous_mapping::ring::MAX_WEIGHT;
use rufous_mapping::{Member, NodeNo};

/// Words of a preview: those of a hundred nodes.
const MOST_PREVIEWED: usize = 202;

pub(super) static STATUS: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|status",
        "7.2.4",
        "O(N) where N is the number of nodes",
        2,
        "",
        "Returns the nodes of the cluster, their versions, and how many slots have all their copies.",
    ),
    run: |session, _, reply| {
        known(session)?;
        let not_yet = "CLUSTERDOWN The node has no mapping of its cluster yet";
        let cluster = session.local.shared().cluster.as_ref().ok_or(not_yet)?;
        let status = cluster.about.status().ok_or(not_yet)?;
        let mut status = Status::clone(&status);
        versions::tell(&mut status, cluster);
        reply.verbatim(*b"txt", &status.text());
        Ok(())
    },
};

pub(super) static DRAIN: SessionCommand = SessionCommand {
    spec: Spec {
        flags: Flags::ADMIN,
        ..spec(
            "cluster|drain",
            "7.2.4",
            "O(1)",
            -2,
            "[ON | OFF]",
            "Has the node give all its slots to others, and take none; OFF ends that.",
        )
    },
    run: |session, args, reply| {
        let drains = match args.len() {
            2 => true,
            3 if args.get(2).eq_ignore_ascii_case(b"on") => true,
            3 if args.get(2).eq_ignore_ascii_case(b"off") => false,
            _ => return Err("ERR syntax error".into()),
        };
        let known = known(session)?;
        let others = |own| known.mapping.ring.members().keys().any(|no| *no != own);
        if drains && !known.own.is_some_and(others) {
            return Err("ERR no other node can take the slots".into());
        }
        say(session, reply, |member| member.drains = drains)
    },
};

pub(super) static WEIGHT: SessionCommand = SessionCommand {
    spec: Spec {
        flags: Flags::ADMIN,
        ..spec(
            "cluster|weight",
            "7.2.4",
            "O(1)",
            3,
            "weight",
            "Has the node take more or less, against the weight of other nodes, until it starts again.",
        )
    },
    run: |session, args, reply| {
        known(session)?;
        let weight = std::str::from_utf8(args.get(2)).ok();
        let weight = weight.and_then(|text| text.parse().ok());
        let weight: u16 = weight
            .filter(|weight| (1..=MAX_WEIGHT).contains(weight))
            .ok_or("ERR a weight is a number from 1 to 1000")?;
        say(session, reply, |member| member.weight = weight)
    },
};

/// The control thread tells the coordinator.
fn say(
    session: &Session<'_>,
    reply: &mut Reply<'_>,
    change: impl FnOnce(&mut Member),
) -> Result<(), Failure> {
    let cluster = session.local.shared().cluster.as_ref();
    match cluster.is_some_and(|cluster| cluster.about.change(change)) {
        true => {
            reply.simple("OK");
            Ok(())
        }
        false => Err("CLUSTERDOWN The node has not joined its cluster yet".into()),
    }
}

pub(super) static PREVIEW: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|preview",
        "7.2.4",
        "O(N) where N is the number of slots",
        -2,
        "[node weight [node weight ...]]",
        "Returns what would move if nodes, by their numbers, had these weights.",
    ),
    run: |session, args, reply| {
        let known = known(session)?;
        if !args.len().is_multiple_of(2) || args.len() > MOST_PREVIEWED {
            return Err("ERR syntax error".into());
        }
        let number = |at: usize| {
            let text = std::str::from_utf8(args.get(at)).ok();
            let number = text.and_then(|text| text.parse::<u16>().ok());
            number.ok_or("ERR nodes and weights are numbers")
        };
        let mut weights = Vec::new();
        for at in (2..args.len()).step_by(2) {
            weights.push((NodeNo(number(at)?), number(at + 1)?));
        }
        let preview = Preview::of(&known.mapping, &weights);
        reply.verbatim(*b"txt", &preview.text());
        Ok(())
    },
};
