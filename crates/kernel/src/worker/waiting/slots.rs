//! Waits for keys of slots that this node no longer serves.

use super::{WaiterId, Waits};
use crate::batch::Status;
use crate::program::Program;
use crate::worker::chains::{Kept, Needs, SlotView};
use crate::worker::store::Store;
use rufous_base::limits::SLOT_PATIENCE_US;
use rufous_base::slot::slot_of;
use rufous_base::{Now, Output, Until};
use rufous_chain::Refused;

/// The period between checks of the waiters' slots.
pub(super) const PERIOD_US: u64 = 200_000;

/// A waiter's key whose slot this node does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unserved {
    pub(super) waiter: WaiterId,
    pub(super) slot: u16,
    pub(super) refused: Refused,
}

impl Waits {
    /// Whether the slots of awaited keys are to be checked again.
    pub(in crate::worker) fn must_look(&self, now: Now) -> bool {
        now.mono_us >= self.looked_us + PERIOD_US
    }

    /// Checks the slots of awaited keys. Requests that wait for slots of another node wait there from
    /// now on, or their clients are redirected; those for slots that no node serves are refused.
    pub(in crate::worker) fn on_slots<P: Program>(
        &mut self,
        view: &SlotView<'_>,
        store: &mut Store<'_>,
    ) {
        let waiters = self.queues.all();
        let keys = waiters.flat_map(|(id, waiter)| waiter.keys.iter().map(move |key| (id, &key.1)));
        let unserved = keys.filter_map(|(waiter, key)| {
            Some(Unserved {
                waiter,
                slot: slot_of(key),
                refused: view.unserved(key, Needs::Head)?,
            })
        });
        let unserved = unserved.collect();
        for Unserved {
            waiter,
            slot,
            refused,
        } in self.on_unserved(view.now, unserved)
        {
            // A request that is being executed will be answered, or checked again.
            let request = self.queues.get_mut(waiter).and_then(|w| w.batch.take());
            let Some(mut batch) = request else {
                continue;
            };
            let (header, ..) = batch.parts(0);
            let mut reply = Output::default();
            let status = match refused {
                Refused::Elsewhere(_) => {
                    view.refuse_elsewhere::<P>(slot, &header, Kept::Request, &mut reply)
                }
                Refused::NotYet => {
                    P::refuse_slot(&view.why_unserved(slot, &[]), header.resp3, &mut reply);
                    Status::Ready
                }
            };
            batch.set_refusal(reply, status);
            // It tells of no data.
            batch.until = Until::Logged;
            self.on_refused(waiter, batch, store);
        }
    }

    /// These keys, in order of waiters, are not served. Returns the waits to end: for slots that are
    /// elsewhere, where the data is written, and for slots that no node has served for so long that
    /// no request would wait for them.
    pub(super) fn on_unserved(&mut self, now: Now, mut all: Vec<Unserved>) -> Vec<Unserved> {
        self.looked_us = now.mono_us;
        let before = std::mem::take(&mut self.unserved_us);
        for Unserved { slot, .. } in &all {
            let since_us = before.get(slot).copied().unwrap_or(now.mono_us);
            self.unserved_us.insert(*slot, since_us);
        }
        let until_us = |slot: u16| self.unserved_us.get(&slot).map(|us| us + SLOT_PATIENCE_US);
        all.retain(|key| match key.refused {
            Refused::Elsewhere(_) => true,
            Refused::NotYet => until_us(key.slot).is_some_and(|us| now.mono_us >= us),
        });
        all.dedup_by_key(|key| key.waiter);
        all
    }
}
