//! What becomes of a command whose keys are all held: it is refused, begins again with other holds,
//! waits for workers to be equal, or is executed.

use super::super::chains::{Kept, NOT_HERE, Needs, SEVERAL, UNSERVED};
use super::super::lattice::{Draining, Findings};
use super::commits::Ran;
use super::{Call, Message, Release, Site, Spanning};
use crate::batch::{Batch, Door, ReplyRange, Status};
use crate::lock::{KeyName, Ticket};
use crate::multi::{Gathered, Multi, Open};
use crate::placement::Placement;
use crate::program::Program;
use rufous_base::slot::slot_of;
use rufous_base::{Output, WorkerId};
use std::sync::Arc;

impl Spanning {
    pub(super) fn on_all_held<P: Program>(&mut self, multi: Multi, site: &mut Site<'_>) {
        if let Some(multi) = all_served::<P>(multi, site)
            && let Some(multi) = not_stale(multi, site)
        {
            match multi.exec {
                Some(_) => site.call(Call::Ready(Box::new(multi))),
                None => self.finish::<P>(multi, site),
            }
        }
    }

    /// Everything is held: executes the command once.
    pub(super) fn finish<P: Program>(&mut self, multi: Multi, site: &mut Site<'_>) {
        let Some(multi) = self.with_others::<P>(multi, site) else {
            return;
        };
        let has_reply = multi.table.is_some();
        let Some(multi) = self.judge_table::<P>(multi, site) else {
            return;
        };
        // A cut of the logs has no request.
        if has_reply || multi.batch.is_empty() {
            let ran = Ran::without_writes(multi, site.store.id);
            self.scatter(ran, site);
        } else {
            site.call(Call::Run(Box::new(multi)));
        }
    }

    /// Everything is held: refuses a change of the table, or first makes all replicas equal. Returns
    /// the command if it need not wait.
    fn judge_table<P: Program>(&mut self, mut multi: Multi, site: &mut Site<'_>) -> Option<Multi> {
        let Some(table) = &multi.table else {
            return Some(multi);
        };
        let why = if table.version() != site.table + 1 {
            Some("the keyspaces were changed meanwhile, try again".to_owned())
        } else {
            multi.findings.refusal()
        };
        if let Some(why) = why {
            multi.table = None;
            let (header, ..) = multi.batch.parts(0);
            let mut reply = Output::default();
            P::refuse(header.command, &why, header.resp3, &mut reply);
            multi.batch.set_reply(reply);
            return Some(multi);
        }
        let workers = site.store.workers();
        if multi.drained || !multi.findings.is_shared() || workers == 1 {
            return Some(multi);
        }
        let table = Arc::clone(table);
        let number = self.next_number();
        let begin = || Draining::Begin {
            multi: number,
            table: Arc::clone(&table),
        };
        multi.awaited = workers;
        multi.findings = Findings::default();
        self.multis.insert(number, multi);
        for to in site.store.others() {
            site.out.send(to, Message::Draining(begin()));
        }
        site.call(Call::Drain(begin()));
        None
    }

    /// A worker's replicas are equal to those of the others, and it has examined its keys again.
    pub(in crate::worker) fn on_settled<P: Program>(
        &mut self,
        number: u64,
        findings: Findings,
        site: &mut Site<'_>,
    ) {
        let Some(multi) = self.multis.get_mut(&number) else {
            debug_assert!(false, "settled, but not under way");
            return;
        };
        multi.awaited -= 1;
        multi.findings.add(findings);
        if multi.awaited == 0
            && let Some(mut multi) = self.multis.remove(&number)
        {
            multi.drained = true;
            self.finish::<P>(multi, site);
        }
    }
}

/// Returns a command unless some of its keys are of slots that this node does not serve. A request
/// that waits for data at these keys was executed before.
fn all_served<P: Program>(mut multi: Multi, site: &mut Site<'_>) -> Option<Multi> {
    let spread = match (multi.batch.requests.first(), &site.slots) {
        // A waiter has waited since before the slots had copies.
        (Some(request), Some(slots)) if multi.waiter.is_none() => {
            let keys = multi.gathered.iter().map(|gathered| &*gathered.key.1);
            slots.is_too_spread::<P>(request.header.command, keys)
        }
        _ => false,
    };
    let header = multi.batch.requests.first().map(|request| request.header);
    // Any copy executes reads of clients that know the cluster.
    let unserved = match header.filter(|_| multi.exec.is_none()) {
        Some(header) if Needs::of::<P>(&header) == Needs::Member => multi.unread,
        _ => multi.unserved,
    };
    if (!unserved || multi.waiter.is_some()) && !spread {
        return Some(multi);
    }
    release_all(std::mem::take(&mut multi.held), site);
    if multi.exec.is_some() {
        multi.gathered.clear();
        site.call(Call::Ready(Box::new(multi)));
        return None;
    }
    let (reply, status) = refusal::<P>(&multi, spread, site);
    multi.batch.set_refusal(reply, status);
    site.call(Call::Answer(site.store.id, multi.batch));
    None
}

/// What the sender of a command with keys that this node does not serve is told.
fn refusal<P: Program>(multi: &Multi, spread: bool, site: &Site<'_>) -> (Output, Status) {
    let mut reply = Output::default();
    let header = multi.batch.requests.first().map(|request| request.header);
    let (why, status) = match header.map(|header| header.door) {
        _ if spread => (SEVERAL, Status::Ready),
        Some(Door::Forwarded | Door::Plain) => (NOT_HERE, Status::NotHere),
        _ => (UNSERVED, Status::Ready),
    };
    let slot = multi.gathered.first().map(|g| slot_of(&g.key.1));
    if let (Some(header), Some(slot), Some(slots)) = (header, slot, &site.slots)
        && !spread
        && Needs::of::<P>(&header) == Needs::Member
        && !slots.chains.leads(slot)
    {
        // A copy with writes that are not acknowledged: the head can tell.
        let status = slots.refuse_elsewhere::<P>(slot, &header, Kept::Reply, &mut reply);
        return (reply, status);
    }
    P::refuse_slot(why, header.is_some_and(|header| header.resp3), &mut reply);
    (reply, status)
}

/// Returns a command unless its keys have other owners than by the table by which it found them:
/// then it begins again.
fn not_stale(mut multi: Multi, site: &mut Site<'_>) -> Option<Multi> {
    let is_of_keys = multi.table.is_none() && multi.actions.is_empty();
    if multi.mark == site.mark() || !is_of_keys {
        return Some(multi);
    }
    let placement = site.store.placement;
    let has_moved = |g: &Gathered| placement.owner(&g.key.1) != g.owner;
    // No client waits for a lattice key, and only those move.
    if multi.waiter.is_some() || !multi.gathered.iter().any(has_moved) {
        return Some(multi);
    }
    release_all(std::mem::take(&mut multi.held), site);
    let again = match multi.plan {
        Some(plan) => plan.into_multi(placement),
        None => {
            let keys = multi.gathered.into_iter().map(|g| g.key).collect();
            again(multi.batch, keys, multi.open, placement)
        }
    };
    site.call(Call::Begin(Box::new(again)));
    None
}

/// A request over the workers that have its keys now.
pub(in crate::worker) fn again(
    mut batch: Box<Batch>,
    keys: Vec<KeyName>,
    open: Option<Open>,
    placement: &Placement,
) -> Multi {
    batch.requests[0].reply = ReplyRange::default();
    let owned = keys.into_iter().map(|key| (placement.owner(&key.1), key));
    let owned = owned.collect();
    match open {
        Some(open) => Multi::on_open(batch, owned, open.round, placement.workers()),
        None => Multi::on_keys(batch, owned),
    }
}

/// Ends the holds of a command that is not executed.
pub(super) fn release_all(held: Vec<(WorkerId, Ticket)>, site: &mut Site<'_>) {
    for (owner, ticket) in held {
        site.call(Call::Release(owner, Release::of_nothing(ticket)));
    }
}
