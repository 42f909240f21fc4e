//! The promises of all workers to transactions that write at once: to send no state with a later time than
//! theirs until they end.

use super::super::outbox::Outbox;
use rufous_base::{ConnId, Now, WorkerId};
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use std::collections::BTreeMap;

/// Limit on the duration of a transaction that writes at once, in microseconds: deletions are
/// remembered so long, as it may still write under the time of its beginning.
const LONGEST_US: u64 = 60_000_000;

/// The promises for transactions of this worker.
#[derive(Debug, Default)]
pub(super) struct Promises {
    names: u64,
    /// The connection of each, and when its transaction ends.
    given: BTreeMap<u64, (ConnId, u64)>,
}

impl Promises {
    /// A name for promises of all workers to a transaction of worker `own`. Names of holds are
    /// small numbers.
    pub(super) fn name(&mut self, own: WorkerId) -> u64 {
        self.names += 1;
        1 << 63 | u64::from(own.0) << 47 | self.names
    }

    /// All workers have promised.
    pub(super) fn on_given(&mut self, now: Now, name: u64, conn: ConnId) {
        let until_us = now.mono_us + LONGEST_US;
        self.given.insert(name, (conn, until_us));
    }

    /// The transaction has ended: releases the workers from their promise, if there is one.
    pub(super) fn redeem(
        &mut self,
        promise: Option<u64>,
        kernel: &mut Worker<DataCommands>,
        out: &mut Outbox,
    ) {
        let Some(name) = promise else { return };
        self.given.remove(&name);
        kernel.redeem_of(name);
        out.tell_others(move |front, _| front.kernel.redeem_of(name));
    }

    /// Connections whose transactions have lasted too long.
    pub(super) fn due(&self, now: Now) -> Vec<ConnId> {
        let given = self.given.values();
        let due = given.filter(|(_, until)| *until <= now.mono_us);
        due.map(|(conn, _)| *conn).collect()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.given.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::outbox::Place;
    use super::super::super::testing::id;
    use super::*;
    use rufous_base::Effects;
    use rufous_kernel::placement::Placement;

    #[test]
    fn a_promise_holds_until_it_is_redeemed_and_not_for_ever() {
        let place = Place {
            own: WorkerId(2),
            workers: 4,
        };
        let commands = crate::command::table().len();
        let mut kernel = Worker::new(place.own, Placement::new(place.workers), commands, 1);
        let (mut out, mut promises) = (Outbox::new(place), Promises::default());
        let at = |mono_us| Now {
            mono_us,
            ..Now::default()
        };
        let [one, two] = [0; 2].map(|_| promises.name(place.own));
        assert_ne!(one, two);
        promises.on_given(at(10), one, id(1, 1));
        promises.on_given(at(20), two, id(2, 1));
        assert_eq!(promises.due(at(9 + LONGEST_US)), []);
        assert_eq!(promises.due(at(10 + LONGEST_US)), [id(1, 1)]);
        promises.redeem(Some(one), &mut kernel, &mut out);
        promises.redeem(None, &mut kernel, &mut out);
        assert_eq!(promises.due(at(20 + LONGEST_US)), [id(2, 1)]);
        let mut fx = Effects::default();
        out.take(&mut fx);
        assert_eq!(fx.messages.len(), 3, "the other workers hear of it");
        promises.redeem(Some(two), &mut kernel, &mut out);
        assert!(promises.is_empty());
    }
}
