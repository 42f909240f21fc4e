//! The front's part in durability: replies wait for the log, requests wait for loading, save orders
//! of commands go to the kernel's keeper, and its results go to commands, metrics and the process
//! log.

use super::connection::{Connection, Slot};
use super::persistence::{Asked, PersistenceInfo, Pinned, SaveAnswer, SaveOrder};
use super::slices::Slices;
use super::{Front, Message};
use crate::config::{AppendFsync, Config};
use rufous_base::disk::DiskDone;
use rufous_base::{Effects, NodeEffect, Now, Until};
use rufous_kernel::Unwritable;
use rufous_kernel::durable::keeper::{self, Schedule};
use rufous_kernel::durable::{Event, Fsync, Loaded};
use rufous_kernel::worker::{DurableSettings, SaveRefused};

/// The state of this module.
#[derive(Debug, Default)]
pub(super) struct Durability {
    begun: bool,
    /// Data is being loaded; no client is served yet.
    pub(super) loading: bool,
    loading_began_us: u64,
    /// There is a data folder.
    folder: bool,
    /// This worker coordinates saves.
    coordinates: bool,
    slices: Slices,
    /// Orders that wait for the save in progress, and for the next one.
    waiting: Vec<Asked>,
    next: Vec<Asked>,
    /// Backups that wait until everything up to their cut is synced.
    sealing: Vec<(Asked, u64, u64)>,
    /// The save in progress is a rewrite.
    is_rewrite: bool,
    /// The node stops once this save has ended.
    stop_save: StopSave,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StopSave {
    #[default]
    NotYet,
    UnderWay,
    Over,
}

/// The settings that the kernel needs.
fn settings(config: &Config) -> DurableSettings {
    DurableSettings {
        log: config.appendonly,
        fsync: match config.appendfsync {
            AppendFsync::Always => Fsync::Always,
            AppendFsync::Everysec => Fsync::EverySec,
            AppendFsync::No => Fsync::No,
        },
        segment_bytes: config.log_segment_size,
        schedule: Schedule {
            points: config.save.iter().map(|p| (p.seconds, p.changes)).collect(),
            rewrite_percentage: config.auto_aof_rewrite_percentage,
            rewrite_min_bytes: config.auto_aof_rewrite_min_size,
            retention: config.snapshot_retention,
        },
        stop_on_save_error: config.stop_writes_on_bgsave_error,
    }
}

impl Front {
    /// Has the kernel load the data from disk, at the first step.
    #[inline]
    pub(super) fn begin_durability(&mut self, now: Now) {
        if !self.durability.begun {
            self.begin_loading(now);
        }
    }

    #[cold]
    fn begin_loading(&mut self, now: Now) {
        self.durability.begun = true;
        self.await_declared();
        if !self.config.folder {
            return self.begin_declaring();
        }
        self.durability.loading = true;
        self.durability.loading_began_us = now.mono_us;
        self.durability.folder = true;
        self.durability.coordinates = self.id() == super::persistence::COORDINATOR;
        self.persistence.takes_orders = self.durability.coordinates;
        self.kernel.begin(settings(&self.config));
    }

    /// For tests without a disk, whatever the settings say.
    #[cfg(test)]
    pub(super) fn without_disk(&mut self) {
        self.durability.begun = true;
        self.await_declared();
        self.begin_declaring();
    }

    /// Applies settings. Logging that is switched on begins with a save.
    pub(super) fn configure_durability(&mut self, config: &Config) {
        if self.durability.folder {
            self.kernel.configure_durability(settings(config));
        }
    }

    pub(super) fn on_disk(&mut self, now: Now, done: DiskDone, fx: &mut Effects<Message>) {
        self.kernel.on_disk(now, done);
        self.deliver_outcomes(fx);
    }

    pub(super) fn end_turn_durably(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.take_orders(now);
        fx.gate = self.kernel.end_turn(now);
        if self.kernel.is_snapshotting()
            && let Some(bytes) = self.durability.slices.on_turn_end(now, self.hurries())
        {
            let more = self.kernel.snapshot_slice(bytes);
            self.durability.slices.on_written(now, more);
        }
        fx.passed = self.kernel.passed();
        fx.logged = self.kernel.logged();
        fx.congested = self.kernel.is_congested() || self.peers_are_full();
        self.kernel.take_disk_requests(&mut fx.disk);
        self.take_events(now, fx);
        self.connections.take_closes(fx);
        self.kernel
            .take_messages(|to, message| fx.messages.push((to, Message::Kernel(message))));
        self.deliver_save_answers(fx);
        fx.messages.append(&mut self.outgoing);
        self.wake_for_durability(now, fx);
    }

    /// Whether no client is served.
    fn hurries(&self) -> bool {
        self.stopping || self.durability.loading
    }

    fn wake_for_durability(&mut self, now: Now, fx: &mut Effects<Message>) {
        let mut wake = self.cron.wake_us();
        if let Some(at) = self.durability.slices.wake_us(self.hurries()) {
            wake = wake.min(at);
        }
        if let Some(at) = self.kernel.durability_wake_us() {
            wake = wake.min(at.max(now.mono_us));
        }
        if wake < self.cron.wake_us() {
            self.cron.set_wake_us(wake);
            fx.wake_at_us = Some(wake);
        }
    }

    /// The tick's work for durability.
    pub(super) fn tick_durability(&mut self, now: Now, fx: &mut Effects<Message>) {
        if !self.durability.folder {
            return;
        }
        self.kernel.look_after_saving(now);
        self.deliver_outcomes(fx);
        if self.kernel.wants_log() && self.kernel.keeper().is_some() {
            // It is refused only while a save is in progress: then the next tick retries.
            let _ = self.kernel.begin_save(now);
        }
    }

    /// The current state of persistence.
    pub(crate) fn persistence_info(&self) -> PersistenceInfo {
        let mut info = self.persistence.info.clone();
        if self.durability.folder {
            self.fill(&mut info);
        }
        info
    }

    fn take_events(&mut self, now: Now, fx: &mut Effects<Message>) {
        for event in self.kernel.take_durable_events() {
            match event {
                Event::LoadPlanned { bytes } => self.shared.loading.add_total(bytes),
                Event::LoadProgress { bytes } => self.shared.loading.add_done(bytes),
                Event::Loaded(loaded) => self.on_loaded(now, &loaded),
                Event::Serving => {
                    self.durability.loading = false;
                    self.persistence.info = self.persistence_info();
                    self.begin_declaring();
                }
                Event::Unloadable(text) => {
                    if self.shared.refuse_start(&text) {
                        tracing::error!("cannot start: {text}");
                    }
                    fx.node.push(NodeEffect::Shutdown);
                }
                Event::SaveEnded(ended) => {
                    self.on_save_ended(now, ended.map_err(|e| e.to_string()));
                }
                Event::Sealed { generation, pinned } => self.on_sealed(generation, pinned, now),
                Event::Trouble(Some(text)) => {
                    tracing::error!(
                        worker = self.id().0,
                        "the log cannot be written, so that writes are refused: {text}"
                    );
                    self.persistence.info.aof_last_error = Some(text.to_string());
                }
                Event::Trouble(None) => {
                    tracing::info!(worker = self.id().0, "the log can be written again");
                    self.persistence.info.aof_last_error = None;
                }
                Event::Uncommitted(until) => {
                    fx.abandon(until);
                    self.lose_late_replies(until);
                    self.lose_replies_to_peers(now, fx);
                }
            }
        }
    }

    /// Closes connections with replies that are ready but wait for earlier ones: what they report
    /// may not be committed, and their turn is over.
    fn lose_late_replies(&mut self, until: Until) {
        let late = |c: &&Connection| {
            let waits = until == Until::Logged || c.waits_for_copies();
            waits && c.slots.iter().any(|s| matches!(s, Slot::Late { .. }))
        };
        let all: Vec<_> = self.connections().filter(late).map(|c| c.id).collect();
        all.into_iter()
            .for_each(|id| self.connections.close_now(id));
    }

    fn on_loaded(&mut self, now: Now, loaded: &Loaded) {
        let worker = self.id().0;
        let info = &mut self.persistence.info;
        info.loaded_keys += loaded.keys;
        info.loaded_frames += loaded.frames;
        info.load_us = now.mono_us - self.durability.loading_began_us;
        if let Some(torn) = &loaded.torn {
            info.cut_bytes += torn.bytes;
            tracing::warn!(
                worker,
                file = &*torn.file,
                offset = torn.offset,
                bytes = torn.bytes,
                frames = torn.frames,
                "the log ended with an incomplete write ({}), which was truncated",
                torn.why
            );
        }
        let (frames, bytes) = loaded.cut;
        if bytes > 0 {
            info.cut_bytes += bytes;
            tracing::warn!(
                worker,
                frames,
                bytes,
                "cut from the log: it followed a command of which another worker's log lost its part"
            );
        }
        if loaded.skipped > 0 {
            tracing::info!(
                worker,
                commands = loaded.skipped,
                "commands over several workers were under way when the node ended, and did not happen"
            );
        }
        tracing::info!(
            worker,
            keys_of_snapshot = loaded.keys,
            frames_of_log = loaded.frames,
            ms = info.load_us / 1000,
            "loaded"
        );
    }

    fn take_orders(&mut self, now: Now) {
        if !self.durability.coordinates {
            return;
        }
        for asked in self.take_save_orders() {
            self.order(asked, now);
        }
    }

    fn order(&mut self, asked: Asked, now: Now) {
        match asked.order {
            SaveOrder::Unpin(id) => {
                let there = self.kernel.unpin(id);
                self.answer_save(asked, SaveAnswer::Unpinned(there));
            }
            SaveOrder::Pin if self.kernel.can_pin_without_save() => match self.kernel.pin(now) {
                Ok((pin, generation)) => self.durability.sealing.push((asked, pin, generation)),
                Err(SaveRefused::InProgress) => self.durability.next.push(asked),
                Err(refused) => self.answer_save(asked, self.why_no_save(refused)),
            },
            _ => self.order_save_of(asked, now),
        }
    }

    fn order_save_of(&mut self, asked: Asked, now: Now) {
        let rewrite = asked.order == SaveOrder::Rewrite;
        match self.kernel.begin_save(now) {
            Ok(_) => {
                self.durability.is_rewrite = rewrite;
                let node = &mut self.persistence.info.node;
                node.in_progress = true;
                node.is_rewrite = rewrite;
                node.began_unix_us = now.unix_us;
                match asked.order {
                    SaveOrder::Background { .. } | SaveOrder::Rewrite => {
                        self.answer_save(asked, SaveAnswer::Started);
                    }
                    _ => self.durability.waiting.push(asked),
                }
            }
            Err(SaveRefused::InProgress) => match asked.order {
                SaveOrder::Background { schedule: true } | SaveOrder::Rewrite => {
                    self.persistence.info.node.scheduled = true;
                    self.answer_save(asked, SaveAnswer::Scheduled);
                }
                SaveOrder::Pin | SaveOrder::BeforeStop => self.durability.next.push(asked),
                _ => self.answer_save(asked, SaveAnswer::Busy),
            },
            Err(refused) => self.answer_save(asked, self.why_no_save(refused)),
        }
    }

    fn on_save_ended(&mut self, now: Now, ended: Result<u64, String>) {
        if self.id() != super::persistence::COORDINATOR {
            return;
        }
        let rewrite = std::mem::take(&mut self.durability.is_rewrite);
        let took_us = self.kernel.keeper().map_or(0, |k| k.status.last_took_us);
        let node = &mut self.persistence.info.node;
        node.in_progress = false;
        match &ended {
            Ok(generation) => {
                node.last_save_failed = false;
                node.last_save_error = None;
                node.last_save_took_s = Some(took_us / 1_000_000);
                node.last_save_time_s = now.unix_ms() / 1000;
                node.saves += 1;
                node.generation = *generation;
                if rewrite {
                    node.rewrites += 1;
                    node.last_rewrite_failed = false;
                    node.last_rewrite_took_s = Some(took_us / 1_000_000);
                }
                tracing::info!(generation, ms = took_us / 1000, "saved");
            }
            Err(text) => {
                node.failures += 1;
                node.last_save_failed = true;
                node.last_save_error = Some(text.clone());
                node.last_rewrite_failed |= rewrite;
                tracing::error!("the save failed; the last successful save is intact: {text}");
            }
        }
        if self.durability.stop_save == StopSave::UnderWay {
            self.durability.stop_save = StopSave::Over;
        }
        for asked in std::mem::take(&mut self.durability.waiting) {
            let answer = match &ended {
                Err(text) => SaveAnswer::Failed(text.clone()),
                Ok(_) if asked.order == SaveOrder::Pin => match self.kernel.pin_saved() {
                    Some((id, files)) => SaveAnswer::Pinned(pinned(id, files, now)),
                    None => SaveAnswer::NoFolder,
                },
                Ok(_) => SaveAnswer::Saved,
            };
            self.answer_save(asked, answer);
        }
        let scheduled = std::mem::take(&mut self.persistence.info.node.scheduled);
        if scheduled && self.kernel.begin_save(now).is_ok() {
            let node = &mut self.persistence.info.node;
            node.in_progress = true;
            node.began_unix_us = now.unix_us;
        }
        for asked in std::mem::take(&mut self.durability.next) {
            self.order(asked, now);
        }
    }

    fn on_sealed(&mut self, generation: u64, files: Result<keeper::Pinned, String>, now: Now) {
        let sealing = std::mem::take(&mut self.durability.sealing);
        for (asked, id, since) in sealing {
            if since != generation {
                self.durability.sealing.push((asked, id, since));
                continue;
            }
            let answer = match &files {
                Ok(files) => SaveAnswer::Pinned(pinned(id, files.clone(), now)),
                Err(text) => {
                    self.kernel.unpin(id);
                    SaveAnswer::Failed(text.clone())
                }
            };
            self.answer_save(asked, answer);
        }
    }

    /// Makes everything durable before the node stops. True when that is done. No log is closed
    /// before every worker is quiet: a request from one may still change another's data.
    pub(super) fn close_durably(&mut self, now: Now, fx: &mut Effects<Message>) -> bool {
        if !self.durability.folder {
            return true;
        }
        if self.durability.loading {
            // Worker 0 may have finished loading by now, and would wait for this one for ever.
            let said = self.kernel.say_quiet(now);
            self.deliver_outcomes(fx);
            return said;
        }
        let all_quiet = self.kernel.all_quiet(now);
        self.deliver_outcomes(fx);
        if !all_quiet {
            return false;
        }
        if self.durability.coordinates {
            if self.saves_before_stop(now) {
                return false;
            }
            self.kernel.close_logs(now);
            self.deliver_outcomes(fx);
        }
        self.kernel.close_log(now)
    }

    /// Whether a save is in progress, possibly the one that stopping requires.
    fn saves_before_stop(&mut self, now: Now) -> bool {
        if self.durability.stop_save == StopSave::NotYet {
            let wanted = !self.config.appendonly
                && !self.config.save.is_empty()
                && !self.shared.forgoes_last_save()
                && self.kernel.unsaved_changes();
            self.durability.stop_save = match wanted && self.kernel.begin_save(now).is_ok() {
                true => StopSave::UnderWay,
                false => StopSave::Over,
            };
        }
        self.durability.stop_save == StopSave::UnderWay
            || self.kernel.keeper().is_some_and(|k| k.is_saving())
    }

    fn why_no_save(&self, refused: SaveRefused) -> SaveAnswer {
        let why = match refused {
            SaveRefused::NoFolder => return SaveAnswer::NoFolder,
            SaveRefused::InProgress => return SaveAnswer::Busy,
            SaveRefused::Loading => "the node is still loading",
            SaveRefused::Stopping => "the node stops",
            SaveRefused::Stuck => {
                let why = self.kernel.refuses_writes();
                why.map_or("a log is stuck", Unwritable::why)
            }
        };
        SaveAnswer::Failed(why.into())
    }

    fn fill(&self, info: &mut PersistenceInfo) {
        let figures = self.kernel.durable_figures();
        let log = figures.log;
        info.aof_enabled = figures.logs;
        info.changes_since_last_save = figures.changes_since_save;
        info.snapshot_keys_done = figures.snapshot_keys_done;
        info.snapshot_keys_total = figures.snapshot_keys_total;
        info.snapshot_bytes = figures.snapshot_bytes;
        info.snapshot_kept = figures.snapshot_kept;
        info.aof_current_size = figures.base_bytes + log.generation_bytes;
        info.aof_base_size = figures.base_bytes;
        info.aof_pending_bytes = log.pending_bytes;
        info.logged_bytes = log.bytes_written;
        info.writes = log.writes;
        info.syncs = log.syncs;
        info.errors = log.failures;
        info.last_sync_us = log.last_sync_us;
        info.node.pins = figures.pins;
        info.node.kept = figures.kept;
        if info.node.last_save_time_s == 0 {
            info.node.last_save_time_s = figures.last_save_unix_ms / 1000;
        }
        if info.node.generation == 0 {
            info.node.generation = figures.generation;
        }
    }
}

fn pinned(id: u64, files: keeper::Pinned, now: Now) -> Pinned {
    let files_of = files.files.into_iter();
    Pinned {
        id,
        manifest: files.manifest,
        files: files_of
            .map(|(file, bytes)| (file.to_string(), bytes))
            .collect(),
        unix_us: now.unix_us,
    }
}
