//! Where the keys of a request are: here, at one other node, at several.
//!
//! The head of a slot's chain answers for it. Keys of lattice keyspaces are
//! served by whatever node they are asked of.

use super::links::Links;
use super::redirect::Door;
use super::split::can_split;
use super::wide::is_wide;
use super::words;
use crate::front::Front;
use crate::front::connection::{ParsedKey, Suspended, What};
use crate::front::turn::Request;
use rufous_base::slot::slot_of;
use rufous_base::{Args, Now};
use rufous_command::{Failure, Flags, Keys, Spec};
use rufous_mapping::{Mapping, NodeNo};

/// How long a request waits until there is a way to its keys, in microseconds.
const PATIENCE_US: u64 = 2_000_000;

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Here,
    There(NodeNo),
    /// Who has each of the keys; nobody is this node.
    Apart(Vec<Option<NodeNo>>),
    /// Here, and at all of these.
    All(Vec<NodeNo>),
    /// There is none at present.
    None(NoWay),
}

/// Why there is no way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoWay {
    /// This node has not heard yet who has what.
    Unmapped,
    /// Nobody has the slot.
    Nobody(u16),
    Unreachable(NodeNo, u16),
    /// Likewise, and no slot is asked for.
    Away(NodeNo),
}

impl NoWay {
    pub(crate) fn failure(self, links: &Links) -> Failure {
        match self {
            Self::Unmapped => "CLUSTERDOWN This node does not know yet which node has which keys: is its coordinator there? See INFO cluster, and try again".into(),
            Self::Nobody(slot) => format!("CLUSTERDOWN No node has slot {slot}, which the key belongs to: try again, and see INFO cluster").into(),
            Self::Away(no) => format!("CLUSTERDOWN Node {} cannot be reached from here: try again, and see INFO cluster", name_of(links, no)).into(),
            Self::Unreachable(no, slot) => format!("CLUSTERDOWN Node {}, which has slot {slot}, cannot be reached from here: try again, and see INFO cluster", name_of(links, no)).into(),
        }
    }
}

/// A node as clients are told of it: its number, and where they reach it.
pub(crate) fn name_of(links: &Links, no: NodeNo) -> String {
    let mapping = links.mapping();
    let member = mapping.and_then(|mapping| mapping.members.get(&no));
    match member.map_or("", |member| &member.plain) {
        "" => no.to_string(),
        plain => format!("{no} at {plain}"),
    }
}

/// Who has a slot.
fn head_of(mapping: &Mapping, slot: u16) -> Result<NodeNo, NoWay> {
    mapping.chains.of(slot).head().ok_or(NoWay::Nobody(slot))
}

/// Whether one node has all slots.
pub(crate) fn has_one_head(mapping: &Mapping) -> bool {
    let mut heads = mapping.chains.ranges().map(|(_, chain)| chain.head());
    let first = heads.next();
    heads.all(|head| Some(head) == first)
}

/// The way to keys of these slots; `None`: the key is wherever it is asked for.
fn way_to(links: &Links, slots: impl Iterator<Item = Option<u16>>) -> Way {
    let Some(mapping) = links.mapping() else {
        let mut slots = slots;
        return match slots.all(|slot| slot.is_none()) {
            true => Way::Here,
            false => Way::None(NoWay::Unmapped),
        };
    };
    let own = links.own();
    let mut found = Vec::new();
    for slot in slots {
        let head = match slot {
            None => None,
            Some(slot) => match head_of(mapping, slot) {
                Err(why) => return Way::None(why),
                Ok(head) if Some(head) == own => None,
                Ok(head) if !links.reaches(head) => {
                    return Way::None(NoWay::Unreachable(head, slot));
                }
                Ok(head) => Some(head),
            },
        };
        found.push(head);
    }
    match found.first().copied() {
        Some(first) if found.iter().any(|head| *head != first) => Way::Apart(found),
        Some(Some(no)) => Way::There(no),
        Some(None) | None => Way::Here,
    }
}

impl Front {
    /// Where the keys of a client's request are, for who does not go there by itself.
    #[inline]
    pub(crate) fn way_of(&mut self, request: &Request<'_>, args: &Args<'_>) -> Way {
        match self.links {
            Some(_) => self.look_for_way(request, args),
            None => Way::Here,
        }
    }

    #[cold]
    fn look_for_way(&mut self, request: &Request<'_>, args: &Args<'_>) -> Way {
        let door = self.connection(request.conn).map(|c| c.door());
        if door != Some(Door::Plain) {
            return Way::Here;
        }
        match request.what {
            _ if !request.keys.is_empty() => self.way_to_keys(request.keys, args),
            What::Command(id) if is_wide(self.table.spec(id)) => self.way_to_all(),
            _ => Way::Here,
        }
    }

    pub(crate) fn way_to_keys(&self, keys: &[ParsedKey], args: &Args<'_>) -> Way {
        let placement = self.kernel.placement();
        let slot = |key: &ParsedKey| {
            let key = args.get(key.arg as usize);
            placement.lattice(key).is_none().then(|| slot_of(key))
        };
        match self.links() {
            Some(links) => way_to(links, keys.iter().map(slot)),
            None => Way::Here,
        }
    }

    /// Why a request has to wait before it runs, if it has to.
    pub(crate) fn holds_back(
        &mut self,
        now: Now,
        request: &Request<'_>,
        spec: &Spec,
        way: &Way,
    ) -> Option<Suspended> {
        let pause = self.pause;
        let news = self.forward.news;
        let crowded = match way {
            Way::There(no) => Some(*no).filter(|no| self.forward.is_crowded(*no)),
            Way::Apart(heads) => {
                let mut heads = heads.iter().flatten();
                heads.find(|no| self.forward.is_crowded(**no)).copied()
            }
            Way::All(nodes) => nodes
                .iter()
                .find(|no| self.forward.is_crowded(**no))
                .copied(),
            Way::Here | Way::None(_) => None,
        };
        let connection = self.connection(request.conn)?;
        if pause.is_active()
            && pause.holds_back(spec, connection.flags_with_queued(spec))
            && !connection.info.is_internal()
        {
            return Some(Suspended::Paused);
        }
        match way {
            Way::None(_) => {
                let known = connection.way_until_us;
                let until_us = match known {
                    // What is behind one that waited in vain need not wait as long.
                    Some(until_us) if now.mono_us < until_us + PATIENCE_US => until_us,
                    _ => now.mono_us + PATIENCE_US,
                };
                connection.way_until_us = Some(until_us);
                if now.mono_us >= until_us {
                    return None;
                }
                self.forward.wake_by(until_us);
                Some(Suspended::NoWay { news, until_us })
            }
            _ => {
                connection.way_until_us = None;
                crowded.map(Suspended::Crowded)
            }
        }
    }

    /// Why a request whose keys are not here cannot be passed on.
    pub(crate) fn refused_on_way(
        &self,
        way: &Way,
        in_transaction: bool,
        spec: &Spec,
        args: &Args<'_>,
    ) -> Option<Failure> {
        let links = self.links()?;
        if let Keys::Open { is_open, .. } = spec.keys
            && is_open(args)
            && !links.mapping().is_none_or(|mapping| has_one_head(mapping))
        {
            return Some(format!("CROSSNODE Keys that the patterns of '{}' name may be on other nodes: read them by commands of their own", spec.name).into());
        }
        let no = match way {
            Way::Here => return None,
            Way::None(why) => return Some(why.failure(links)),
            Way::Apart(_) | Way::All(_) if in_transaction => {
                return Some(NOT_IN_TRANSACTIONS.into());
            }
            Way::All(_) => return words::too_large_for_all(args),
            Way::Apart(heads) if can_split(spec) => {
                return words::part_too_large(args, heads, |no| name_of(links, no));
            }
            Way::Apart(_) => return Some(CROSSNODE.into()),
            Way::There(no) => *no,
        };
        let name = || name_of(links, no);
        if in_transaction || spec.flags.has(Flags::AT_ONCE) {
            return Some(format!("CROSSNODE A transaction runs at the node that has all of its keys, and this key's is node {}: connect there", name()).into());
        }
        if spec.flags.has(Flags::BLOCKING) {
            return Some(format!("CROSSNODE '{}' waits at the node that has its keys, which is node {}: connect there", spec.name, name()).into());
        }
        words::too_large(args, name)
    }

    /// Why what is queued for `EXEC` cannot run here any more.
    pub(crate) fn refused_queue_on_way(
        &self,
        slots: impl Iterator<Item = Option<u16>>,
    ) -> Option<Failure> {
        let links = self.links()?;
        match way_to(links, slots) {
            Way::Here => None,
            Way::None(why) => Some(why.failure(links)),
            Way::There(_) | Way::Apart(_) | Way::All(_) => Some(NOT_IN_TRANSACTIONS.into()),
        }
    }
}

pub(crate) const CROSSNODE: &str = "CROSSNODE Keys of this command are on several nodes: give them one hash tag, as in {tag}key, or use a command for each";
const NOT_IN_TRANSACTIONS: &str = "CROSSNODE A transaction runs at the node that has all of its keys: give them one hash tag, as in {tag}key, and connect there";
