//! What becomes of a command whose keys are all held: it is refused, begins again with other holds,
//! waits for workers to be equal, or is executed.

use super::super::lattice::{Draining, Findings};
use super::commits::Ran;
use super::{Call, Message, Release, Site, Spanning};
use crate::batch::{Batch, ReplyRange};
use crate::lock::{KeyName, Ticket};
use crate::multi::{Gathered, Multi, Open};
use crate::placement::Placement;
use crate::program::Program;
use rufous_base::{Output, WorkerId};
use std::sync::Arc;

impl Spanning {
    pub(super) fn on_all_held<P: Program>(&mut self, multi: Multi, site: &mut Site<'_>) {
        if let Some(multi) = self.delays.on_all_held::<P>(multi, site)
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
    let again = begin_again(multi, placement);
    site.call(Call::Begin(Box::new(again)));
    None
}

/// A command or transaction whose keys were held, before it holds any.
pub(super) fn begin_again(multi: Multi, placement: &Placement) -> Multi {
    let delay = multi.delay;
    let mut begun = match multi.plan {
        Some(plan) => plan.into_multi(placement),
        None => {
            let keys = multi.gathered.into_iter().map(|g| g.key).collect();
            again(multi.batch, keys, multi.open, placement)
        }
    };
    begun.delay = delay;
    begun
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
