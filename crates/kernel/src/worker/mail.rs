//! Messages to other workers, in order. Requests are collected, so that many leave in one message.

use super::Message;
use crate::batch::Batch;
use rufous_base::{Until, WorkerId};

/// Batches kept for reuse.
const POOLED_BATCHES: usize = 16;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Mail {
    /// Requests collected for each worker.
    #[expect(clippy::vec_box, reason = "taking one must not copy it")]
    collected: Vec<Box<Batch>>,
    #[expect(clippy::vec_box, reason = "as above")]
    pool: Vec<Box<Batch>>,
    messages: Vec<(WorkerId, Message)>,
}

impl Mail {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            collected: (0..workers).map(|_| Box::default()).collect(),
            ..Self::default()
        }
    }

    /// An empty batch.
    #[inline]
    pub(super) fn batch(&mut self) -> Box<Batch> {
        self.pool.pop().unwrap_or_default()
    }

    /// Takes back a batch that is no longer used.
    pub(super) fn recycle(&mut self, mut batch: Box<Batch>) {
        if self.pool.len() < POOLED_BATCHES {
            batch.reset();
            self.pool.push(batch);
        }
    }

    /// Passes the batch for `to` to `add`, which adds a request whose reply waits for `until`.
    #[inline]
    pub(super) fn collect(&mut self, to: WorkerId, until: Until, add: impl FnOnce(&mut Batch)) {
        let collected = &self.collected[to.index()];
        // Replies of a batch leave together: none waits for commits that only others need.
        if collected.until != until && !collected.is_empty() {
            self.end_batch(to);
        }
        let collected = &mut self.collected[to.index()];
        collected.until = until;
        add(collected);
        if collected.is_full() {
            self.end_batch(to);
        }
    }

    fn end_batch(&mut self, to: WorkerId) {
        let fresh = self.batch();
        let batch = std::mem::replace(&mut self.collected[to.index()], fresh);
        self.messages.push((to, Message::Requests(batch)));
    }

    fn end_batch_if_any(&mut self, to: WorkerId) {
        let collected = self.collected.get(to.index());
        if collected.is_some_and(|batch| !batch.is_empty()) {
            self.end_batch(to);
        }
    }

    /// Requests already collected for `to` go first: a later hold must not overtake them.
    pub(super) fn send(&mut self, to: WorkerId, message: Message) {
        self.end_batch_if_any(to);
        self.messages.push((to, message));
    }

    /// Sends a message that may overtake requests.
    pub(super) fn send_early(&mut self, to: WorkerId, message: Message) {
        self.messages.push((to, message));
    }

    /// All messages since the last call.
    pub(super) fn take(&mut self) -> std::vec::Drain<'_, (WorkerId, Message)> {
        for to in 0..self.collected.len() {
            self.end_batch_if_any(WorkerId(to as u16));
        }
        self.messages.drain(..)
    }
}
