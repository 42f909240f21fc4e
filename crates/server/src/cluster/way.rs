//! What follows from the location of a request's keys ([`rufous_cluster::way`]): the request runs,
//! waits, or is refused.

use super::forward::is_wide;
use super::redirect::Door;
use super::split::can_split;
use super::words;
use crate::front::Front;
use crate::front::connection::Suspended;
use crate::front::lookahead::{ParsedKey, What};
use crate::front::turn::Request;
use rufous_base::slot::slot_of;
use rufous_base::{Args, Now};
pub(crate) use rufous_cluster::way::Way;
use rufous_cluster::way::{CROSSNODE, has_one_head, name_of};
use rufous_command::{Failure, Flags, Keys, Spec};

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

impl Front {
    /// The location of the keys of a request. Clients that are redirected go there themselves: for them
    /// it is here, or nowhere.
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
            return self.way_of_redirected(request.keys, args);
        }
        match request.what {
            // A watch is recorded where its key is.
            What::Command(id) if self.table.spec(id).flags.has(Flags::AT_ONCE) => Way::Here,
            _ if !request.keys.is_empty() => self.way_to_keys(request.keys, args),
            What::Command(id) if is_wide(self.table.spec(id)) => self.way_to_all(),
            _ => Way::Here,
        }
    }

    fn way_of_redirected(&self, keys: &[ParsedKey], args: &Args<'_>) -> Way {
        let placement = self.kernel.placement();
        let keys = keys.iter().map(|key| args.get(key.arg as usize));
        let slots = keys.filter(|key| placement.lattice(key).is_none());
        let links = self.links();
        let why = links.and_then(|links| links.routing().names_none(slots.map(slot_of)));
        why.map_or(Way::Here, Way::None)
    }

    pub(crate) fn way_to_keys(&self, keys: &[ParsedKey], args: &Args<'_>) -> Way {
        let placement = self.kernel.placement();
        let slot = |key: &ParsedKey| {
            let key = args.get(key.arg as usize);
            placement.lattice(key).is_none().then(|| slot_of(key))
        };
        match self.links() {
            Some(links) => links.routing().to_slots(keys.iter().map(slot)),
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
        let news = self.forwarding.news();
        let crowded = match way {
            Way::There(no) => Some(*no).filter(|no| self.forwarding.is_crowded(*no)),
            Way::Apart(heads) => {
                let mut heads = heads.iter().flatten();
                heads.find(|no| self.forwarding.is_crowded(**no)).copied()
            }
            Way::All(nodes) => nodes
                .iter()
                .find(|no| self.forwarding.is_crowded(**no))
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
                let until_us = connection.wait_for_way(now)?;
                self.forwarding.wake_by(until_us);
                Some(Suspended::NoWay { news, until_us })
            }
            _ => {
                connection.has_way();
                crowded.map(Suspended::Crowded)
            }
        }
    }

    /// Why a request whose keys are elsewhere cannot be forwarded.
    pub(crate) fn refused_on_way(
        &self,
        way: &Way,
        within: Within,
        spec: &Spec,
        args: &Args<'_>,
    ) -> Option<Failure> {
        let links = self.links()?;
        if let Keys::Open { is_open, .. } = spec.keys
            && is_open(args)
            && !links.routing().mapping.is_none_or(has_one_head)
        {
            return Some(format!("CROSSNODE Keys that match the patterns of '{}' may be on other nodes: read them with separate commands", spec.name).into());
        }
        let in_transaction = within != Within::Nothing;
        let no = match way {
            Way::Here => return None,
            // They will be executed as a transaction over slots, or copied by one.
            Way::There(_) | Way::Apart(_) if in_transaction => return None,
            Way::None(why) => return Some(why.text(links.routing().mapping).into()),
            Way::All(_) if in_transaction => {
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
        if spec.flags.has(Flags::BLOCKING) && !self.forwarding.may_wait_at(no) {
            return Some(format!("CROSSNODE '{}' blocks at the node that has its keys, node {}, whose program is an earlier one: connect there, or upgrade it", spec.name, name()).into());
        }
        words::too_large(args, name)
    }

    /// Whether a command with keys of several nodes is executed as a transaction over slots.
    fn is_transaction(&self, spec: &Spec, args: &Args<'_>) -> bool {
        let (placement, mut found) = (self.kernel.placement(), Vec::new());
        spec.keys.find(args, 0, &mut found);
        let mut keys = found.iter().map(|(_, arg)| args.get(*arg as usize));
        spec.goes_over_slots() && keys.all(|key| placement.lattice(key).is_none())
    }

    /// Why the commands queued for `EXEC` can no longer run here.
    pub(crate) fn refused_queue_on_way(
        &self,
        slots: impl Iterator<Item = Option<u16>>,
    ) -> Option<Failure> {
        let links = self.links()?;
        match links.routing().to_slots(slots) {
            Way::Here => None,
            Way::None(why) => Some(why.text(links.routing().mapping).into()),
            Way::There(_) | Way::Apart(_) | Way::All(_) => Some(NOT_IN_TRANSACTIONS.into()),
        }
    }
}

const NOT_IN_TRANSACTIONS: &str = "CROSSNODE A transaction runs at the node that has all of its keys: give them one hash tag, as in {tag}key, and connect there";
