//! Mappings as messages, and as stored by a coordinator. Received ones are validated in full before
//! they are returned.

use crate::message::{ID, Mapping, Member, Owners, Weight};
use crate::{message, scan};
use prost::Message;
use rufous_base::limits::SLOTS;
use rufous_mapping::member::MAX_MEMBERS;
use rufous_mapping::planner::Health;
use rufous_mapping::{Chain, Chains, Folder, Invalid, Members, NodeId, NodeNo, Phase, Ring, Was};
use rufous_mapping::{chains, ring};
use std::collections::BTreeMap;
use std::ops::Range;

/// Characters of a reason that are kept.
const MAX_AILS: usize = 200;

/// For a store that does not interpret mappings.
pub fn encode(mapping: &rufous_mapping::Mapping) -> Vec<u8> {
    Mapping::from(mapping).encode_to_vec()
}

pub fn decode(bytes: &[u8]) -> Result<rufous_mapping::Mapping, Invalid> {
    if !scan::has_few(bytes) {
        return Err(Invalid("not a mapping, or too many fields"));
    }
    let mapping = Mapping::decode(bytes).map_err(|_| Invalid("not a mapping"))?;
    rufous_mapping::Mapping::try_from(&mapping)
}

/// A node's announcement, for a store that does not interpret it.
pub fn encode_member(member: &rufous_mapping::Member) -> Vec<u8> {
    member_of(NodeNo(0), member).encode_to_vec()
}

pub fn decode_member(bytes: &[u8]) -> Result<rufous_mapping::Member, Invalid> {
    let member = Member::decode(bytes).map_err(|_| Invalid("not a member"))?;
    let member = member_from(&member)?;
    member.check()?;
    Ok(member)
}

/// The same with what the node says of its health. Programs that do not know that field read the
/// member.
pub fn encode_announcement(member: &rufous_mapping::Member, health: &Health) -> Vec<u8> {
    let mut bytes = encode_member(member);
    let health = message::Health {
        ails: health.ails.clone().unwrap_or_default(),
        says_whom: health.hears.is_some(),
        hears: health
            .hears
            .iter()
            .flatten()
            .map(|no| no.0.into())
            .collect(),
        waits: health.waits.clone().unwrap_or_default(),
        unserved: health.unserved.min(SLOTS) as u32,
        serves: health.serves,
    };
    bytes.extend(health.encode_to_vec());
    bytes
}

/// The health in an announcement. What is not valid says nothing.
pub fn decode_health(bytes: &[u8]) -> Health {
    let Ok(wire) = message::Health::decode(bytes) else {
        return Health::default();
    };
    let ails: String = wire.ails.chars().take(MAX_AILS).collect();
    let waits: String = wire.waits.chars().take(MAX_AILS).collect();
    let hears = wire
        .hears
        .iter()
        .filter_map(|no| Some(NodeNo(u16::try_from(*no).ok()?)));
    Health {
        ails: (!ails.is_empty()).then_some(ails),
        hears: wire.says_whom.then(|| hears.take(MAX_MEMBERS).collect()),
        waits: (!waits.is_empty()).then_some(waits),
        unserved: SLOTS.min(wire.unserved as usize),
        serves: wire.serves,
    }
}

impl Mapping {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        rufous_mapping::Mapping::try_from(self).map(|_| ())
    }
}

impl From<&rufous_mapping::Mapping> for Mapping {
    fn from(mapping: &rufous_mapping::Mapping) -> Self {
        let members = mapping.members.iter();
        let weights = mapping.ring.members().iter();
        let owners = |(slots, nodes): (Range<u16>, &[NodeNo])| Owners {
            until: slots.end.into(),
            nodes: numbers(nodes),
        };
        let chain = |(slots, chain): (Range<u16>, &Chain)| message::Chain {
            until: slots.end.into(),
            members: numbers(&chain.members),
            learner: chain.learner.map(|no| no.0.into()),
            born: chain.born,
            since: chain.since,
            lost: chain.lost,
            acted: (chain.phase != Phase::Acts).then(|| chain.acted()),
            former: numbers(&chain.former()),
            confirms: matches!(chain.phase, Phase::Confirms { former, .. } if former.is_empty()),
        };
        Self {
            epoch: mapping.epoch,
            copies: mapping.ring.copies() as u32,
            next: mapping.next.into(),
            members: members.map(|(no, member)| member_of(*no, member)).collect(),
            ring: mapping.ring.ranges().map(owners).collect(),
            chains: mapping.chains.ranges().map(chain).collect(),
            weights: weights
                .map(|(no, weight)| Weight {
                    no: no.0.into(),
                    weight: weight.weight.into(),
                    zone: weight.zone.clone(),
                })
                .collect(),
        }
    }
}

fn member_of(no: NodeNo, member: &rufous_mapping::Member) -> Member {
    let (after, behind, [renewed, whole]) = folder_of(member.folder);
    Member {
        no: no.0.into(),
        id: member.id.0.to_vec(),
        incarnation: member.incarnation,
        peer: member.peer.clone(),
        plain: member.plain.clone(),
        cluster: member.cluster.clone(),
        zone: member.zone.clone(),
        weight: member.weight.into(),
        drains: member.drains,
        workers: member.workers.into(),
        after,
        behind,
        renewed,
        whole,
    }
}

impl TryFrom<&Mapping> for rufous_mapping::Mapping {
    type Error = Invalid;

    fn try_from(wire: &Mapping) -> Result<Self, Invalid> {
        let mut members = BTreeMap::new();
        for member in &wire.members {
            if members
                .insert(number(member.no)?, member_from(member)?)
                .is_some()
            {
                return Err(Invalid("a member is named twice"));
            }
        }
        let mut weights = BTreeMap::new();
        for weight in &wire.weights {
            let known = ring::Weight {
                weight: small(weight.weight)?,
                zone: weight.zone.clone(),
            };
            if weights.insert(number(weight.no)?, known).is_some() {
                return Err(Invalid("a member is twice in the ring"));
            }
        }
        let mapping = Self {
            epoch: wire.epoch,
            members,
            next: small(wire.next)?,
            ring: ring_from(wire, weights)?,
            chains: chains_from(&wire.chains)?,
        };
        mapping.check()?;
        Ok(mapping)
    }
}

fn member_from(member: &Member) -> Result<rufous_mapping::Member, Invalid> {
    let id = <[u8; ID]>::try_from(&member.id[..]);
    Ok(rufous_mapping::Member {
        id: NodeId(id.map_err(|_| Invalid("a node's id of the wrong length"))?),
        incarnation: member.incarnation,
        peer: member.peer.clone(),
        plain: member.plain.clone(),
        cluster: member.cluster.clone(),
        zone: member.zone.clone(),
        weight: small(member.weight)?,
        drains: member.drains,
        // Older programs do not send it, and had no chains.
        workers: small(member.workers)?.max(1),
        folder: folder_from(member),
    })
}

fn ring_from(wire: &Mapping, weights: BTreeMap<NodeNo, ring::Weight>) -> Result<Ring, Invalid> {
    let mut start = 0;
    let mut ranges = Vec::with_capacity(wire.ring.len());
    for range in &wire.ring {
        let slots = start..small(range.until)?;
        start = slots.end;
        if range.nodes.len() > ring::MAX_COPIES {
            return Err(Invalid("too many owners in the ring"));
        }
        ranges.push((slots, nodes(&range.nodes)?));
    }
    let copies = usize::from(small(wire.copies)?);
    let ranges = ranges
        .iter()
        .map(|(slots, nodes)| (slots.clone(), &nodes[..]));
    Ring::of_parts(copies, weights, ranges)
}

fn chains_from(wire: &[message::Chain]) -> Result<Chains, Invalid> {
    let mut start = 0;
    let mut ranges = Vec::with_capacity(wire.len());
    for range in wire {
        let slots = start..small(range.until)?;
        start = slots.end;
        if range.members.len().max(range.former.len()) > chains::MAX_CHAIN {
            return Err(Invalid("too long a chain"));
        }
        let members = Members::of(&nodes(&range.members)?);
        let chain = Chain {
            members: members.ok_or(Invalid("too long a chain"))?,
            learner: range.learner.map(number).transpose()?,
            born: range.born,
            since: range.since,
            lost: range.lost,
            phase: phase_from(range)?,
        };
        ranges.push((slots, chain));
    }
    Chains::of_ranges(ranges)
}

fn phase_from(range: &message::Chain) -> Result<Phase, Invalid> {
    let former = Members::of(&nodes(&range.former)?).ok_or(Invalid("too long a chain"))?;
    Ok(match range.acted {
        None => Phase::Acts,
        Some(acted) if former.is_empty() && !range.confirms => Phase::Halted { acted },
        Some(acted) => Phase::Confirms { former, acted },
    })
}

/// The fields of a member's folder.
fn folder_of(folder: Folder) -> (Option<u64>, bool, [bool; 2]) {
    match folder {
        Folder::Unsaid => (None, false, [false; 2]),
        Folder::After(after) => (Some(after), false, [false; 2]),
        Folder::Behind {
            was,
            is_renewed,
            is_whole,
        } => {
            let after = (was == Was::Empty).then_some(0);
            (after, true, [is_renewed, is_whole])
        }
    }
}

fn folder_from(member: &Member) -> Folder {
    match member.after {
        after if member.behind => Folder::Behind {
            was: after.map_or(Was::Past, |_| Was::Empty),
            is_renewed: member.renewed,
            is_whole: member.whole,
        },
        Some(after) => Folder::After(after),
        None => Folder::Unsaid,
    }
}

fn numbers(nodes: &[NodeNo]) -> Vec<u32> {
    nodes.iter().map(|no| no.0.into()).collect()
}

fn nodes(numbers: &[u32]) -> Result<Vec<NodeNo>, Invalid> {
    numbers.iter().copied().map(number).collect()
}

fn number(no: u32) -> Result<NodeNo, Invalid> {
    small(no).map(NodeNo)
}

fn small(number: u32) -> Result<u16, Invalid> {
    u16::try_from(number).map_err(|_| Invalid("a number beyond 65535"))
}
