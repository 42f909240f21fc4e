//! `INFO keyspaces`: which there are, and how far replicas of lattice keys are
//! behind one another.

use super::figures::Figures;
use super::sections::field;
use crate::config::keyspaces::options;
use crate::front::local::Local;
use rufous_base::Now;

pub(super) fn write(out: &mut String, local: &Local<'_>, all: &Figures, _: Now) {
    let table = local.keyspaces();
    field(out, "keyspaces", table.iter().count());
    field(out, "keyspaces_version", table.version());
    for (number, keyspace) in table.iter().enumerate() {
        let mut line = format!("name={}", keyspace.name);
        for (option, value) in options(keyspace) {
            line.push_str(&format!(",{option}={}", value.escape_ascii()));
        }
        field(out, &format!("keyspace{number}"), line);
    }
    // The shortest that any of them asks for, which is that of all.
    let epoch_ms = local.gossip_us() / 1000;
    field(out, "replica_epoch_ms", epoch_ms);
    let of = &all.replication;
    field(out, "replica_updates", of.updates);
    field(out, "replica_sent_keys", of.sent_keys);
    field(out, "replica_messages", of.sent_messages);
    field(out, "replica_bytes", of.sent_bytes);
    field(out, "replica_merged", of.merged_items);
    let average = of.stale_sum_us.checked_div(of.stale_epochs).unwrap_or(0);
    field(out, "replica_stale_avg_us", average);
    field(out, "replica_stale_max_us", of.stale_max_us);
    field(out, "replica_stale_epochs", of.stale_epochs);
    field(out, "replica_horizon_lag_us", of.horizon_lag_us);
    field(out, "replica_held_back", of.held_back);
    field(out, "replica_held_overflows", of.overflows);
    field(out, "replica_relayed", of.relayed_epochs);
    field(out, "replica_stamp_lead_us", of.stamp_lead_us);
    field(out, "replica_clock_ahead_us", of.clock_ahead_us);
    field(out, "replica_clock_refused", of.clock_refused);
    field(out, "replica_graves_bytes", all.grave_bytes);
    field(out, "replica_epochs_waited", of.epochs_waited);
    field(out, "replica_counts_held_at_start", of.counts_held);
    field(out, "replica_type_conflicts_lost", of.types_lost);
    field(out, "transactions_open", all.open_transactions);
    let counted = &all.counters;
    field(
        out,
        "transactions_committed",
        counted.transactions_committed,
    );
    field(
        out,
        "transactions_rolled_back",
        counted.transactions_rolled_back,
    );
    field(out, "sessions_resumed", counted.sessions_resumed);
    field(out, "sessions_waited", counted.sessions_waited);
    field(out, "sessions_behind", counted.sessions_behind);
    field(out, "causal_contexts", of.contexts);
    field(out, "causal_contexts_bytes", of.contexts_bytes);
    field(out, "causal_concurrent_writes", of.concurrent_writes);
    field(out, "keyspace_converted_keys", of.converted_keys);
    field(out, "keyspace_exchanging_workers", of.exchanging);
}
