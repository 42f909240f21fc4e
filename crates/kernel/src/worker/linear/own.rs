//! The transactions of a worker's own clients: they begin here, and their outcomes arrive here.

use super::letter::WORKER_BITS;
use super::running::Heads;
use super::typing::KeyOp;
use super::{Client, LARGE, Transacted};
use crate::batch::Header;
use crate::program::Program;
use crate::worker::Outcome as Result;
use rufous_base::Now;
use rufous_base::slot::slot_of;
use rufous_linear::access::Access;
use rufous_linear::origin::Ended;
use rufous_linear::{Message, OTHER_ORDER, Outcome, Part, Transaction, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The client's reply where a transaction was begun again too often.
const CLASHES: &[u8] = b"-TRYAGAIN keys are part of transactions that began before chains of slots have changed, and are not over: nothing \
    was done; see CLUSTER STATUS, and send it again\r\n";

impl<P: Program> Heads<'_, P> {
    /// Begins a transaction of a client on these keys, each with whether it is written; `body`: [`crate::body`]. Its end is a
    /// [`Result::Transacted`], unless there is no client; call
    /// [`Worker::settle`] after it. False where the node has no part in a cluster.
    pub(in crate::worker) fn begin<'k>(
        &mut self,
        header: Option<&Header>,
        keys: impl IntoIterator<Item = (&'k [u8], bool)>,
        body: Vec<u8>,
    ) -> bool {
        let Some(txn) = self.transaction(keys, body.into()) else {
            return false;
        };
        if header.is_some() {
            let figures = &mut self.worker.linear.figures;
            figures.begun += 1;
            figures.slots += txn.slots().len() as u64;
        }
        self.submit((header.copied(), 0), txn);
        true
    }

    /// A transaction of this worker. `None`: the node has no part in a cluster, or there are no keys.
    pub(super) fn transaction<'k>(
        &mut self,
        keys: impl IntoIterator<Item = (&'k [u8], bool)>,
        body: Arc<[u8]>,
    ) -> Option<Transaction<KeyOp>> {
        let mut parts = BTreeMap::<&[u8], Access>::new();
        for (key, writes) in keys {
            let access = if writes { Access::Write } else { Access::Read };
            parts.insert(key, access);
        }
        let parts = parts.into_iter().map(|(key, access)| Part {
            slot: slot_of(key),
            key: key.into(),
            ops: vec![access.into()],
            expects: None,
        });
        Transaction::new(self.member_id()?, parts.collect(), body)
    }

    /// The identity of the next transaction of this worker, if the node is a member.
    pub(super) fn member_id(&mut self) -> Option<TxnId> {
        let (own, _) = self.worker.linear.own?;
        self.mapping()?.members.get(&own)?;
        self.next_id()
    }

    /// Sends a transaction to its first slot. It visits slots by the workers that head them now.
    pub(super) fn submit(
        &mut self,
        (header, tries): (Option<Header>, u32),
        txn: Transaction<KeyOp>,
    ) {
        let txn = match self.mapping() {
            Some(mapping) => txn.ordered(mapping.epoch, |slot| {
                let head = mapping.chains.of(slot).head();
                let member = head.and_then(|head| mapping.members.get(&head));
                (head, member.map(|member| member.worker_of(slot)))
            }),
            None => txn,
        };
        let client = Client {
            header,
            is_large: txn.body().len() > LARGE,
            tries,
        };
        self.worker.linear.clients.insert(txn.id, client);
        let mut out = Vec::new();
        if let Some(origin) = &mut self.worker.linear.origin {
            origin.on_submit(Arc::new(txn), &mut out);
        }
        self.post_all(out);
    }

    /// The identity of the next transaction of this worker.
    fn next_id(&mut self) -> Option<TxnId> {
        let mut id = self.worker.linear.origin.as_mut()?.next_id();
        id.number = id.number << WORKER_BITS | u64::from(self.worker.id.0);
        Some(id)
    }

    pub(super) fn on_outcome(&mut self, now: Now, from: Option<u16>, message: Message<KeyOp>) {
        let (Some(origin), Some(slot)) = (&mut self.worker.linear.origin, from) else {
            return;
        };
        let Message::Outcome { txn, outcome, told } = message else {
            return;
        };
        let mut out = Vec::new();
        let ended = origin.on_outcome((txn, outcome, told), slot, &mut out);
        self.post_all(out);
        let client = self.worker.linear.clients.remove(&txn);
        if let (Some(Ended { txn, outcome, told }), Some(client)) = (ended, client) {
            let clashes = told[..] == *OTHER_ORDER;
            if clashes && self.worker.linear.begin_later(now, &client, &txn) {
                return;
            }
            let told = if clashes { CLASHES.into() } else { told };
            let Some(header) = client.header else {
                return;
            };
            match outcome {
                Outcome::Committed => self.worker.linear.figures.committed += 1,
                Outcome::Aborted => self.worker.linear.figures.on_aborted(&told, clashes),
            }
            let transacted = Transacted {
                header,
                is_committed: Some(outcome == Outcome::Committed),
                told,
                at: now,
            };
            let result = Result::Transacted(Box::new(transacted));
            self.worker.out.outcomes.push_back(result);
        }
    }

    /// Those are begun again that would have waited for ones of another order, and have paused.
    pub(super) fn begin_again(&mut self, now: Now) {
        while let Some(again) = self.worker.linear.next_again(now) {
            if let Some(id) = self.next_id() {
                self.submit((again.header, again.tries), again.txn.renamed(id));
            }
        }
    }

    pub(super) fn send_client_again(&mut self, id: TxnId) {
        let mut out = Vec::new();
        if let Some(origin) = &mut self.worker.linear.origin {
            origin.send_again(id, &mut out);
        }
        self.post_all(out);
    }

    /// The node stops, and has waited long enough: the outcome of what waits is unknown. Returns how much that is.
    pub(in crate::worker) fn give_up(&mut self) -> usize {
        let lost = self.worker.linear.give_up();
        let count = lost.len();
        let lost = lost.into_iter();
        let lost = lost.map(|one| Result::Transacted(Box::new(one)));
        self.worker.out.outcomes.extend(lost);
        count
    }
}
