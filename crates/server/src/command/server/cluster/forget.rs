//! CLUSTER FORGET: removes a member that is gone for good.
//!
//! Redis makes one node forget another for a minute. Here the member leaves the mapping, for all
//! nodes: the control thread proposes that to the coordinator.

use super::{Known, known, spec};
use crate::cluster::identity::hex;
use crate::command::SessionCommand;
use rufous_command::{Failure, Flags, Spec};
use rufous_mapping::planner::forget;
use rufous_mapping::{NodeId, NodeNo};

pub(super) static FORGET: SessionCommand = SessionCommand {
    spec: Spec {
        flags: Flags::ADMIN,
        ..spec(
            "cluster|forget",
            "3.0.0",
            "O(N) where N is the number of ranges of slots",
            3,
            "node-id",
            "Removes a node that is away and does not come back from the cluster.",
        )
    },
    run: |session, args, reply| {
        let known = known(session)?;
        let cluster = session.local.shared().cluster.as_ref();
        let not_yet = "CLUSTERDOWN The node has no mapping of its cluster yet";
        let cluster = cluster.ok_or(not_yet)?;
        let (no, id) = member(&known, args.get(2))?;
        if known.own == Some(no) {
            let why = "ERR the node does not remove itself: use CLUSTER DRAIN, and then stop it";
            return Err(why.into());
        }
        let status = cluster.about.status().ok_or(not_yet)?;
        if !status.is_current {
            let why = "CLUSTERDOWN The coordinator is unreachable: members cannot be removed";
            return Err(why.into());
        }
        if cluster.about.is_alive(id) {
            let why = format!(
                "ERR node {no} is alive: use CLUSTER DRAIN at it to move its slots, or stop it and try again after some seconds"
            );
            return Err(Failure::from(why));
        }
        if let Err(kept) = forget(&known.mapping, no) {
            return Err(Failure::from(format!(
                "ERR node {no} is not removed: {kept}"
            )));
        }
        cluster.about.forget(id);
        reply.simple("OK");
        Ok(())
    },
};

/// The member with this id or number (`n2`).
fn member(known: &Known, name: &[u8]) -> Result<(NodeNo, NodeId), Failure> {
    let is_meant = |no: NodeNo, id: NodeId| {
        name.eq_ignore_ascii_case(hex(&id.0).as_bytes()) || name == format!("{no}").as_bytes()
    };
    let mut members = known.mapping.members.iter();
    let found = members.find(|(no, member)| is_meant(**no, member.id));
    let found = found.map(|(no, member)| (*no, member.id));
    found.ok_or_else(|| {
        // Names are bounded: ids have 40 digits.
        let name = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
        Failure::from(format!("ERR Unknown node {name}"))
    })
}
