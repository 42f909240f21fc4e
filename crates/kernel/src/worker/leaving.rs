//! Clients that wait for data at a key of a slot that this node no longer serves: the data is
//! written at another node, so they are redirected there instead of waiting for their timeout.

use super::Worker;
use super::serving::NOBODY;
use crate::batch::Batch;
use crate::program::Program;
use crate::wait::{Told, WaiterId};
use rufous_base::limits::SLOT_PATIENCE_US;
use rufous_base::slot::slot_of;
use rufous_base::{Now, Output};
use rufous_chain::Refused;
use std::collections::BTreeMap;

/// The period between checks of the waiters.
const PERIOD_US: u64 = 200_000;

/// The awaited slots that no node serves, and since when.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    looked_us: u64,
    since_us: BTreeMap<u16, u64>,
}

impl<P: Program> Worker<P> {
    /// Checks the waiters periodically.
    pub(super) fn look_after_waiters(&mut self, now: Now) {
        let Some(chains) = &mut self.chains else {
            return;
        };
        if now.mono_us >= chains.leaving.looked_us + PERIOD_US {
            self.end_waits_elsewhere(now);
        }
    }

    /// Ends the waits for slots that are elsewhere, or that no node has served for so long that no
    /// request would wait for them.
    pub(super) fn end_waits_elsewhere(&mut self, now: Now) {
        let Some(chains) = &mut self.chains else {
            return;
        };
        chains.leaving.looked_us = now.mono_us;
        if self.waits.queues.is_empty() {
            return chains.leaving.since_us.clear();
        }
        let mut before = std::mem::take(&mut chains.leaving.since_us);
        let mut ends = Vec::new();
        for (id, waiter) in self.waits.queues.all() {
            for (_, key) in &waiter.keys {
                let Some(refused) = self.unserved(now, key, false) else {
                    continue;
                };
                let slot = slot_of(key);
                let since_us = *before.entry(slot).or_insert(now.mono_us);
                let is_over = match refused {
                    Refused::Elsewhere(_) => true,
                    Refused::NotYet => now.mono_us >= since_us + SLOT_PATIENCE_US,
                };
                if is_over {
                    ends.push((id, slot, refused));
                    break;
                }
            }
        }
        for (id, slot, refused) in ends {
            self.end_waiter(id, slot, refused);
        }
        if let Some(chains) = &mut self.chains {
            before.retain(|slot, _| chains.serves(*slot, now).is_err());
            chains.leaving.since_us = before;
        }
    }

    fn end_waiter(&mut self, id: WaiterId, slot: u16, refused: Refused) {
        let Some(waiter) = self.waits.queues.get_mut(id) else {
            return;
        };
        let header = waiter
            .batch
            .as_ref()
            .and_then(|batch| batch.requests.first());
        // If the request is running now, it will be answered or checked again.
        let Some(header) = header.map(|request| request.header) else {
            return;
        };
        let (origin, won) = (waiter.client.origin, waiter.claim.take());
        self.remove_waiter(id);
        if won {
            let (mut batch, mut reply) = (Box::<Batch>::default(), Output::default());
            match refused {
                Refused::Elsewhere(_) => {
                    self.refuse_elsewhere(slot, &header, false, &mut reply);
                }
                Refused::NotYet => P::refuse_slot(NOBODY, header.resp3, &mut reply),
            }
            batch.push_reply(header, reply);
            self.waits.told.push_back((origin, Told::Served(batch)));
        }
    }
}
