//! The front's part in durability: replies wait for the log, requests wait for loading, save orders
//! of commands go to the kernel's keeper, and its results go to commands, metrics and the process
//! log.

use super::connection::Connection;
use super::durable_info::{fill, note_loaded, pinned, settings};
use super::persistence::{Asked, PersistenceInfo, SaveAnswer, SaveOrder};
use super::slices::Slices;
use super::{Front, Message};
use crate::config::Config;
use rufous_base::disk::DiskDone;
use rufous_base::{Effects, NodeEffect, Now, Until};
use rufous_kernel::Unwritable;
use rufous_kernel::durable::Event;
use rufous_kernel::durable::keeper::{self, Purpose};
use rufous_kernel::worker::{LogState, SaveRefused};

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
    /// Settings of the log that wait until they hold.
    switching: Vec<Asked>,
    /// While the node stops: bytes of the snapshot at the last tick.
    told_bytes: u64,
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

    /// Applies settings.
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
        let released = self.deliver_outcomes(fx);
        self.farewell.on_turn_end(now, &mut self.connections);
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
        self.out.take_messages(fx);
        self.wake_for_durability(now, fx);
        if released {
            // What waited for these replies goes on in the next turn.
            self.cron.set_wake_us(now.mono_us);
            fx.wake_at_us = Some(now.mono_us);
        }
    }

    /// Whether no client is served.
    fn hurries(&self) -> bool {
        self.stop.has_begun() || self.durability.loading
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
        self.answer_switch();
        if self.stop.has_begun() {
            let bytes = self.kernel.durable_figures().snapshot_bytes;
            let before = std::mem::replace(&mut self.durability.told_bytes, bytes);
            if bytes > before {
                fx.node.push(NodeEffect::Progress);
            }
        }
    }

    /// The current state of persistence.
    pub(crate) fn persistence_info(&self) -> PersistenceInfo {
        let mut info = self.persistence.info.clone();
        if self.durability.folder {
            fill(&mut info, &self.kernel);
        }
        info
    }

    fn take_events(&mut self, now: Now, fx: &mut Effects<Message>) {
        for event in self.kernel.take_durable_events() {
            match event {
                Event::LoadPlanned { bytes } => self.shared.loading.add_total(bytes),
                Event::LoadProgress { bytes } => self.shared.loading.add_done(bytes),
                Event::Loaded(loaded) => {
                    let worker = self.id().0;
                    let info = &mut self.persistence.info;
                    info.load_us = now.mono_us - self.durability.loading_began_us;
                    note_loaded(info, worker, &loaded);
                }
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
        let late = |c: &&Connection| c.replies.has_late(until);
        let all: Vec<_> = self.connections().filter(late).map(|c| c.id).collect();
        all.into_iter()
            .for_each(|id| self.connections.close_now(id));
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
            SaveOrder::SwitchLog => {
                // The settings may arrive here later than the order.
                if let Some(config) = self.shared.settings() {
                    self.configure(config);
                }
                self.durability.switching.push(asked);
                self.kernel.look_after_saving(now);
                self.answer_switch();
            }
            // What is not loaded yet is on disk.
            SaveOrder::BeforeStopUnlessLogged
                if self.kernel.log_holds() || self.durability.loading =>
            {
                self.answer_save(asked, SaveAnswer::Saved);
            }
            _ => self.order_save_of(asked, now),
        }
    }

    /// Answers those that wait for the log to be switched, if that is done, or takes long.
    fn answer_switch(&mut self) {
        if self.durability.switching.is_empty() {
            return;
        }
        let wanted = if self.config.appendonly {
            LogState::On
        } else {
            LogState::Off
        };
        let answer = match self.kernel.refuses_writes() {
            _ if self.kernel.durable_figures().log_state == wanted => SaveAnswer::Saved,
            Some(Unwritable::Log(why)) if self.config.appendonly => {
                SaveAnswer::Failed(why.to_string())
            }
            _ => return,
        };
        for asked in std::mem::take(&mut self.durability.switching) {
            self.answer_save(asked, answer.clone());
        }
    }

    fn order_save_of(&mut self, asked: Asked, now: Now) {
        let purpose = match asked.order {
            SaveOrder::Rewrite => Purpose::Rewrite,
            _ => Purpose::Snapshot,
        };
        match self.kernel.begin_save(now, purpose) {
            Ok(_) => match asked.order {
                SaveOrder::Background { .. } | SaveOrder::Rewrite => {
                    self.answer_save(asked, SaveAnswer::Started);
                }
                _ => self.durability.waiting.push(asked),
            },
            Err(SaveRefused::InProgress) => match asked.order {
                SaveOrder::Background { schedule: true } | SaveOrder::Rewrite => {
                    self.persistence.info.node.scheduled = true;
                    self.answer_save(asked, SaveAnswer::Scheduled);
                }
                SaveOrder::Pin | SaveOrder::BeforeStop | SaveOrder::BeforeStopUnlessLogged => {
                    self.durability.next.push(asked)
                }
                _ => self.answer_save(asked, SaveAnswer::Busy),
            },
            Err(refused) => self.answer_save(asked, self.why_no_save(refused)),
        }
    }

    fn on_save_ended(&mut self, now: Now, ended: Result<u64, String>) {
        if self.id() != super::persistence::COORDINATOR {
            return;
        }
        let status = self.kernel.keeper().map(|k| &k.status);
        let rewrite = status.is_some_and(|status| status.purpose == Purpose::Rewrite);
        let took_us = status.map_or(0, |status| status.last_took_us);
        let node = &mut self.persistence.info.node;
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
            if let Err(text) = &ended {
                self.shared.lose_data(text);
            }
        }
        if let Err(text) = &ended {
            for asked in std::mem::take(&mut self.durability.switching) {
                self.answer_save(asked, SaveAnswer::Failed(text.clone()));
            }
        }
        self.answer_switch();
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
        if scheduled {
            // Refused only where another save has begun, which serves as well.
            let _ = self.kernel.begin_save(now, Purpose::Snapshot);
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
        let closed = self.kernel.close_log(now);
        if closed && let Some(Unwritable::Log(why)) = self.kernel.refuses_writes() {
            self.shared.lose_data(why);
        }
        closed
    }

    /// Whether a save is in progress, possibly the one that stopping requires.
    fn saves_before_stop(&mut self, now: Now) -> bool {
        if self.durability.stop_save == StopSave::NotYet {
            self.durability.stop_save = self.save_of_stop(now);
        }
        self.durability.stop_save != StopSave::Over
            || self.kernel.keeper().is_some_and(|k| k.is_saving())
    }

    fn save_of_stop(&mut self, now: Now) -> StopSave {
        let lacks = if self.config.appendonly {
            !self.kernel.log_holds()
        } else {
            !self.config.save.is_empty() && self.kernel.unsaved_changes()
        };
        if !lacks || self.shared.forgoes_last_save() {
            return StopSave::Over;
        }
        match self.kernel.begin_save(now, Purpose::Snapshot) {
            Ok(_) => StopSave::UnderWay,
            // The one in progress may lack the latest changes.
            Err(SaveRefused::InProgress) => StopSave::NotYet,
            Err(refused) => {
                if let SaveAnswer::Failed(why) = self.why_no_save(refused) {
                    self.shared.lose_data(&why);
                }
                StopSave::Over
            }
        }
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
}
