//! What follows from the location of a request's keys ([`rufous_cluster::way`]): the request runs,
//! waits, or is refused.

use super::door::Door;
use super::forward::is_wide;
use super::links::Links;
use super::split::can_split;
use super::words;
use crate::command::CommandTable;
use crate::front::connection::{Connection, Suspended};
use crate::front::lookahead::{ParsedKey, What};
use crate::front::request::Request;
use rufous_base::slot::slot_of;
use rufous_base::{Args, Now};
use rufous_cluster::forward::{Forwarding, Goal};
pub(crate) use rufous_cluster::way::Way;
use rufous_cluster::way::{CROSSNODE, has_one_head, name_of};
use rufous_command::{DataCommands, Failure, Flags, Joined, Keys, Spec};
use rufous_kernel::{Header, Worker};
use rufous_mapping::NodeNo;

/// What a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    Nothing,
    /// Commands that wait for `EXEC`.
    Queue,
    /// A transaction that `BEGIN` has begun.
    Begun,
}

impl Within {
    pub(crate) fn of(queues: bool, has_begun: bool) -> Self {
        match (queues, has_begun) {
            (true, _) => Self::Queue,
            (false, true) => Self::Begun,
            (false, false) => Self::Nothing,
        }
    }
}

/// What a worker knows of the places of keys: of this node's by the kernel, of other nodes' by the
/// routing. Only looks, and says why a request cannot run on its keys.
#[derive(Clone, Copy)]
pub(crate) struct Locator<'a> {
    pub(crate) kernel: &'a Worker<DataCommands>,
    pub(crate) table: &'static CommandTable,
    /// If the node is in a cluster.
    pub(crate) links: Option<&'a Links>,
}

/// A request with the location of its keys.
pub(crate) struct Routed<'r, 'a> {
    pub(crate) request: &'r Request<'a>,
    pub(crate) spec: &'r Spec,
    pub(crate) args: &'r Args<'a>,
    pub(crate) way: &'r Way,
    pub(crate) within: Within,
}

impl<'a> Locator<'a> {
    #[inline]
    pub(crate) fn new(
        kernel: &'a Worker<DataCommands>,
        table: &'static CommandTable,
        links: Option<&'a Links>,
    ) -> Self {
        Self {
            kernel,
            table,
            links,
        }
    }
}

impl<'r, 'a> Routed<'r, 'a> {
    #[inline]
    pub(crate) fn new(
        request: &'r Request<'a>,
        spec: &'r Spec,
        args: &'r Args<'a>,
        way: &'r Way,
        within: Within,
    ) -> Self {
        Self {
            request,
            spec,
            args,
            way,
            within,
        }
    }
}

/// Ways.
impl Locator<'_> {
    /// The location of the keys of a request. Clients that are redirected go there themselves: for them
    /// it is here, or nowhere.
    #[cold]
    pub(crate) fn way_of(&self, door: Option<Door>, request: &Request<'_>, args: &Args<'_>) -> Way {
        if door != Some(Door::Plain) {
            return self.way_of_redirected(request.keys, args);
        }
        match request.what {
            // A watch is recorded where its key is.
            What::Command(id) if self.table.spec(id).flags.has(Flags::AT_ONCE) => Way::Here,
            _ if !request.keys.is_empty() => self.way_to_keys(request.keys, args),
            What::Command(id) if is_wide(self.table.spec(id)) => {
                let way = self.way_to_all();
                let walks = self.table.spec(id).flags.joined() == Joined::Walk;
                if walks && way == Way::Here && self.links.is_some() {
                    // Its cursor has the node, so that a client may continue at another one.
                    return Way::All(Vec::new());
                }
                way
            }
            _ => Way::Here,
        }
    }

    fn way_of_redirected(&self, keys: &[ParsedKey], args: &Args<'_>) -> Way {
        let placement = self.kernel.placement();
        let keys = keys.iter().map(|key| args.get(key.arg as usize));
        let slots = keys.filter(|key| placement.lattice(key).is_none());
        let links = self.links;
        let why = links.and_then(|links| links.routing().names_none(slots.map(slot_of)));
        why.map_or(Way::Here, Way::None)
    }

    pub(crate) fn way_to_keys(&self, keys: &[ParsedKey], args: &Args<'_>) -> Way {
        let Some(links) = self.links else {
            return Way::Here;
        };
        let keys = keys.iter().map(|key| args.get(key.arg as usize));
        links.routing().to_slots(keys.map(|key| self.slot(key)))
    }

    /// The route to all other nodes that have slots.
    fn way_to_all(&self) -> Way {
        self.links
            .map_or(Way::Here, |links| links.routing().to_all())
    }

    /// The slot of a strict key. Every node has the lattice keys.
    pub(crate) fn slot(&self, key: &[u8]) -> Option<u16> {
        let is_strict = self.kernel.placement().lattice(key).is_none();
        is_strict.then(|| slot_of(key))
    }

    /// The slots of a request.
    pub(super) fn goal_of(&self, header: &Header, args: &Args<'_>) -> Goal {
        let mut found = Vec::new();
        let spec = self.table.spec(header.command);
        spec.keys.find(args, header.db, &mut found);
        let keys = found.iter().map(|(_, arg)| args.get(*arg as usize));
        Goal::Slots(keys.map(|key| self.slot(key)).collect())
    }
}

/// Refusals.
impl Locator<'_> {
    /// Why a request whose keys are elsewhere cannot be forwarded.
    pub(super) fn refused_on_way(
        &self,
        routed: &Routed<'_, '_>,
        forwarding: &Forwarding,
    ) -> Option<Failure> {
        let links = self.links?;
        let &Routed {
            spec, args, way, ..
        } = routed;
        if let Keys::Open { is_open, .. } = spec.keys
            && is_open(args)
            && !links.routing().mapping.is_none_or(has_one_head)
        {
            return Some(format!("CROSSNODE Keys that match the patterns of '{}' may be on other nodes: read them with separate commands", spec.name).into());
        }
        let in_transaction = routed.within != Within::Nothing;
        let no = match way {
            Way::Here => return None,
            // They will be executed as a transaction over slots, or copied by one.
            Way::There(_) | Way::Apart(_) if in_transaction => return None,
            Way::None(why) => return Some(why.text(links.routing().mapping).into()),
            Way::All(others) if in_transaction && !others.is_empty() => {
                return Some(format!("CROSSNODE '{}' is about all nodes, and cannot be part of a transaction: send it alone", spec.name).into());
            }
            Way::All(_) => return words::too_large_for_all(args),
            Way::Apart(_) if self.is_transaction(spec, args) => return None,
            Way::Apart(heads) if can_split(spec) => {
                return words::part_too_large(args, heads, |no| {
                    name_of(links.routing().mapping, no)
                });
            }
            Way::Apart(_) => return Some(CROSSNODE.into()),
            Way::There(no) => *no,
        };
        let name = || name_of(links.routing().mapping, no);
        if spec.flags.has(Flags::BLOCKING) && !forwarding.may_wait_at(no) {
            return Some(format!("CROSSNODE '{}' blocks at the node that has its keys, node {}, whose program is an earlier one: connect there, or upgrade it", spec.name, name()).into());
        }
        words::too_large(args, name)
    }

    /// Whether a command with keys of several nodes is executed as a transaction over slots.
    fn is_transaction(&self, spec: &Spec, args: &Args<'_>) -> bool {
        let mut found = Vec::new();
        spec.keys.find(args, 0, &mut found);
        let mut keys = found.iter().map(|(_, arg)| args.get(*arg as usize));
        spec.goes_over_slots() && keys.all(|key| self.slot(key).is_some())
    }

    /// Why the commands queued for `EXEC` can no longer run here.
    pub(super) fn refused_queue_on_way(
        &self,
        slots: impl Iterator<Item = Option<u16>>,
    ) -> Option<Failure> {
        let links = self.links?;
        match links.routing().to_slots(slots) {
            Way::Here => None,
            Way::None(why) => Some(why.text(links.routing().mapping).into()),
            Way::There(_) | Way::Apart(_) | Way::All(_) => Some(NOT_IN_TRANSACTIONS.into()),
        }
    }
}

/// Why a request of a connection waits for the way to its keys, if it has to.
pub(crate) fn why_waits(
    now: Now,
    way: &Way,
    connection: &mut Connection,
    forwarding: &mut Forwarding,
) -> Option<Suspended> {
    if let Way::None(_) = way {
        let until_us = connection.wait_for_way(now)?;
        let news = forwarding.news();
        forwarding.wake_by(until_us);
        return Some(Suspended::NoWay { news, until_us });
    }
    connection.has_way();
    crowded(way, forwarding).map(Suspended::Crowded)
}

/// A node on the way to the keys at which too many requests are pending.
fn crowded(way: &Way, forwarding: &Forwarding) -> Option<NodeNo> {
    let is_crowded = |no: &NodeNo| forwarding.is_crowded(*no);
    match way {
        Way::There(no) => Some(*no).filter(is_crowded),
        Way::Apart(heads) => heads.iter().flatten().copied().find(is_crowded),
        Way::All(nodes) => nodes.iter().copied().find(is_crowded),
        Way::Here | Way::None(_) => None,
    }
}

const NOT_IN_TRANSACTIONS: &str = "CROSSNODE A transaction runs at the node that has all of its keys: give them one hash tag, as in {tag}key, and connect there";
