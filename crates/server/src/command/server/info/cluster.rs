//! `INFO cluster`: the cluster that the node is in, and its sessions with the
//! other nodes.

use super::figures::Figures;
use super::sections::field;
use crate::cluster::identity::hex;
use crate::front::local::Local;
use rufous_base::Now;
use rufous_base::figures::Figure;
use rufous_cluster::figures::{ForwardFigures, WaitFigures};
use rufous_kernel::replicate::gossip::Figures as Gossip;
use rufous_kernel::worker::{ChainFigures, LinearFigures};

pub(super) fn write(out: &mut String, local: &Local<'_>, all: &Figures, _: Now) {
    let Some(cluster) = &local.shared().cluster else {
        return field(out, "cluster_enabled", 0);
    };
    let (seen, links) = (cluster.shown.seen(), local.links());
    field(out, "cluster_enabled", 1);
    field(out, "cluster_name", &cluster.settings.name);
    field(out, "cluster_node_id", hex(&cluster.common.local.id));
    field(out, "cluster_incarnation", cluster.common.local.incarnation);
    field(out, "cluster_wire_version", cluster.common.local.newest);
    if let Some(own) = links.and_then(|links| links.own()) {
        field(out, "cluster_node_number", own);
    }
    let mapping = links.and_then(|links| links.mapping());
    field(out, "cluster_epoch", mapping.map_or(0, |m| m.epoch));
    field(
        out,
        "cluster_members",
        mapping.map_or(0, |m| m.members.len()),
    );
    let coordinator = match (seen.went_back, seen.is_current) {
        (true, _) => "behind",
        (false, true) => "current",
        (false, false) => "away",
    };
    field(out, "cluster_coordinator", coordinator);
    field(out, "cluster_is_alive", u8::from(seen.is_member));
    field(out, "cluster_is_planning", u8::from(seen.is_leader));
    field(out, "cluster_nodes_alive", seen.alive);
    let health = cluster.common.health.known();
    let hears = health.hears.map_or(0, |hears| hears.len());
    field(out, "cluster_nodes_heard", hears);
    field(out, "cluster_ails", health.ails.unwrap_or_default());
    field(out, "cluster_workers_stood_still", seen.stood_still);
    field(
        out,
        "cluster_lattice_waits",
        health.waits.unwrap_or_default(),
    );
    field(out, "cluster_epochs_proposed", seen.proposed);
    field(out, "cluster_slots_halted", seen.halted);
    field(out, "cluster_folders_refused", seen.behind);
    field(out, "cluster_slots_continued_with_loss", seen.lossy);
    field(out, "cluster_members_forgotten", seen.outstayed);
    field(out, "cluster_mappings_refused", seen.refused);
    fields(out, ChainFigures::FIGURES, &all.peers.chains);
    fields(out, LinearFigures::FIGURES, &all.peers.transactions);
    fields(out, WaitFigures::FIGURES, &all.peers.waits);
    gossip(out, all);
    sessions(out, all);
    clocks(out, all);
    fields(out, ForwardFigures::FIGURES, &all.peers.forward);
    members(out, local, all);
}

/// The fields of a structure of counters.
fn fields<T>(out: &mut String, list: &[Figure<T>], of: &T) {
    for figure in list {
        field(out, figure.info, (figure.read)(of));
    }
}

/// Lattice keyspaces, and a line for each node of how far behind it is known to be.
fn gossip(out: &mut String, all: &Figures) {
    let figures = &all.peers.gossip;
    field(out, "cluster_gossip_workers_serving", figures.serving);
    field(out, "cluster_gossip_workers_waiting", figures.waiting);
    field(out, "cluster_gossip_nodes_excused", figures.excused);
    fields(out, Gossip::FIGURES, &figures.gossip);
    field(out, "cluster_gossip_refused", figures.refused);
    for (node, lag) in &figures.lags_us {
        let lag = lag.map_or("unknown".into(), |us| us.to_string());
        field(out, &format!("cluster_gossip_lag_us_n{node}"), lag);
    }
}

fn sessions(out: &mut String, all: &Figures) {
    let peers = &all.peers;
    field(out, "cluster_connected_nodes", peers.peers.len());
    field(out, "cluster_sessions", peers.sessions);
    field(out, "cluster_dials", peers.dials);
    field(out, "cluster_dial_errors", peers.dial_errors);
    field(out, "cluster_nodes_gone", peers.gone);
    field(out, "cluster_refused", peers.refusals());
    let reasons = peers.refused.iter();
    let reasons: Vec<_> = reasons.map(|(code, n)| format!("{code}={n}")).collect();
    field(out, "cluster_refused_reasons", reasons.join(","));
    field(out, "cluster_refused_by_nodes", peers.refused_by_peers);
    field(out, "cluster_strangers_closed", peers.turned_away);
    let traffic = peers.traffic();
    field(out, "cluster_bytes_received", traffic.bytes_in);
    field(out, "cluster_bytes_sent", traffic.bytes_out);
    field(out, "cluster_messages_received", traffic.messages_in);
    field(out, "cluster_messages_sent", traffic.messages_out);
    field(out, "cluster_messages_lost", peers.lost);
    field(
        out,
        "cluster_messages_unused",
        all.counters.peer_messages_unused,
    );
}

/// A line for each node of how far its clock is ahead of this one's, and one of how far
/// that may be wrong.
fn clocks(out: &mut String, all: &Figures) {
    for (no, peer) in all.peers.by_node() {
        let shown = |us: Option<String>| us.unwrap_or_else(|| "unknown".into());
        let offset = peer.clock.map(|clock| clock.us.to_string());
        field(out, &format!("cluster_clock_offset_us_{no}"), shown(offset));
        let within = peer.clock.map(|clock| clock.within_us.to_string());
        field(out, &format!("cluster_clock_within_us_{no}"), shown(within));
    }
}

/// A line for each member.
fn members(out: &mut String, local: &Local<'_>, all: &Figures) {
    let links = local.links();
    let mapping = links.and_then(|links| links.mapping());
    let own = links.and_then(|links| links.own());
    for (no, member) in mapping.iter().flat_map(|mapping| &mapping.members) {
        let mut line = format!(
            "id={},incarnation={},address={},state=",
            member.id, member.incarnation, member.peer
        );
        let session = all.peers.peers.iter().find(|peer| peer.no == *no);
        match session {
            _ if own == Some(*no) => line.push_str("myself"),
            None => line.push_str("unconnected"),
            Some(peer) => line.push_str(&format!(
                "connected,worker={},version={},epoch={},bytes_received={},bytes_sent={},messages_received={},messages_sent={}",
                peer.worker,
                peer.version,
                peer.epoch,
                peer.traffic.bytes_in,
                peer.traffic.bytes_out,
                peer.traffic.messages_in,
                peer.traffic.messages_out,
            )),
        }
        field(out, &format!("cluster_node{}", no.0), line);
    }
}
