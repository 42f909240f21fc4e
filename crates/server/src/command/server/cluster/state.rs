//! CLUSTER INFO: whether all slots have nodes that are reached and lattice keys are served, and what
//! went over sessions.

use super::Known;
use crate::cluster::figures::Figures;
use crate::command::server::info::sections::field;
use crate::front::session::Session;
use rufous_base::limits::SLOTS;
use rufous_command::Reply;
use std::collections::BTreeSet;

pub(super) fn info(session: &mut Session<'_>, reply: &mut Reply<'_>, known: Known) {
    session.ask_all(
        reply,
        |local, _| local.peer_figures(),
        move |_, workers: Vec<Figures>, reply| {
            let mut all = Figures::default();
            workers.into_iter().for_each(|one| all.merge(one));
            reply.verbatim(*b"txt", &text(&known, &all));
        },
    );
}

fn text(known: &Known, all: &Figures) -> String {
    let (mut assigned, mut reached) = (0, 0);
    let mut heads = BTreeSet::new();
    for (slots, chain) in known.mapping.chains.ranges() {
        if let Some(head) = chain.head() {
            assigned += slots.len();
            heads.insert(head);
            if known.is_reached(head) {
                reached += slots.len();
            }
        }
    }
    // Writes of slots whose data is broken here wait until this node is out of their chains.
    let broken = all.chains.broken;
    // Workers with lattice keyspaces that serve none of their keys.
    let waiting = all.gossip.waiting;
    let state = match reached == SLOTS && broken == 0 && waiting == 0 {
        true => "ok",
        false => "fail",
    };
    let epoch = known.mapping.epoch;
    let traffic = all.traffic();
    let mut out = String::new();
    field(&mut out, "cluster_enabled", 1);
    field(&mut out, "cluster_state", state);
    field(&mut out, "cluster_slots_assigned", assigned);
    field(&mut out, "cluster_slots_ok", reached);
    field(&mut out, "cluster_slots_pfail", assigned - reached);
    field(&mut out, "cluster_slots_fail", broken);
    field(&mut out, "cluster_lattice_waiting", waiting);
    field(&mut out, "cluster_known_nodes", known.mapping.members.len());
    field(&mut out, "cluster_size", heads.len());
    field(&mut out, "cluster_current_epoch", epoch);
    field(&mut out, "cluster_my_epoch", epoch);
    field(
        &mut out,
        "cluster_stats_messages_sent",
        traffic.messages_out,
    );
    field(
        &mut out,
        "cluster_stats_messages_received",
        traffic.messages_in,
    );
    out
}
