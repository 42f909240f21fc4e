//! The endpoint for clients that know the cluster: requests for keys of another node get a `MOVED`
//! reply with its address.
//!
//! There is no `ASK`: a slot passes from one node to another in one epoch, when the new node has
//! all of it. Before that epoch the old node serves it, afterwards the new one, and `MOVED` says
//! so.
//!
//! Reads are served by every node that has a copy, also without `READONLY`: they see all
//! acknowledged writes, and nothing else. Clients that read from replicas know a node as either a
//! master or a replica, and send `READONLY` to the latter; here a node is the head of some slots
//! and has copies of others.

use super::door::Door;
use super::links::Links;
use super::way::{Locator, Routed, Within};
use rufous_cluster::forward::Forwarding;
use rufous_cluster::way::Redirect;
use rufous_command::{Failure, Flags};
use rufous_kernel::Batch;
use rufous_kernel::worker::SEVERAL;

impl Locator<'_> {
    /// Why a request cannot be executed here, if it cannot: its keys are another node's. `door`: of its
    /// connection.
    #[cold]
    pub(crate) fn refused_elsewhere(
        &self,
        door: Option<Door>,
        routed: &Routed<'_, '_>,
        forwarding: &mut Forwarding,
    ) -> Option<Failure> {
        let refused = self.refused_on_way(routed, forwarding);
        if refused.is_some() {
            forwarding.on_refused();
            return refused;
        }
        if door? == Door::Plain {
            return None;
        }
        let reads = routed.within == Within::Nothing && routed.spec.flags.has(Flags::READONLY);
        let (keys, args) = (routed.request.keys.iter(), routed.args);
        let slots = keys.filter_map(|key| self.slot(args.get(key.arg as usize)));
        of_slots(self.links?, slots.collect(), reads)
    }

    /// The same for all queued commands: slots may have moved since, and all keys have to be in one
    /// slot.
    pub(crate) fn refused_queue(&self, door: Door, queued: &mut Batch) -> Option<Failure> {
        let links = self.links?;
        let mut all = Vec::new();
        for at in 0..queued.requests.len() {
            let (header, args, _) = queued.parts(at);
            let spec = self.table.spec(header.command);
            let mut found = Vec::new();
            spec.keys.find(&args, header.db, &mut found);
            let keys = found.iter().map(|(_, arg)| args.get(*arg as usize));
            all.extend(keys.filter_map(|key| self.slot(key)));
        }
        let refused = match door {
            Door::Plain => self.refused_queue_on_way(all.into_iter().map(Some)),
            Door::Redirecting => of_slots(links, all, false),
        };
        refused.or_else(|| self.refused_spread(queued))
    }

    /// Why these commands cannot be executed together, if they cannot: they write keys of several
    /// slots with copies.
    pub(crate) fn refused_spread(&self, queued: &mut Batch) -> Option<Failure> {
        self.links?;
        let mut written: Vec<Box<[u8]>> = Vec::new();
        for at in 0..queued.requests.len() {
            let (header, args, _) = queued.parts(at);
            let spec = self.table.spec(header.command);
            if spec.flags.has(Flags::WRITE) {
                let mut found = Vec::new();
                spec.keys.find(&args, header.db, &mut found);
                written.extend(found.iter().map(|(_, arg)| args.get(*arg as usize).into()));
            }
        }
        let keys = written.iter().map(|key| &**key);
        self.kernel.is_spread(keys).then(|| SEVERAL.into())
    }
}

/// The `MOVED` reply for these slots, unless this node serves them. `reads`: any node with a copy
/// does.
fn of_slots(links: &Links, slots: Vec<u16>, reads: bool) -> Option<Failure> {
    let routing = links.routing();
    let why = match routing.redirects(slots, reads)? {
        Redirect::CrossSlot => "CROSSSLOT Keys in request don't hash to the same slot".into(),
        Redirect::Down => "CLUSTERDOWN Hash slot not served".into(),
        Redirect::Moved { slot, to } => {
            let (host, port) = routing.mapping?.members.get(&to)?.for_clients();
            format!("MOVED {slot} {host}:{port}").into()
        }
    };
    Some(why)
}
