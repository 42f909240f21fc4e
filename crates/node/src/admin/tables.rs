//! The metrics, by the structure that their values come from. `docs/reference/metrics.md` is
//! written from these and from the labelled families of [`metrics`](super::metrics).

use rufous::runtime::WorkerSnapshot;
use rufous_server::cluster::figures::Figures as Peers;
use rufous_server::cluster::state::Seen;
use rufous_server::front::figures::WorkerFigures;
use rufous_server::front::persistence::{PersistenceInfo, SaveInfo};
use rufous_server::front::process::Process;
use std::sync::atomic::Ordering::Relaxed;

/// Name, help and value. A name that ends in `_total` is a counter, every other one a gauge.
pub(super) type Metric<T> = (&'static str, &'static str, fn(&T) -> u64);

/// Tables of metrics: a line per metric has its name, its help text and how it is read.
macro_rules! metrics {
    ($($(#[$doc:meta])* $table:ident: $of:ty { $($name:ident $help:literal => $read:expr;)* })*) => {
        $(
            $(#[$doc])*
            pub(super) const $table: &[Metric<$of>] = &[$((stringify!($name), $help, $read)),*];
        )*
    };
}

metrics! {
    /// Of the process; one sample each.
    PROCESS: Process {
        rufous_refused_clients_total "Clients refused because of maxclients."
            => |p| p.rejected_connections.load(Relaxed);
        rufous_tls_handshakes_total "TLS handshakes that succeeded." => |p| p.tls_handshakes.load(Relaxed);
        rufous_tls_handshake_errors_total "TLS handshakes that failed." => |p| p.tls_handshake_errors.load(Relaxed);
        rufous_tls_certificate_loads_total "Times that the certificate files were loaded."
            => |p| p.tls_certificate_loads.load(Relaxed);
        rufous_tls_certificates_stale "1 if the certificate files have changed and the new ones are not valid."
            => |p| p.tls_certificates_stale.load(Relaxed);
        process_resident_memory_bytes "Resident memory." => |p| p.rss_bytes.load(Relaxed);
    }

    /// Of a worker's thread, counted by the runtime; label `worker`.
    THREAD: WorkerSnapshot {
        rufous_connections_total "Connections given to the worker." => |w| w.connections_total;
        rufous_dropped_for_output_total "Clients closed because they did not read their replies."
            => |w| w.dropped_for_output;
        rufous_received_bytes_total "Bytes read from clients." => |w| w.bytes_in;
        rufous_sent_bytes_total "Bytes sent to clients." => |w| w.bytes_out;
        rufous_reads_total "Reads from sockets that returned bytes." => |w| w.reads;
        rufous_sends_total "Writes to sockets that accepted bytes." => |w| w.sends;
        rufous_reply_pieces_made_total "Pieces of long replies that were made while these were sent."
            => |w| w.pieces_made;
        rufous_turns_total "Turns of the worker's loop." => |w| w.turns;
        rufous_ring_full_total "Times that a ring to another worker was full." => |w| w.ring_full;
        rufous_wakes_total "Other workers woken from sleep." => |w| w.wakes;
        rufous_messages_sent_total "Messages to other workers." => |w| w.messages_sent;
        rufous_messages_received_total "Messages from other workers." => |w| w.messages_received;
        rufous_overflow_peak_messages "Maximum number of messages that waited for room in a ring."
            => |w| w.overflow_peak;
    }

    /// Of a worker; label `worker`.
    WORKER: WorkerFigures {
        rufous_clients "Connected clients." => |f| f.clients as u64;
        rufous_blocked_clients "Clients that wait for data." => |f| f.blocked as u64;
        rufous_open_transactions "Transactions begun by BEGIN that have not ended." => |f| f.open_transactions as u64;
        rufous_transactions_committed_total "Transactions ended by COMMIT." => |f| f.counters.transactions_committed;
        rufous_transactions_rolled_back_total "Transactions that were rolled back."
            => |f| f.counters.transactions_rolled_back;
        rufous_sessions_resumed_total "Sessions that went on at this node (SESSION RESUME)." => |f| f.counters.sessions_resumed;
        rufous_sessions_waited_total "Of these, sessions that had to wait for changes of other workers or nodes."
            => |f| f.counters.sessions_waited;
        rufous_sessions_behind_total "Sessions that did not, as changes were missing for too long."
            => |f| f.counters.sessions_behind;
        rufous_protected_mode_refusals_total "Clients refused by protected mode."
            => |f| f.counters.rejected_connections;
        rufous_auth_failures_total "Wrong passwords." => |f| f.counters.auth_failures;
        rufous_auth_delayed_total "Passwords that waited before they were checked, after many wrong ones from their address." => |f| f.counters.auth_delayed;
        rufous_auth_refused_total "Passwords that were not checked: too many from their address waited." => |f| f.counters.auth_refused;
        rufous_expired_keys_total "Keys removed because they expired." => |f| f.shard.expired;
        rufous_evicted_keys_total "Keys removed because of maxmemory." => |f| f.evictions.evicted;
        rufous_evicted_lattice_keys_total "Of these, keys of lattice keyspaces, deleted at all replicas."
            => |f| f.evictions.retired;
        rufous_out_of_memory_total "Commands refused because of maxmemory." => |f| f.evictions.refused;
        rufous_keyspace_hits_total "Reads that found their key." => |f| f.shard.hits;
        rufous_keyspace_misses_total "Reads that did not find their key." => |f| f.shard.misses;
        rufous_compacted_records_total "Records moved by compaction." => |f| f.shard.compacted;
        rufous_worker_commands_total "Commands executed by the worker."
            => |f| f.commands.iter().map(|command| command.calls).sum();
        rufous_replica_updates_total "Updates of lattice keys by clients." => |f| f.replication.updates;
        rufous_replica_sent_keys_total "Keys sent in epochs; a key counts once per epoch, however often it was updated."
            => |f| f.replication.sent_keys;
        rufous_replica_messages_total "Replication messages of lattice keys, one per receiver."
            => |f| f.replication.sent_messages;
        rufous_replica_bytes_total "Bytes of these messages." => |f| f.replication.sent_bytes;
        rufous_replica_merged_total "Parts of values merged from other replicas." => |f| f.replication.merged_items;
        rufous_replica_stale_max_microseconds "Maximum time from a change to its merge on this worker."
            => |f| f.replication.stale_max_us;
        rufous_replica_stale_microseconds_total "Sum of the times from a change to its merge on this worker, over all epochs."
            => |f| f.replication.stale_sum_us;
        rufous_replica_stale_epochs_total "Epochs of other workers merged on this worker."
            => |f| f.replication.stale_epochs;
        rufous_replica_horizon_lag_microseconds "Age of the newest time up to which all replicas have received all changes."
            => |f| f.replication.horizon_lag_us;
        rufous_replica_held_back_messages "Replication messages that wait for messages they depend on."
            => |f| f.replication.held_back;
        rufous_replica_held_overflows_total "How often too many of a sender's messages waited, so that its state was compared."
            => |f| f.replication.overflows;
        rufous_replica_relayed_epochs_total "Epochs of nodes that are away which other nodes have sent on."
            => |f| f.replication.relayed_epochs;
        rufous_replica_stamp_lead_microseconds "By how much stamps of lattice keys lead the wall clock of this node."
            => |f| f.replication.stamp_lead_us;
        rufous_replica_clock_ahead_microseconds "By how much the wall clock is ahead of the time that has passed since it was last followed."
            => |f| f.replication.clock_ahead_us;
        rufous_replica_clock_refused_total "Writes of lattice keys refused because clocks lead too far."
            => |f| f.replication.clock_refused;
        rufous_causal_contexts "Keys of LEVEL causal for which the versions seen by a client are kept."
            => |f| f.replication.contexts;
        rufous_causal_contexts_bytes "Memory of these contexts." => |f| f.replication.contexts_bytes;
        rufous_causal_concurrent_writes_total "Writes concurrent with values that their writer had not seen."
            => |f| f.replication.concurrent_writes;
        rufous_replica_epochs_waited_total "Epochs that waited for the commit of a command over several workers."
            => |f| f.replication.epochs_waited;
        rufous_replica_counts_held_at_start "Counters recreated after a forgotten removal, which the start merged separately."
            => |f| f.replication.counts_held;
        rufous_replica_type_conflicts_lost_total "Values of lattice keys that made way for a value of another type, written at the same time elsewhere."
            => |f| f.replication.types_lost;
        rufous_keyspace_converted_keys_total "Keys converted by changes of keyspaces."
            => |f| f.replication.converted_keys;
        rufous_keyspace_exchanging "1 while a change of keyspaces waits for replicas to exchange their state."
            => |f| f.replication.exchanging;
        rufous_log_frames_total "Frames written to the worker's log." => |f| f.persistence.frames;
        rufous_log_bytes_total "Bytes written to the worker's log." => |f| f.persistence.logged_bytes;
        rufous_log_writes_total "Writes to the worker's log that succeeded." => |f| f.persistence.writes;
        rufous_log_syncs_total "Syncs of the worker's log that succeeded." => |f| f.persistence.syncs;
        rufous_log_errors_total "Writes and syncs of the worker's log that failed." => |f| f.persistence.errors;
        rufous_log_delayed_total "Times that replies waited for a sync although appendfsync is everysec."
            => |f| f.persistence.delayed_syncs;
        rufous_snapshot_keys_ahead_total "Keys captured ahead of a change while a snapshot was in progress."
            => |f| f.persistence.snapshot_keys_ahead;
        rufous_log_failing "1 if the last write or sync of the log failed; writes are refused meanwhile."
            => |f| u64::from(f.persistence.aof_last_error.is_some());
        rufous_log_size_bytes "Bytes of logs that a restart would read." => |f| f.persistence.aof_current_size;
        rufous_log_pending_bytes "Bytes of changes not written yet." => |f| f.persistence.aof_pending_bytes;
        rufous_log_unsynced_bytes "Bytes written and not synced yet." => |f| f.persistence.aof_unsynced_bytes;
        rufous_changes_since_snapshot "Changes since the last snapshot." => |f| f.persistence.changes_since_last_save;
        rufous_snapshot_keys_done "Keys written by the snapshot in progress." => |f| f.persistence.snapshot_keys_done;
        rufous_loaded_keys "Keys loaded by the last start." => |f| f.persistence.loaded_keys;
        rufous_load_cut_bytes "Bytes of a torn end of the log that the last start cut off."
            => |f| f.persistence.cut_bytes;
    }

    /// Of a worker, in microseconds, shown in seconds; label `worker`.
    WORKER_TIMES: PersistenceInfo {
        rufous_log_sync_seconds_total "Time spent in syncs of the worker's log." => |info| info.sync_us;
        rufous_load_seconds "How long the last start loaded data." => |info| info.load_us;
    }

    /// Of the node's snapshots; one sample each.
    SNAPSHOTS: SaveInfo {
        rufous_snapshot_generation "Generation of the last snapshot." => |node| node.generation;
        rufous_snapshot_in_progress "1 while a snapshot is in progress." => |node| u64::from(node.in_progress);
        rufous_snapshot_failed "1 if the last snapshot failed."
            => |node| u64::from(node.last_save_failed || node.last_rewrite_failed);
        rufous_last_snapshot_time_seconds "Unix time of the last snapshot, or of the start of the node."
            => |node| node.last_save_time_s;
        rufous_snapshots_total "Snapshots taken since the start." => |node| node.saves + node.rewrites;
        rufous_snapshot_failures_total "Snapshots that failed since the start." => |node| node.failures;
        rufous_log_enabled "1 if changes are logged and found at the next start." => |node| u64::from(node.logs);
        rufous_log_switching "1 while the log is being switched on or off." => |node| u64::from(node.switches_log);
        rufous_earlier_saves "Earlier saves that are kept." => |node| node.kept;
        rufous_backup_pins "Backups in progress that keep files from being removed." => |node| node.pins;
    }

    /// Of the coordinator's view; one sample each, in a cluster.
    COORDINATOR: Seen {
        rufous_cluster_coordinator_up "1 if the coordinator reports changes to the node."
            => |seen| u64::from(seen.is_current);
        rufous_cluster_coordinator_behind "1 if the coordinator was restored to an earlier mapping: the node refuses it."
            => |seen| u64::from(seen.went_back);
        rufous_cluster_alive "1 if the coordinator counts the node as alive." => |seen| u64::from(seen.is_member);
        rufous_cluster_nodes_alive "Nodes that the coordinator counts as alive." => |seen| seen.alive;
        rufous_cluster_nodes_heard "Members that the node has heard lately." => |seen| seen.heard;
        rufous_cluster_ails "1 if the node announces that it cannot take writes: others replace it."
            => |seen| u64::from(seen.ails);
        rufous_cluster_workers_stood_still_total "How often a worker of the node has taken no turn for 1.5 s: others replaced the node."
            => |seen| seen.stood_still;
        rufous_cluster_epochs_proposed_total "Mappings proposed by the node that came into force."
            => |seen| seen.proposed;
        rufous_cluster_members_forgotten_total "Members that were away for longer than cluster-forget-after, and left by a proposal of the node."
            => |seen| seen.outstayed;
        rufous_cluster_mappings_refused_total "Mappings of the coordinator that were not valid."
            => |seen| seen.refused;
        rufous_cluster_slots_halted "Slots of which all copies have stopped, and none was chosen yet to continue."
            => |seen| seen.halted;
        rufous_cluster_folders_refused "Nodes that started with an empty data folder, or one restored from an earlier state, and have not started again with all their copies: those of that folder were not used."
            => |seen| seen.behind;
        rufous_cluster_slots_continued_with_loss_total "Slots that continued, planned by the node, with a copy that may lack acknowledged writes, or empty."
            => |seen| seen.lossy;
    }

    /// Of sessions with other nodes, beside those that [`rufous_base::figures`] declares; one sample each, in a cluster.
    CLUSTER: Peers {
        rufous_cluster_epoch "Epoch of the mapping in use." => |p| p.epoch;
        rufous_chain_refused_total "Mappings and effects of other nodes that could not be applied."
            => |p| p.chains.refused_mappings + p.chains.refused_effects;
        rufous_gossip_refused_total "Messages of other nodes that could not be merged." => |p| p.gossip.refused;
        rufous_gossip_workers_waiting "Workers that serve no key of their lattice keyspaces: they wait for the state of other nodes."
            => |p| p.gossip.waiting;
        rufous_gossip_nodes_excused "Nodes that were away when this node began to serve lattice keys, without their state."
            => |p| p.gossip.excused;
        rufous_peers_connected "Nodes with a session." => |p| p.peers.len() as u64;
        rufous_peer_sessions_total "Sessions that began." => |p| p.sessions;
        rufous_peer_dials_total "Connection attempts to nodes." => |p| p.dials;
        rufous_peer_dial_errors_total "Connection attempts that failed." => |p| p.dial_errors;
        rufous_peer_gone_total "Nodes whose process had ended: a connection after a session was refused." => |p| p.gone;
        rufous_peer_refused_by_total "Sessions refused by the other node." => |p| p.refused_by_peers;
        rufous_peer_strangers_closed_total "Connections closed before their node was known, to make room for others." => |p| p.turned_away;
        rufous_peer_bytes_in_total "Bytes from nodes." => |p| p.traffic().bytes_in;
        rufous_peer_bytes_out_total "Bytes to nodes." => |p| p.traffic().bytes_out;
        rufous_peer_messages_in_total "Messages from nodes." => |p| p.traffic().messages_in;
        rufous_peer_messages_out_total "Messages to nodes." => |p| p.traffic().messages_out;
        rufous_peer_messages_lost_total "Messages to nodes without a session." => |p| p.lost;
    }
}
