//! CLUSTER: who has which slots, from the mapping in force, in the forms that
//! cluster-aware clients and tools read.
//!
//! - `copies`: READONLY, READWRITE
//! - `forget`: FORGET
//! - `keys`: COUNTKEYSINSLOT, GETKEYSINSLOT
//! - `members`: NODES, SLOTS, SHARDS
//! - `operate`: STATUS, DRAIN, WEIGHT, PREVIEW: those of operators, which Redis has not
//! - `state`: INFO
//!
//! Redis knows masters that have slots, and replicas of masters. Here each slot
//! has a chain of nodes: its head is shown as the master, the others of its chain
//! as replicas where they belong to slots, and each node as a master where
//! they belong to nodes.

use crate::cluster::identity::hex;
use crate::command::{SessionCommand, help};
use crate::front::session::Session;
use rufous_base::slot::slot_of;
use rufous_command::{Failure, Flags, Group, Keys, Spec};
use rufous_mapping::{Mapping, Member, NodeNo};
use std::sync::Arc;

mod copies;
mod forget;
mod keys;
mod members;
mod operate;
mod state;

pub static COMMANDS: &[&SessionCommand] = &[
    &CLUSTER,
    &INFO,
    &MYID,
    &NODES,
    &SLOTS,
    &SHARDS,
    &KEYSLOT,
    &keys::COUNTKEYSINSLOT,
    &keys::GETKEYSINSLOT,
    &operate::STATUS,
    &operate::DRAIN,
    &forget::FORGET,
    &operate::WEIGHT,
    &operate::PREVIEW,
    &HELP,
    &copies::READONLY,
    &copies::READWRITE,
];

const fn spec(
    name: &'static str,
    since: &'static str,
    complexity: &'static str,
    arity: i32,
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since,
        group: Group::Server,
        complexity,
        arity,
        flags: Flags::LOADING.or(Flags::STALE),
        keys: Keys::None,
        syntax,
    }
}

pub static CLUSTER: SessionCommand = SessionCommand {
    spec: Spec {
        flags: Flags::CONTAINER.or(Flags::LOADING).or(Flags::STALE),
        ..spec(
            "cluster",
            "3.0.0",
            "Depends on the subcommand.",
            -2,
            "",
            "A container for what is known of the cluster.",
        )
    },
    run: |_, _, _| Err(Failure::wrong_arity("cluster")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|help",
        "5.0.0",
        "O(1)",
        2,
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "cluster", reply),
};

pub static MYID: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|myid",
        "3.0.0",
        "O(1)",
        2,
        "",
        "Returns the id of the node.",
    ),
    run: |session, _, reply| {
        let id = known(session)?.id;
        reply.bulk(hex(&id).as_bytes());
        Ok(())
    },
};

pub static KEYSLOT: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|keyslot",
        "3.0.0",
        "O(N) where N is the length of the key",
        3,
        "key",
        "Returns the slot of a key.",
    ),
    run: |session, args, reply| {
        known(session)?;
        reply.integer(slot_of(args.get(2)).into());
        Ok(())
    },
};

pub static INFO: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|info",
        "3.0.0",
        "O(N) where N is the number of ranges of slots",
        2,
        "",
        "Returns the state of the cluster.",
    ),
    run: |session, _, reply| {
        let known = known(session)?;
        state::info(session, reply, known);
        Ok(())
    },
};

pub static NODES: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|nodes",
        "3.0.0",
        "O(N) where N is the number of ranges of slots",
        2,
        "",
        "Returns a line for each node of the cluster.",
    ),
    run: |session, _, reply| {
        let text = members::nodes(&known(session)?);
        reply.verbatim(*b"txt", &text);
        Ok(())
    },
};

pub static SLOTS: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|slots",
        "3.0.0",
        "O(N) where N is the number of ranges of slots",
        2,
        "",
        "Returns which nodes have which slots.",
    ),
    run: |session, _, reply| {
        members::slots(&known(session)?, reply);
        Ok(())
    },
};

pub static SHARDS: SessionCommand = SessionCommand {
    spec: spec(
        "cluster|shards",
        "7.0.0",
        "O(N) where N is the number of ranges of slots",
        2,
        "",
        "Returns the slots of each node, and the nodes with copies.",
    ),
    run: |session, _, reply| {
        members::shards(&known(session)?, reply);
        Ok(())
    },
};

/// What this worker knows of the cluster.
struct Known {
    id: [u8; 20],
    /// Without a mapping nobody has any slot.
    mapping: Arc<Mapping>,
    own: Option<NodeNo>,
    /// The node itself, while it is no member: one that has drained, or comes only.
    apart: Option<Member>,
    /// Nodes with a session.
    connected: Vec<NodeNo>,
}

impl Known {
    fn is_reached(&self, no: NodeNo) -> bool {
        self.own == Some(no) || self.connected.contains(&no)
    }
}

fn known(session: &Session<'_>) -> Result<Known, Failure> {
    let (Some(cluster), Some(links)) = (&session.local.shared().cluster, session.local.links())
    else {
        return Err("ERR This instance has cluster support disabled".into());
    };
    let mapping = links.mapping().cloned();
    Ok(Known {
        id: cluster.common.local.id,
        mapping: mapping.unwrap_or_else(|| Arc::new(Mapping::new(1))),
        own: links.own(),
        apart: match links.own() {
            None => cluster.about.member(),
            Some(_) => None,
        },
        connected: links.connected().collect(),
    })
}

#[cfg(test)]
mod copies_tests;
#[cfg(test)]
mod leaving_tests;
#[cfg(test)]
mod operate_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting_tests;
