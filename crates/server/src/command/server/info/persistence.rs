//! The section of `INFO` on logs and snapshots: Redis's names where there is
//! something of that kind, and more below them.

use super::figures::Figures;
use super::sections::field;
use crate::front::local::Local;
use rufous_base::Now;

fn status(failed: bool) -> &'static str {
    if failed { "err" } else { "ok" }
}

/// A time that something took, as Redis has it where it never happened.
fn took(seconds: Option<u64>) -> i64 {
    seconds.map_or(-1, |seconds| seconds as i64)
}

pub(super) fn write(out: &mut String, local: &Local<'_>, all: &Figures, now: Now) {
    loading(out, local, now);
    snapshots(out, local, all, now);
    logs(out, all, now);
    started(out, all);
}

fn loading(out: &mut String, local: &Local<'_>, now: Now) {
    let loading = &local.shared().loading;
    field(out, "loading", u8::from(loading.is_loading()));
    field(out, "async_loading", 0);
    if !loading.is_loading() {
        return;
    }
    let started_s = local.shared().started_unix_us / 1_000_000;
    field(out, "loading_start_time", started_s);
    field(out, "loading_total_bytes", loading.total_bytes());
    field(out, "loading_loaded_bytes", loading.done_bytes());
    field(
        out,
        "loading_loaded_perc",
        format_args!("{}.00", loading.percent()),
    );
    let elapsed = now.unix_s().saturating_sub(started_s);
    let left = loading.total_bytes() - loading.done_bytes().min(loading.total_bytes());
    let rate = loading.done_bytes().checked_div(elapsed).unwrap_or(0);
    field(
        out,
        "loading_eta_seconds",
        left.checked_div(rate).unwrap_or(1),
    );
}

fn snapshots(out: &mut String, local: &Local<'_>, all: &Figures, now: Now) {
    let (info, node) = (&all.persistence, &all.persistence.node);
    // Without a data folder nobody counts changes since the last snapshot.
    let changes = if local.config().folder {
        info.changes_since_last_save
    } else {
        all.changes
    };
    field(out, "rdb_changes_since_last_save", changes);
    let under_way = node.in_progress && !node.is_rewrite;
    field(out, "rdb_bgsave_in_progress", u8::from(under_way));
    let last = match node.last_save_time_s {
        0 => local.last_save_time_s(),
        seconds => seconds,
    };
    field(out, "rdb_last_save_time", last);
    field(out, "rdb_last_bgsave_status", status(node.last_save_failed));
    field(out, "rdb_last_bgsave_time_sec", took(node.last_save_took_s));
    let current = |wanted: bool| {
        let since = now.unix_us.saturating_sub(node.began_unix_us) / 1_000_000;
        if wanted { since as i64 } else { -1 }
    };
    field(out, "rdb_current_bgsave_time_sec", current(under_way));
    field(out, "rdb_saves", node.saves);
    field(out, "rdb_last_cow_size", 0);
    field(out, "rdb_last_load_keys_expired", 0);
    field(out, "rdb_last_load_keys_loaded", info.loaded_keys);
    if node.in_progress {
        field(out, "current_save_keys_processed", info.snapshot_keys_done);
        field(out, "current_save_keys_total", info.snapshot_keys_total);
        field(out, "current_save_bytes", info.snapshot_bytes);
        field(out, "current_cow_size", info.snapshot_kept);
    }
    field(out, "snapshot_generation", node.generation);
    field(out, "snapshot_failures", node.failures);
    field(out, "snapshot_keys_ahead", info.snapshot_keys_ahead);
    if let Some(error) = &node.last_save_error {
        field(out, "snapshot_last_error", one_line(error));
    }
    field(out, "backup_pins", node.pins);
    field(out, "earlier_saves_kept", node.kept);
}

fn logs(out: &mut String, all: &Figures, now: Now) {
    let (info, node) = (&all.persistence, &all.persistence.node);
    let rewriting = node.in_progress && node.is_rewrite;
    let since = now.unix_us.saturating_sub(node.began_unix_us) / 1_000_000;
    field(out, "aof_enabled", u8::from(info.aof_enabled));
    field(out, "aof_switching", u8::from(info.aof_switching));
    field(out, "aof_rewrite_in_progress", u8::from(rewriting));
    let follows = node.scheduled || (info.aof_switching && !node.in_progress);
    field(out, "aof_rewrite_scheduled", u8::from(follows));
    field(
        out,
        "aof_last_rewrite_time_sec",
        took(node.last_rewrite_took_s),
    );
    field(
        out,
        "aof_current_rewrite_time_sec",
        if rewriting { since as i64 } else { -1 },
    );
    field(
        out,
        "aof_last_bgrewrite_status",
        status(node.last_rewrite_failed),
    );
    field(out, "aof_rewrites", node.rewrites);
    field(out, "aof_last_cow_size", 0);
    field(
        out,
        "aof_last_write_status",
        status(info.aof_last_error.is_some()),
    );
    if let Some(error) = &info.aof_last_error {
        field(out, "aof_last_error", one_line(error));
    }
    if !info.aof_enabled {
        return;
    }
    field(out, "aof_current_size", info.aof_current_size);
    field(out, "aof_base_size", info.aof_base_size);
    field(out, "aof_pending_rewrite", 0);
    field(out, "aof_buffer_length", info.aof_pending_bytes);
    field(out, "aof_pending_bio_fsync", 0);
    field(out, "aof_delayed_fsync", info.delayed_syncs);
    field(out, "aof_unsynced_bytes", info.aof_unsynced_bytes);
    field(out, "aof_frames", info.frames);
    field(out, "aof_written_bytes", info.logged_bytes);
    field(out, "aof_writes", info.writes);
    field(out, "aof_syncs", info.syncs);
    field(out, "aof_errors", info.errors);
    field(out, "aof_last_sync_usec", info.last_sync_us);
}

/// What the last start found.
fn started(out: &mut String, all: &Figures) {
    let info = &all.persistence;
    field(out, "load_keys", info.loaded_keys);
    field(out, "load_frames", info.loaded_frames);
    field(out, "load_bytes", info.loaded_bytes);
    field(out, "load_usec", info.load_us);
    field(out, "load_cut_bytes", info.cut_bytes);
}

/// A field ends with its line.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::front::persistence::SaveInfo;
    use crate::front::testing::Rig;

    #[test]
    fn workers_add_up_and_the_coordinator_tells_of_the_node() {
        let mut rig = Rig::with_config(3, Config::default());
        for (worker, front) in rig.fronts.iter_mut().enumerate() {
            let info = &mut front.durability.info;
            info.aof_enabled = true;
            info.aof_current_size = 100;
            info.changes_since_last_save = worker as u64;
            info.syncs = 7;
            info.last_sync_us = 10 * worker as u64;
            info.snapshot_keys_done = 2;
        }
        rig.fronts[1].durability.info.aof_last_error = Some("no\r\nroom".into());
        rig.fronts[0].durability.info.node = SaveInfo {
            generation: 5,
            in_progress: true,
            began_unix_us: rig.now.unix_us - 3_000_000,
            last_save_time_s: 1_700_000_001,
            last_save_failed: true,
            saves: 4,
            ..SaveInfo::default()
        };
        for worker in 0..3 {
            let client = rig.connect(worker);
            let text = rig.run_on(client, "INFO persistence");
            for line in [
                "loading:0",
                "rdb_changes_since_last_save:3",
                "rdb_bgsave_in_progress:1",
                "rdb_last_save_time:1700000001",
                "rdb_last_bgsave_status:err",
                "rdb_current_bgsave_time_sec:3",
                "rdb_saves:4",
                "current_save_keys_processed:6",
                "snapshot_generation:5",
                "aof_enabled:1",
                "aof_rewrite_in_progress:0",
                "aof_last_write_status:err",
                "aof_last_error:no  room",
                "aof_current_size:300",
                "aof_syncs:21",
                "aof_last_sync_usec:20",
            ] {
                assert!(text.contains(&format!("\r\n{line}\r\n")), "{line}: {text}");
            }
        }
    }

    #[test]
    fn loading_is_told_in_bytes_and_as_a_share() {
        let mut rig = Rig::new(2);
        let loading = &rig.fronts[0].shared.clone();
        let loading = &loading.loading;
        loading.begin(2);
        loading.add_total(100);
        loading.add_total(300);
        loading.add_done(100);
        let text = rig.run("INFO persistence");
        for line in [
            "loading:1",
            "loading_total_bytes:400",
            "loading_loaded_bytes:100",
            "loading_loaded_perc:25.00",
        ] {
            assert!(text.contains(&format!("\r\n{line}\r\n")), "{line}: {text}");
        }
        loading.finish_worker();
        assert!(loading.is_loading());
        loading.finish_worker();
        let text = rig.run("INFO persistence");
        assert!(text.contains("\r\nloading:0\r\n") && !text.contains("loading_total"));
    }
}
