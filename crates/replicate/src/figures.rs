//! Counters of replication.

/// The counters. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Local changes of replicated keys, and the number of keys of epochs that they became.
    pub updates: u64,
    pub sent_keys: u64,
    /// Counted once for each receiver.
    pub sent_messages: u64,
    pub sent_bytes: u64,
    pub merged_items: u64,
    /// From the first change of an epoch to its merge here.
    pub stale_max_us: u64,
    pub stale_sum_us: u64,
    pub stale_epochs: u64,
    /// The distance of the horizon from this worker's clock.
    pub horizon_lag_us: u64,
    /// Messages that wait for what they depend on.
    pub held_back: u64,
    /// How often too much of a sender waited, so that its state was compared.
    pub overflows: u64,
    /// Epochs of nodes that are away which others have sent on.
    pub relayed_epochs: u64,
    /// Contexts of clients for keys with causal order.
    pub contexts: u64,
    pub contexts_bytes: u64,
    /// Writes that became siblings.
    pub concurrent_writes: u64,
    /// Values that were shown and have made way for one of another type.
    pub types_lost: u64,
    /// Counts on nothing that the startup held back and restored.
    pub counts_held: u64,
    /// Epochs whose messages waited for the commit of commands over several workers that were in progress when the
    /// changes were taken.
    pub epochs_waited: u64,
    /// Keys converted by changes of the table of keyspaces.
    pub converted_keys: u64,
    /// Whether such a change waits for exchanges between replicas.
    pub exchanging: u64,
    /// By how much stamps lead the wall clock, and the wall clock the time that has passed.
    pub stamp_lead_us: u64,
    pub clock_ahead_us: u64,
    /// Commands that may write while one of these is too much.
    pub clock_refused: u64,
}

impl Figures {
    /// Adds another worker's figures: sums, and maxima of times.
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
        self.overflows += other.overflows;
        self.relayed_epochs += other.relayed_epochs;
        self.contexts += other.contexts;
        self.contexts_bytes += other.contexts_bytes;
        self.concurrent_writes += other.concurrent_writes;
        self.types_lost += other.types_lost;
        self.counts_held += other.counts_held;
        self.epochs_waited += other.epochs_waited;
        self.converted_keys += other.converted_keys;
        self.exchanging += other.exchanging;
        self.stamp_lead_us = self.stamp_lead_us.max(other.stamp_lead_us);
        self.clock_ahead_us = self.clock_ahead_us.max(other.clock_ahead_us);
        self.clock_refused += other.clock_refused;
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
