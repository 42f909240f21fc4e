//! Metrics of a node that is in a cluster; none of others.

use super::metrics::Figures;
use super::text::Exposition;
use rufous_kernel::worker::{ChainFigures, NodeFigures};
use rufous_server::cluster::figures::Figures as Peers;
use rufous_server::cluster::figures::Forwarding;
use rufous_server::front::shared::Shared;

pub(super) fn render(out: &mut Exposition, shared: &Shared, figures: &Figures) {
    let Some(cluster) = &shared.cluster else {
        return;
    };
    let mut all = Peers::default();
    let known = figures.iter().flatten();
    for peers in known.filter_map(|worker| worker.peers.clone()) {
        all.merge(peers);
    }
    let seen = cluster.shown.seen();
    out.gauge("rufous_cluster_epoch", "The mapping that the node acts by.")
        .value(all.epoch);
    out.gauge(
        "rufous_cluster_coordinator_up",
        "Whether the coordinator tells the node of changes.",
    )
    .value(u8::from(seen.is_current));
    out.gauge(
        "rufous_cluster_alive",
        "Whether the coordinator counts the node as alive.",
    )
    .value(u8::from(seen.is_member));
    out.gauge(
        "rufous_cluster_nodes_alive",
        "Nodes that the coordinator counts as alive.",
    )
    .value(seen.alive);
    out.counter(
        "rufous_cluster_epochs_proposed_total",
        "Mappings that the node has proposed and that came into force.",
    )
    .value(seen.proposed);
    out.counter(
        "rufous_cluster_mappings_refused_total",
        "Mappings of the coordinator that made no sense.",
    )
    .value(seen.refused);
    of_chains(out, &all.chains);
    of_gossip(out, &all.gossip);
    of_sessions(out, &all);
}

fn of_chains(out: &mut Exposition, chains: &ChainFigures) {
    out.gauge("rufous_slots_served", "Slots that the node answers for.")
        .value(chains.served);
    out.gauge(
        "rufous_slots_member",
        "Slots that the node is a member of the chains of.",
    )
    .value(chains.member);
    out.gauge("rufous_slots_whole", "Slots that the node has all of.")
        .value(chains.whole);
    out.gauge(
        "rufous_slots_broken",
        "Slots whose data on the node is not what it ought to be: their writes wait until the node is taken out of their chains.",
    )
    .value(chains.broken);
    out.counter(
        "rufous_chain_writes_total",
        "Writes that went along chains.",
    )
    .value(chains.appended);
    out.counter(
        "rufous_chain_writes_lost_total",
        "Times that slots went elsewhere while writes to them waited for their chains.",
    )
    .value(chains.lost);
    out.gauge(
        "rufous_chain_frames_waiting",
        "Frames that wait for chains.",
    )
    .value(chains.waiting);
    out.gauge(
        "rufous_chain_messages_waiting",
        "Messages of chains that wait for the log.",
    )
    .value(chains.held);
    out.gauge(
        "rufous_requests_waiting_for_slots",
        "Requests for slots that nobody answers for just now.",
    )
    .value(chains.parked);
    out.counter(
        "rufous_chain_refused_total",
        "Mappings and effects of other nodes that could not be done.",
    )
    .value(chains.refused_mappings + chains.refused_effects);
}

fn of_gossip(out: &mut Exposition, figures: &NodeFigures) {
    let of = &figures.gossip;
    for (name, help, value) in [
        (
            "rufous_gossip_batches_total",
            "Messages of lattice keyspaces to other nodes, each time they left.",
            of.sent_pieces,
        ),
        (
            "rufous_gossip_bytes_total",
            "Bytes of these messages.",
            of.sent_bytes,
        ),
        (
            "rufous_gossip_resent_total",
            "Of these messages, those that were sent again after a break.",
            of.resent_pieces,
        ),
        (
            "rufous_gossip_given_up_total",
            "Streams to other nodes that were given up, as too much would have been kept.",
            of.overflows,
        ),
        (
            "rufous_gossip_digests_total",
            "Comparisons with other nodes.",
            of.comparisons,
        ),
        (
            "rufous_gossip_slots_repaired_total",
            "Slots that were told again, whole.",
            of.repaired_slots,
        ),
        (
            "rufous_gossip_refused_total",
            "Messages of other nodes that could not be merged.",
            figures.refused,
        ),
    ] {
        out.counter(name, help).value(value);
    }
    out.gauge(
        "rufous_gossip_kept_bytes",
        "Bytes that are kept until other nodes have acknowledged them.",
    )
    .value(of.kept_bytes);
    let mut lags = out.gauge(
        "rufous_gossip_lag_microseconds",
        "How far another node is known to be behind this one; none where it has said nothing.",
    );
    for (node, lag) in &figures.lags_us {
        if let Some(us) = lag {
            lags.sample(&[("node", node)], *us);
        }
    }
}

fn of_sessions(out: &mut Exposition, all: &Peers) {
    out.gauge("rufous_peers_connected", "Nodes with a session.")
        .value(all.peers.len());
    out.counter("rufous_peer_sessions_total", "Sessions that began.")
        .value(all.sessions);
    out.counter(
        "rufous_peer_dials_total",
        "Connections to nodes that were tried.",
    )
    .value(all.dials);
    out.counter("rufous_peer_dial_errors_total", "Those that failed.")
        .value(all.dial_errors);
    let mut refused = out.counter(
        "rufous_peer_refused_total",
        "Nodes, or who claimed to be one, that were refused, by the reason's code (docs/format/wire.md).",
    );
    for (reason, count) in &all.refused {
        refused.sample(&[("reason", reason)], *count);
    }
    out.counter(
        "rufous_peer_refused_by_total",
        "Times that another node refused this one.",
    )
    .value(all.refused_by_peers);
    of_nodes(out, all);
    let traffic = all.traffic();
    out.counter("rufous_peer_bytes_in_total", "Bytes from nodes.")
        .value(traffic.bytes_in);
    out.counter("rufous_peer_bytes_out_total", "Bytes to nodes.")
        .value(traffic.bytes_out);
    out.counter("rufous_peer_messages_in_total", "Messages from nodes.")
        .value(traffic.messages_in);
    out.counter("rufous_peer_messages_out_total", "Messages to nodes.")
        .value(traffic.messages_out);
    out.counter(
        "rufous_peer_messages_lost_total",
        "Messages to nodes without a session.",
    )
    .value(all.lost);
    forwarding(out, &all.forward);
}

/// Of each node with a session.
fn of_nodes(out: &mut Exposition, all: &Peers) {
    let nodes = all.by_node();
    let mut versions = out.gauge(
        "rufous_peer_wire_version",
        "The version of the messages between this node and another one.",
    );
    for (no, peer) in &nodes {
        versions.sample(&[("node", &no.0)], peer.version);
    }
    let clocks = nodes
        .iter()
        .filter_map(|(no, peer)| Some((no.0, peer.clock?)));
    let clocks: Vec<_> = clocks.collect();
    let mut offsets = out.gauge(
        "rufous_peer_clock_offset_microseconds",
        "How far another node's clock is ahead of this one's; none where it has not said.",
    );
    for (node, clock) in &clocks {
        offsets.sample(&[("node", node)], clock.us);
    }
    let mut within = out.gauge(
        "rufous_peer_clock_within_microseconds",
        "How far that may be wrong: half the way to the node and back.",
    );
    for (node, clock) in &clocks {
        within.sample(&[("node", node)], clock.within_us);
    }
}

/// Requests for other nodes, and theirs.
fn forwarding(out: &mut Exposition, all: &Forwarding) {
    let counters = [
        (
            "rufous_forwarded_total",
            "Requests that were passed on to other nodes, each time.",
            all.forwarded,
        ),
        (
            "rufous_forwarded_again_total",
            "Those that had to be sent again.",
            all.retried,
        ),
        (
            "rufous_forwarded_in_doubt_total",
            "Writes of which nobody knows whether they were done.",
            all.in_doubt,
        ),
        (
            "rufous_forwarding_refused_total",
            "Requests without a way to their keys, or that cannot be passed on.",
            all.refused,
        ),
        (
            "rufous_split_total",
            "Requests whose keys were at several nodes.",
            all.split,
        ),
        (
            "rufous_served_total",
            "Requests of other nodes that ran here.",
            all.served,
        ),
        (
            "rufous_not_served_here_total",
            "Requests of other nodes whose keys are not here.",
            all.not_here,
        ),
    ];
    for (name, help, value) in counters {
        out.counter(name, help).value(value);
    }
    out.gauge(
        "rufous_forwarded_under_way",
        "Requests at other nodes, not answered yet.",
    )
    .value(all.under_way);
    out.gauge(
        "rufous_forwarded_waiting",
        "Requests that wait to be sent again.",
    )
    .value(all.waiting);
}
