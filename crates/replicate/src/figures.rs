//! What replication counts.

/// What is counted. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Own changes of replicated keys, and how many keys of epochs they became.
    pub updates: u64,
    pub sent_keys: u64,
    /// Counted once for each receiver.
    pub sent_messages: u64,
    pub sent_bytes: u64,
    pub merged_items: u64,
    /// From the first change of an epoch to its being merged here.
    pub stale_max_us: u64,
    pub stale_sum_us: u64,
    pub stale_epochs: u64,
    /// How far the horizon is behind this worker's clock.
    pub horizon_lag_us: u64,
    /// Messages that wait for what they depend on.
    pub held_back: u64,
    /// What clients have seen of keys with causal order.
    pub contexts: u64,
    pub contexts_bytes: u64,
    /// Writes that stand beside others.
    pub concurrent_writes: u64,
    /// Counts of nothing that the start held back and brought back.
    pub counts_held: u64,
    /// Epochs whose messages waited until commands over several workers, amid
    /// whose writes they were taken, were committed.
    pub epochs_waited: u64,
    /// Keys that changes of the table of keyspaces have converted.
    pub converted_keys: u64,
    /// Whether such a change waits for what replicas still have to exchange.
    pub exchanging: u64,
}

impl Figures {
    /// Of several workers: sums, and the worst of what is a time.
    pub fn add(&mut self, other: &Figures) {
        self.updates += other.updates;
        self.sent_keys += other.sent_keys;
        self.sent_messages += other.sent_messages;
        self.sent_bytes += other.sent_bytes;
        self.merged_items += other.merged_items;
        self.stale_max_us = self.stale_max_us.max(other.stale_max_us);
        self.stale_sum_us += other.stale_sum_us;
        self.stale_epochs += other.stale_epochs;
        self.horizon_lag_us = self.horizon_lag_us.max(other.horizon_lag_us);
        self.held_back += other.held_back;
        self.contexts += other.contexts;
        self.contexts_bytes += other.contexts_bytes;
        self.concurrent_writes += other.concurrent_writes;
        self.counts_held += other.counts_held;
        self.epochs_waited += other.epochs_waited;
        self.converted_keys += other.converted_keys;
        self.exchanging += other.exchanging;
    }
}

#[cfg(test)]
mod tests {
    use crate::replicas::Replicas;
    use rufous_base::{Now, WorkerId};

    #[test]
    fn there_is_no_lag_before_there_is_a_horizon() {
        let mut replicas = Replicas::new(WorkerId(0), 2);
        let now = Now {
            unix_us: 1_700_000_000_000_000,
            ..Now::default()
        };
        replicas.stamp(now);
        assert_eq!(replicas.figures().horizon_lag_us, 0);
    }
}
