//! What a view says, by itself or with the mapping in force.

use super::reach::Reach;
use super::{Stored, View};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use rufous_wire::mapping::decode;
use std::collections::{BTreeMap, BTreeSet};

/// The stored mapping, if it is valid and may follow the known one.
pub(super) fn judge(stored: &Stored<'_>, known: Option<&Mapping>) -> Result<Mapping, &'static str> {
    let mapping = decode(stored.mapping).map_err(|invalid| invalid.0)?;
    if mapping.epoch != stored.epoch {
        return Err("its epoch differs from the key's");
    }
    // Epochs between the two are unknown.
    if let Some(known) = known.filter(|known| known.epoch + 1 == mapping.epoch) {
        mapping.follows(known).map_err(|invalid| invalid.0)?;
    }
    Ok(mapping)
}

/// Whether a node is the head of every slot.
pub(super) fn has_all(mapping: &Mapping, me: NodeId) -> bool {
    let own = mapping.number_of(me);
    let mut heads = mapping.chains.ranges().map(|(_, chain)| chain.head());
    own.is_some() && heads.all(|head| head == own)
}

/// The node that plans, and those that would do so instead: the leader, then the other live members by
/// their numbers, without those whose process has ended. Those that cannot do their part come last: where
/// a worker stands still, reports of other nodes may not arrive.
pub(super) fn planners(
    mapping: Option<&Mapping>,
    view: &View<'_>,
) -> impl Iterator<Item = NodeId> + use<> {
    let members = mapping.into_iter().flat_map(|mapping| &mapping.members);
    let is_alive = |member: &Member| {
        let now = view.alive.get(&member.id);
        now.is_some_and(|now| now.incarnation == member.incarnation)
    };
    let live = members.filter(|(_, member)| is_alive(member));
    let others = live.map(|(_, member)| member.id);
    let others = others.filter(|id| Some(*id) != view.leader);
    let has_ended = |id: &NodeId| {
        let no = mapping.and_then(|mapping| mapping.number_of(*id));
        let ended = no.and_then(|no| view.ended.get(&no));
        let now = view.alive.get(id).map(|now| now.incarnation);
        ended.is_some() && ended.copied() == now
    };
    let ails = |id: &NodeId| {
        let health = view.health.get(id);
        health.is_some_and(|health| health.ails.is_some())
    };
    let all = view.leader.into_iter().chain(others);
    let all = all.filter(|id| !has_ended(id));
    let (last, first): (Vec<NodeId>, Vec<NodeId>) = all.partition(ails);
    first.into_iter().chain(last)
}

/// Whether the next epoch may be proposed.
pub(super) fn is_time(
    proposed_us: Option<u64>,
    away: &BTreeMap<NodeNo, u64>,
    apart_us: u64,
    now_us: u64,
) -> bool {
    let is_recent = |at: &u64| now_us.saturating_sub(*at) < apart_us;
    away.values().any(is_recent) || !proposed_us.as_ref().is_some_and(is_recent)
}

/// Members that announce that they want to leave, and those that were removed.
pub(super) fn draining(mapping: &Mapping, view: &View<'_>) -> BTreeSet<NodeNo> {
    let announces = |id: &NodeId| view.alive.get(id).is_some_and(|member| member.drains);
    let members = mapping.members.iter();
    members
        .filter(|(_, member)| view.removed.contains(&member.id) || announces(&member.id))
        .map(|(no, _)| *no)
        .collect()
}

/// Members that are alive and cannot do their part, with the reason.
pub(super) fn unfit(mapping: &Mapping, view: &View<'_>, reach: &Reach) -> BTreeMap<NodeNo, String> {
    let ails = mapping.members.iter().filter_map(|(no, member)| {
        let health = view.health.get(&member.id)?;
        Some((*no, health.ails.clone()?))
    });
    let unheard = reach.replaced().map(|no| {
        let why = "it and other members do not hear one another";
        (no, why.to_owned())
    });
    unheard.chain(ails).collect()
}

pub(super) fn note_away(
    away: &mut BTreeMap<NodeNo, u64>,
    mapping: &Mapping,
    alive: &BTreeMap<NodeId, Member>,
    now_us: u64,
) {
    let is_away = |no: &NodeNo| {
        let member = mapping.members.get(no);
        member.is_some_and(|member| !alive.contains_key(&member.id))
    };
    away.retain(|no, _| is_away(no));
    for no in mapping.members.keys().filter(|no| is_away(no)) {
        away.entry(*no).or_insert(now_us);
    }
}
