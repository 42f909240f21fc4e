//! The settings of a node, from a plan; and what the node is able to do.

use crate::node::plan::{BOUND_BYTES, BOUND_MS, Mode, Plan};
use rufous_server::config::{AppendFsync, Collections, Config, MaxmemoryPolicy};

/// Settings of a node with `workers` workers.
pub fn config(plan: &Plan, workers: usize) -> Config {
    let appendfsync = match plan.mode {
        Mode::Off | Mode::No => AppendFsync::No,
        Mode::Everysec => AppendFsync::Everysec,
        Mode::Always => AppendFsync::Always,
    };
    let policy = MaxmemoryPolicy::ALL
        .into_iter()
        .find(|(_, name)| *name == plan.policy);
    let mut collections = Collections {
        list_max_listpack_size: plan.packed.max(1) as i64,
        ..Collections::default()
    };
    for packing in [
        &mut collections.hash,
        &mut collections.set,
        &mut collections.sorted_set,
    ] {
        packing.entries = plan.packed;
    }
    let mut config = Config {
        collections,
        workers,
        maxmemory: plan.maxmemory.unwrap_or(0),
        maxmemory_policy: policy.map_or(MaxmemoryPolicy::NoEviction, |(policy, _)| policy),
        folder: plan.mode != Mode::Off,
        appendonly: plan.mode != Mode::Off && !plan.switches_log(),
        appendfsync,
        log_segment_size: plan.segment_bytes,
        snapshot_retention: plan.retention,
        ..Config::in_memory()
    };
    if plan.has_long_syncs() {
        config.appendfsync_max_ms = BOUND_MS;
    }
    if plan.bounds_bytes() {
        (config.appendfsync_max_bytes, config.appendfsync_max_ms) = (BOUND_BYTES, u64::MAX >> 20);
    }
    config
}

/// Whether the node knows a command of this name.
pub fn knows(command: &str) -> bool {
    rufous_server::command::table()
        .find(command.as_bytes())
        .is_some()
}
