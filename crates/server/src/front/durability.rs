//! A worker's part in durability: when its data is loaded, which orders of commands for saves are under
//! way at the worker that coordinates saves, and what the node still saves before it stops. The log and
//! the snapshots are the kernel's.

use super::durable_info::{fill, note_loaded, pinned, settings, why_no_save};
use super::orders::{Asked, Orders, SaveAnswer, SaveOrder};
use super::persistence::{COORDINATOR, PersistenceInfo};
use super::shared::Shared;
use super::slices::Slices;
use crate::config::Config;
use rufous_base::{NodeEffect, Now, Until, WorkerId};
use rufous_command::DataCommands;
use rufous_kernel::durable::Event;
use rufous_kernel::durable::keeper::{self, Purpose};
use rufous_kernel::planted::{self, Planted};
use rufous_kernel::worker::{LogState, SaveRefused};
use rufous_kernel::{Unwritable, Worker};

type Kernel = Worker<DataCommands>;

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Durability {
    own: WorkerId,
    /// Orders of commands, and their answers.
    pub(crate) orders: Orders,
    pub(crate) info: PersistenceInfo,
    wanted: Wanted,
    begun: bool,
    /// Data is being loaded; no client is served yet.
    loading: bool,
    loading_began_us: u64,
    /// There is a data folder.
    folder: bool,
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

/// What the settings want of durability.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    log: bool,
    /// Snapshots by themselves, and so one before the node stops.
    saves: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StopSave {
    #[default]
    NotYet,
    UnderWay,
    Over,
}

/// What an event of the kernel means for the rest of the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    Nothing,
    /// This worker has loaded its data.
    All,
    /// The node cannot start.
    Never,
    /// What waits until this will never be committed.
    Lost(Until),
}

/// Start.
impl Durability {
    pub(super) fn new(own: WorkerId) -> Self {
        Self {
            own,
            orders: Orders::new(own),
            info: PersistenceInfo::default(),
            wanted: Wanted::default(),
            begun: false,
            loading: false,
            loading_began_us: 0,
            folder: false,
            slices: Slices::default(),
            waiting: Vec::new(),
            next: Vec::new(),
            sealing: Vec::new(),
            switching: Vec::new(),
            told_bytes: 0,
            stop_save: StopSave::default(),
        }
    }

    /// Applies settings.
    pub(super) fn configure(&mut self, config: &Config, kernel: &mut Kernel) {
        self.wanted = Wanted {
            log: config.appendonly,
            saves: !config.save.is_empty(),
        };
        if self.folder {
            kernel.configure_durability(settings(config));
        }
    }

    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The first step: has the kernel load the data from disk, if there is a folder.
    #[cold]
    pub(super) fn begin(&mut self, now: Now, config: &Config, kernel: &mut Kernel) -> Loaded {
        self.begun = true;
        if !config.folder {
            return Loaded::All;
        }
        self.loading = true;
        self.loading_began_us = now.mono_us;
        self.folder = true;
        if self.coordinates() {
            self.orders.take_them();
        }
        kernel.begin(settings(config));
        Loaded::Nothing
    }

    /// For tests without a disk, whatever the settings say.
    #[cfg(test)]
    pub(super) fn begin_without_disk(&mut self) {
        self.begun = true;
    }

    /// Whether data is being loaded.
    #[inline]
    pub(super) fn is_loading(&self) -> bool {
        self.loading
    }

    /// Whether this worker coordinates saves.
    fn coordinates(&self) -> bool {
        self.folder && self.own == COORDINATOR
    }
}

/// Turns and ticks.
impl Durability {
    /// A turn ends, in which the snapshot may go on. `stops`: the node stops.
    pub(super) fn on_turn_end(&mut self, now: Now, stops: bool, kernel: &mut Kernel) {
        let hurries = self.hurries(stops);
        if kernel.is_snapshotting()
            && let Some(bytes) = self.slices.on_turn_end(now, hurries)
        {
            let more = kernel.snapshot_slice(bytes);
            self.slices.on_written(now, more);
        }
    }

    /// When the snapshot or the log goes on.
    pub(super) fn wake_us(&self, now: Now, stops: bool, kernel: &Kernel) -> Option<u64> {
        let slice = self.slices.wake_us(self.hurries(stops));
        let log = kernel.durability_wake_us().map(|at| at.max(now.mono_us));
        slice.into_iter().chain(log).min()
    }

    /// Whether no client is served.
    fn hurries(&self, stops: bool) -> bool {
        stops || self.loading
    }

    pub(super) fn on_tick(&mut self, now: Now, kernel: &mut Kernel) {
        if self.folder {
            kernel.look_after_saving(now);
        }
    }

    /// The end of a tick. Returns whether the snapshot of a stopping node has made progress.
    pub(super) fn on_ticked(&mut self, stops: bool, kernel: &Kernel) -> Option<NodeEffect> {
        if !self.folder {
            return None;
        }
        self.answer_switch(kernel);
        if !stops {
            return None;
        }
        let bytes = kernel.durable_figures().snapshot_bytes;
        let before = std::mem::replace(&mut self.told_bytes, bytes);
        (bytes > before).then_some(NodeEffect::Progress)
    }

    /// The current state of persistence.
    pub(crate) fn info(&self, kernel: &Kernel) -> PersistenceInfo {
        let mut info = self.info.clone();
        if self.folder {
            fill(&mut info, kernel);
        }
        info
    }

    /// The kernel tells of loading, saving or the log.
    pub(super) fn on_event(
        &mut self,
        now: Now,
        event: Event,
        kernel: &mut Kernel,
        shared: &Shared,
    ) -> Loaded {
        let worker = self.own.0;
        match event {
            Event::LoadPlanned { bytes } => shared.loading.add_total(bytes),
            Event::LoadProgress { bytes } => shared.loading.add_done(bytes),
            Event::Loaded(loaded) => {
                self.info.load_us = now.mono_us - self.loading_began_us;
                note_loaded(&mut self.info, worker, &loaded);
            }
            Event::Serving => {
                self.loading = false;
                self.info = self.info(kernel);
                return Loaded::All;
            }
            Event::Unloadable(text) => {
                if shared.refuse_start(&text) {
                    tracing::error!("cannot start: {text}");
                }
                return Loaded::Never;
            }
            Event::SaveEnded(ended) => {
                self.on_save_ended(now, ended.map_err(|e| e.to_string()), kernel, shared);
            }
            Event::Sealed { generation, pinned } => self.on_sealed(now, generation, pinned, kernel),
            Event::Trouble(Some(text)) => {
                tracing::error!(
                    worker,
                    "the log cannot be written, so that writes are refused: {text}"
                );
                self.info.aof_last_error = Some(text.to_string());
            }
            Event::Trouble(None) => {
                tracing::info!(worker, "the log can be written again");
                self.info.aof_last_error = None;
            }
            Event::Uncommitted(until) => return Loaded::Lost(until),
        }
        Loaded::Nothing
    }
}

/// Orders of commands.
impl Durability {
    /// Carries out the orders that have arrived. The settings are those in force.
    pub(super) fn take_orders(&mut self, now: Now, kernel: &mut Kernel) {
        if self.coordinates() {
            for asked in self.orders.take() {
                self.order(asked, now, kernel);
            }
        }
    }

    fn order(&mut self, asked: Asked, now: Now, kernel: &mut Kernel) {
        match asked.order {
            SaveOrder::Unpin(id) => {
                self.orders
                    .answer(asked, SaveAnswer::Unpinned(kernel.unpin(id)));
            }
            SaveOrder::Pin if kernel.can_pin_without_save() => match kernel.pin(now) {
                Ok((pin, generation)) => self.sealing.push((asked, pin, generation)),
                Err(SaveRefused::InProgress) => self.next.push(asked),
                Err(refused) => self.orders.answer(asked, why_no_save(refused, kernel)),
            },
            SaveOrder::SwitchLog => {
                self.switching.push(asked);
                kernel.look_after_saving(now);
                self.answer_switch(kernel);
            }
            // What is not loaded yet is on disk.
            SaveOrder::BeforeStopUnlessLogged if kernel.log_holds() || self.loading => {
                self.orders.answer(asked, SaveAnswer::Saved);
            }
            _ => self.order_save_of(asked, now, kernel),
        }
    }

    /// Answers those that wait for the log to be switched, if that is done, or takes long.
    fn answer_switch(&mut self, kernel: &Kernel) {
        if self.switching.is_empty() {
            return;
        }
        let wanted = LogState::of(self.wanted.log);
        let answer = match kernel.refuses_writes() {
            _ if kernel.durable_figures().log_state == wanted => SaveAnswer::Saved,
            _ if planted::is(Planted::SwitchNotAwaited) => SaveAnswer::Saved,
            Some(Unwritable::Log(why)) if self.wanted.log => SaveAnswer::Failed(why.to_string()),
            _ if self.stop_save == StopSave::Over => SaveAnswer::Failed("the node stops".into()),
            _ => return,
        };
        for asked in std::mem::take(&mut self.switching) {
            self.orders.answer(asked, answer.clone());
        }
    }

    fn order_save_of(&mut self, asked: Asked, now: Now, kernel: &mut Kernel) {
        let purpose = match asked.order {
            SaveOrder::Rewrite => Purpose::Rewrite,
            _ => Purpose::Snapshot,
        };
        match kernel.begin_save(now, purpose) {
            Ok(_) => match asked.order {
                SaveOrder::Background { .. } | SaveOrder::Rewrite => {
                    self.orders.answer(asked, SaveAnswer::Started);
                }
                _ => self.waiting.push(asked),
            },
            Err(SaveRefused::InProgress) => match asked.order {
                SaveOrder::Background { schedule: true } | SaveOrder::Rewrite => {
                    self.info.node.scheduled = true;
                    self.orders.answer(asked, SaveAnswer::Scheduled);
                }
                SaveOrder::Pin | SaveOrder::BeforeStop | SaveOrder::BeforeStopUnlessLogged => {
                    self.next.push(asked)
                }
                _ => self.orders.answer(asked, SaveAnswer::Busy),
            },
            Err(refused) => self.orders.answer(asked, why_no_save(refused, kernel)),
        }
    }

    fn on_save_ended(
        &mut self,
        now: Now,
        ended: Result<u64, String>,
        kernel: &mut Kernel,
        shared: &Shared,
    ) {
        if !self.coordinates() {
            return;
        }
        let status = kernel.keeper().map(|k| &k.status);
        let rewrite = status.is_some_and(|status| status.purpose == Purpose::Rewrite);
        let took_us = status.map_or(0, |status| status.last_took_us);
        let node = &mut self.info.node;
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
        if self.stop_save == StopSave::UnderWay {
            self.stop_save = StopSave::Over;
            if let Err(text) = &ended {
                shared.lose_data(text);
            }
        }
        if let Err(text) = &ended {
            for asked in std::mem::take(&mut self.switching) {
                self.orders.answer(asked, SaveAnswer::Failed(text.clone()));
            }
        }
        self.answer_switch(kernel);
        for asked in std::mem::take(&mut self.waiting) {
            let answer = match &ended {
                Err(text) => SaveAnswer::Failed(text.clone()),
                Ok(_) if asked.order == SaveOrder::Pin => match kernel.pin_saved() {
                    Some((id, files)) => SaveAnswer::Pinned(pinned(id, files, now)),
                    None => SaveAnswer::NoFolder,
                },
                Ok(_) => SaveAnswer::Saved,
            };
            self.orders.answer(asked, answer);
        }
        let scheduled = std::mem::take(&mut self.info.node.scheduled);
        if scheduled {
            // Refused only where another save has begun, which serves as well.
            let _ = kernel.begin_save(now, Purpose::Snapshot);
        }
        for asked in std::mem::take(&mut self.next) {
            self.order(asked, now, kernel);
        }
    }

    fn on_sealed(
        &mut self,
        now: Now,
        generation: u64,
        files: Result<keeper::Pinned, String>,
        kernel: &mut Kernel,
    ) {
        let sealing = std::mem::take(&mut self.sealing);
        for (asked, id, since) in sealing {
            if since != generation {
                self.sealing.push((asked, id, since));
                continue;
            }
            let answer = match &files {
                Ok(files) => SaveAnswer::Pinned(pinned(id, files.clone(), now)),
                Err(text) => {
                    kernel.unpin(id);
                    SaveAnswer::Failed(text.clone())
                }
            };
            self.orders.answer(asked, answer);
        }
    }
}

/// The end of a node. No log is closed before every worker is quiet: a request from one may still change
/// another's data.
impl Durability {
    /// Whether every worker is quiet. One that is still loading ends as it is.
    pub(super) fn all_quiet(&self, now: Now, kernel: &mut Kernel) -> bool {
        if !self.folder {
            return true;
        }
        if self.loading {
            // Worker 0 may have finished loading by now, and would wait for this one for ever.
            return kernel.say_quiet(now);
        }
        kernel.all_quiet(now)
    }

    /// Before logs are closed: false while a save is in progress. While worker 0 loads there is nothing to save.
    pub(super) fn close_logs(&mut self, now: Now, kernel: &mut Kernel, shared: &Shared) -> bool {
        if self.coordinates() {
            let saves = !self.loading && !planted::is(Planted::SwitchNotAwaited);
            if saves && self.saves_before_stop(now, kernel, shared) {
                return false;
            }
            self.stop_save = StopSave::Over;
            kernel.close_logs(now);
        }
        true
    }

    /// Closes this worker's log. True when everything is durable.
    pub(super) fn close_log(&self, now: Now, kernel: &mut Kernel, shared: &Shared) -> bool {
        if !self.folder || self.loading {
            return true;
        }
        let closed = kernel.close_log(now);
        if closed && let Some(Unwritable::Log(why)) = kernel.refuses_writes() {
            shared.lose_data(why);
        }
        closed
    }

    /// Whether a save is in progress, possibly the one that stopping requires.
    fn saves_before_stop(&mut self, now: Now, kernel: &mut Kernel, shared: &Shared) -> bool {
        if self.stop_save == StopSave::NotYet {
            self.stop_save = self.save_of_stop(now, kernel, shared);
        }
        self.stop_save != StopSave::Over || kernel.keeper().is_some_and(|k| k.is_saving())
    }

    fn save_of_stop(&self, now: Now, kernel: &mut Kernel, shared: &Shared) -> StopSave {
        let lacks = if self.wanted.log {
            !kernel.log_holds()
        } else {
            self.wanted.saves && kernel.unsaved_changes()
        };
        if !lacks || shared.forgoes_last_save() {
            return StopSave::Over;
        }
        match kernel.begin_save(now, Purpose::Snapshot) {
            Ok(_) => StopSave::UnderWay,
            // The one in progress may lack the latest changes.
            Err(SaveRefused::InProgress) => StopSave::NotYet,
            Err(refused) => {
                if let SaveAnswer::Failed(why) = why_no_save(refused, kernel) {
                    shared.lose_data(&why);
                }
                StopSave::Over
            }
        }
    }
}

#[cfg(test)]
mod tests;
