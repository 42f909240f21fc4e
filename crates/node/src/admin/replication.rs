//! What replicas of lattice keys tell one another, as Prometheus text.

use super::metrics::{Figures, known};
use super::text::Exposition;
use rufous_kernel::replicate::replicas;

/// Name, meaning, value, and whether it only rises.
type Counted = (
    &'static str,
    &'static str,
    fn(&replicas::Figures) -> u64,
    bool,
);

const COUNTED: [Counted; 17] = [
    (
        "rufous_replica_updates_total",
        "Updates of replicated keys by clients.",
        |f| f.updates,
        true,
    ),
    (
        "rufous_replica_sent_keys_total",
        "Keys of epochs that these updates became.",
        |f| f.sent_keys,
        true,
    ),
    (
        "rufous_replica_messages_total",
        "Messages on replicated keys, to each receiver.",
        |f| f.sent_messages,
        true,
    ),
    (
        "rufous_replica_bytes_total",
        "Bytes of these messages.",
        |f| f.sent_bytes,
        true,
    ),
    (
        "rufous_replica_merged_total",
        "Parts of values taken over from other replicas.",
        |f| f.merged_items,
        true,
    ),
    (
        "rufous_replica_stale_max_microseconds",
        "The longest time from a change to its being merged here.",
        |f| f.stale_max_us,
        false,
    ),
    (
        "rufous_replica_stale_microseconds_total",
        "These times, of all epochs merged here together.",
        |f| f.stale_sum_us,
        true,
    ),
    (
        "rufous_replica_stale_epochs_total",
        "Epochs of other workers merged here.",
        |f| f.stale_epochs,
        true,
    ),
    (
        "rufous_replica_horizon_lag_microseconds",
        "How far the time up to which all have heard of all is behind.",
        |f| f.horizon_lag_us,
        false,
    ),
    (
        "rufous_replica_held_back_messages",
        "Messages that wait for what they depend on.",
        |f| f.held_back,
        false,
    ),
    (
        "rufous_causal_contexts",
        "Keys of LEVEL causal of which it is kept what a client has seen.",
        |f| f.contexts,
        false,
    ),
    (
        "rufous_causal_contexts_bytes",
        "Memory of that.",
        |f| f.contexts_bytes,
        false,
    ),
    (
        "rufous_causal_concurrent_writes_total",
        "Writes that stand beside values which their writer had not seen.",
        |f| f.concurrent_writes,
        true,
    ),
    (
        "rufous_replica_epochs_waited_total",
        "Epochs that waited until commands over several workers were committed.",
        |f| f.epochs_waited,
        true,
    ),
    (
        "rufous_replica_counts_held_at_start",
        "Counts that the start merged apart, as removals before them had been forgotten.",
        |f| f.counts_held,
        false,
    ),
    (
        "rufous_keyspace_converted_keys_total",
        "Keys that changes of keyspaces have converted.",
        |f| f.converted_keys,
        true,
    ),
    (
        "rufous_keyspace_exchanging",
        "Whether a change of keyspaces waits for what replicas have to exchange.",
        |f| f.exchanging,
        false,
    ),
];

pub(super) fn render(out: &mut Exposition, figures: &Figures) {
    for (name, help, value, rises) in COUNTED {
        let mut family = match rises {
            true => out.counter(name, help),
            false => out.gauge(name, help),
        };
        for (worker, of) in known(figures) {
            family.sample(&[("worker", &worker)], value(&of.replication));
        }
    }
}
