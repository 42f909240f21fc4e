//! Which slots this node serves, and the replies to requests for others.

use super::ChainHost;
use crate::batch::{Door, Header, Status};
use crate::lock::KeyName;
use crate::placement::Placement;
use crate::program::Program;
use crate::worker::linear::Linear;
use rufous_base::slot::slot_of;
use rufous_base::{Now, Output};
use rufous_chain::{Refused, Replica};
use std::borrow::Cow;

pub(in crate::worker) const UNSERVED: &str = "CLUSTERDOWN Hash slot not served: its nodes do not reach one another, \
                                              or have yet to say what they have; send it again";
/// The reply where no mapping is in force that has this start of the node.
pub(in crate::worker) const UNMAPPED: &str = "CLUSTERDOWN The node has started, and the other nodes have not taken it back \
                                              yet: see CLUSTER STATUS; send it again";
/// The reply where a key is part of a transaction over several slots that does not end.
const TAKEN: &str = "CLUSTERDOWN A key is part of a transaction over several slots, of which another one is not served now: \
                     see CLUSTER STATUS; send it again";
const MOVED: &str = "TRYAGAIN The keys have just moved to another node; send it again";

/// The reply to commands that write keys of several slots, of which some have copies at other nodes.
/// Each slot's chain carries its part of the writes without knowledge of the other chains: when the
/// head fails, one part could survive and the other be lost. This is checked when keys are held,
/// directly before the writes: until then a slot may get its first copy.
pub const SEVERAL: &str = "CROSSSLOT The command may write keys of several slots, and slots have copies at other nodes: \
     what one of them has could be without the other. Give the keys one hash tag, as in {tag}key";

/// The reply to those of them that are executed as transactions over slots: they were not, as their slots had no copies.
const TOO_LATE: &str = "TRYAGAIN Slots of the command's keys have got copies since it arrived; nothing was done: send it again";

/// The reply to a command whose keys may not be written together.
pub(in crate::worker) fn too_spread<P: Program>(command: u16) -> &'static str {
    if P::goes_over_slots(command) {
        return TOO_LATE;
    }
    SEVERAL
}

/// The reply for [`Status::NotHere`].
pub(in crate::worker) const NOT_HERE: &str = "NOTHERE";

/// Which nodes may execute a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Needs {
    /// The head of the slot's chain, and other members that acknowledge writes.
    Write,
    /// The head.
    Head,
    /// Any member of it.
    Member,
}

impl Needs {
    /// Any member may execute reads of clients at the redirecting door.
    pub(in crate::worker) fn of<P: Program>(header: &Header) -> Self {
        match header.door {
            _ if P::is_write(header.command) => Needs::Write,
            Door::Redirected => Needs::Member,
            Door::Plain | Door::Forwarded => Needs::Head,
        }
    }
}

/// A slot of a request's keys that this node does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub(in crate::worker) slot: u16,
    pub(in crate::worker) why: Refused,
}

impl Gap {
    /// This node may serve the slot of a key soon.
    pub(in crate::worker) fn not_yet(key: &[u8]) -> Self {
        let (slot, why) = (slot_of(key), Refused::NotYet);
        Self { slot, why }
    }

    /// One that decides about a request with both: waiting does not help where another node has a
    /// slot.
    pub(in crate::worker) fn worse(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let is_elsewhere = |gap: &Self| gap.why != Refused::NotYet;
        one.filter(is_elsewhere).or(other).or(one)
    }
}

/// What the sender of a refused request receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Kept {
    /// The request with its reply, so that it can be forwarded.
    Request,
    Reply,
}

/// The chains of a worker at a time, with the placement of keys.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct SlotView<'a> {
    pub(in crate::worker) now: Now,
    pub(in crate::worker) chains: &'a ChainHost,
    pub(in crate::worker) placement: &'a Placement,
    pub(in crate::worker) linear: &'a Linear,
    /// Lattice keys wait for the state of other nodes.
    pub(in crate::worker) awaits_nodes: bool,
}

/// The slots of a worker now; `None` where the node is not one of several.
macro_rules! slot_view {
    ($worker:expr, $now:expr) => {
        $worker
            .chains
            .as_deref()
            .map(|chains| $crate::worker::chains::SlotView {
                now: $now,
                chains,
                placement: &$worker.placement,
                linear: &$worker.linear,
                awaits_nodes: $worker.lattice.awaits_nodes(),
            })
    };
}

impl ChainHost {
    /// As [`ChainHost::is_head`], for slots of all workers of the node.
    pub(in crate::worker) fn leads(&self, slot: u16) -> bool {
        let me = self.replica.as_ref().map(Replica::me);
        let mapping = self.mapping();
        me.is_some() && mapping.and_then(|mapping| mapping.chains.of(slot).head()) == me
    }

    /// Whether no chain names this node.
    pub(in crate::worker) fn has_left(&self) -> bool {
        let me = self.replica.as_ref().map(Replica::me);
        let mapping = self.mapping().zip(me);
        mapping.is_some_and(|(mapping, me)| !mapping.chains.name(me))
    }

    /// Whether this node may execute such a request on a slot now.
    pub(super) fn serves(&self, now: Now, slot: u16, needs: Needs) -> Result<(), Refused> {
        let Some(replica) = &self.replica else {
            return Err(Refused::NotYet);
        };
        match needs {
            _ if self.takes_nothing(replica, slot, needs) => {
                let serves = replica.serves(slot, now.mono_us);
                serves.and(Err(Refused::NotYet))
            }
            Needs::Write | Needs::Head => replica.serves(slot, now.mono_us),
            Needs::Member => replica.reads(slot, now.mono_us),
        }
    }

    /// For a slot that this node serves now: the epoch since which its chain is unchanged.
    pub(in crate::worker) fn answers_since(&self, now: Now, slot: u16) -> Option<u64> {
        self.serves(now, slot, Needs::Head).ok()?;
        Some(self.mapping()?.chains.of(slot).since)
    }
}

impl SlotView<'_> {
    pub(in crate::worker) fn is_lattice(&self, key: &[u8]) -> bool {
        self.placement.lattice(key).is_some()
    }

    /// Why this node may not execute a request on a key now, if it may not.
    pub(in crate::worker) fn unserved(&self, key: &[u8], needs: Needs) -> Option<Refused> {
        if self.is_lattice(key) {
            return self.awaits_nodes.then_some(Refused::NotYet);
        }
        let unserved = self.chains.serves(self.now, slot_of(key), needs).err();
        unserved.or_else(|| self.linear.takes(key).then_some(Refused::NotYet))
    }

    /// The first slot of these keys that this node does not serve.
    pub(in crate::worker) fn first_unserved<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        needs: Needs,
    ) -> Option<Gap> {
        let mut keys = keys.into_iter();
        keys.find_map(|key| {
            let why = self.unserved(key, needs)?;
            let slot = slot_of(key);
            Some(Gap { slot, why })
        })
    }

    /// Whether a request on these keys, which waits for this slot, may be executed now.
    pub(in crate::worker) fn serves(
        &self,
        slot: u16,
        keys: &[KeyName],
        needs: Needs,
    ) -> Result<(), Refused> {
        if self.awaits_nodes_for(keys) {
            return Err(Refused::NotYet);
        }
        if keys.iter().all(|(_, key)| self.is_lattice(key)) {
            // No chain has any data of these.
            return Ok(());
        }
        self.chains.serves(self.now, slot, needs)?;
        if self.is_taken(keys) {
            return Err(Refused::NotYet);
        }
        Ok(())
    }

    /// Whether a transaction has one of these keys.
    fn is_taken(&self, keys: &[KeyName]) -> bool {
        let mut strict = keys.iter().filter(|(_, key)| !self.is_lattice(key));
        strict.any(|(_, key)| self.linear.takes(key))
    }

    /// Why a request on these keys is refused after it has waited for a slot.
    pub(in crate::worker) fn why_unserved(&self, slot: u16, keys: &[KeyName]) -> Cow<'static, str> {
        if self.awaits_nodes_for(keys) {
            return Cow::Borrowed(UNSERVED);
        }
        if self.is_taken(keys) && self.chains.serves(self.now, slot, Needs::Head).is_ok() {
            return Cow::Borrowed(TAKEN);
        }
        let why = self.chains.why_taken_not(slot);
        let why = why.or_else(|| self.chains.why_waits(slot));
        why.map_or(Cow::Borrowed(UNSERVED), Cow::Owned)
    }

    /// Whether some of these keys wait for the state of other nodes.
    fn awaits_nodes_for(&self, keys: &[KeyName]) -> bool {
        self.awaits_nodes && keys.iter().any(|(_, key)| self.is_lattice(key))
    }

    /// Whether another node can execute a request that waits for a slot: a read, at the head. Lattice
    /// keys are not forwarded to other nodes.
    pub(in crate::worker) fn has_other(&self, slot: u16, keys: &[KeyName], needs: Needs) -> bool {
        needs == Needs::Member && !self.chains.is_head(slot) && !self.awaits_nodes_for(keys)
    }

    /// Whether a command may not be executed on these keys together.
    pub(in crate::worker) fn is_too_spread<'k, P: Program>(
        &self,
        command: u16,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> bool {
        P::is_write(command)
            && !P::is_of_each(command)
            && self.chains.is_spread(keys, self.placement)
    }

    /// Refuses a request whose slot another node has.
    pub(in crate::worker) fn refuse_elsewhere<P: Program>(
        &self,
        slot: u16,
        header: &Header,
        kept: Kept,
        out: &mut Output,
    ) -> Status {
        let member = self.chains.mapping().and_then(|mapping| {
            let head = mapping.chains.of(slot).head()?;
            mapping.members.get(&head)
        });
        let redirected;
        let (why, status) = match (member, header.door) {
            (Some(member), Door::Redirected) => {
                let (host, port) = member.for_clients();
                redirected = format!("MOVED {slot} {host}:{port}");
                (&*redirected, Status::Ready)
            }
            (_, Door::Forwarded) => (NOT_HERE, Status::NotHere),
            (_, Door::Plain) if kept == Kept::Request => (NOT_HERE, Status::NotHere),
            _ => (MOVED, Status::Ready),
        };
        P::refuse_slot(why, header.resp3, out);
        status
    }
}
