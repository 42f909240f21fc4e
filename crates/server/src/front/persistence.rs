//! The state of durability for commands, metrics and health, and the orders by which commands ask
//! for snapshots.
//!
//! Each worker keeps its own [`PersistenceInfo`] up to date; `INFO` and metrics merge them. Orders
//! ([`SaveOrder`]) of commands at any worker are sent to the first one, which takes them with
//! [`Front::take_save_orders`] and answers each once, at once or much later, with
//! [`Front::answer_save`].

use super::local::Local;
use super::session::Session;
use super::{Front, Message};
use rufous_base::{ConnId, Effects, Now, WorkerId};
use rufous_command::{Failure, Reply};
use rufous_kernel::durable::Manifest;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The worker that coordinates snapshots.
pub const COORDINATOR: WorkerId = WorkerId(0);

/// The state of durability of one worker, or of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistenceInfo {
    /// Whether changes are logged, and found at the next start.
    pub aof_enabled: bool,
    /// Logging is being switched on or off.
    pub aof_switching: bool,
    /// Why the last write or sync of the log failed, until one succeeds.
    pub aof_last_error: Option<String>,
    /// Bytes of all logs that a restart would read.
    pub aof_current_size: u64,
    /// That size right after the last snapshot, or at start.
    pub aof_base_size: u64,
    /// Bytes that are not passed to the disk yet.
    pub aof_pending_bytes: u64,
    /// Bytes written that are not synced yet.
    pub aof_unsynced_bytes: u64,
    /// Frames and bytes logged since the start.
    pub frames: u64,
    pub logged_bytes: u64,
    /// Successful writes and syncs of the log, and failures of either.
    pub writes: u64,
    pub syncs: u64,
    pub errors: u64,
    /// Times that replies had to wait for a sync although `appendfsync` is `everysec`.
    pub delayed_syncs: u64,
    /// Duration of the last sync, and of all syncs together.
    pub last_sync_us: u64,
    pub sync_us: u64,
    /// Changes since the last snapshot's cut.
    pub changes_since_last_save: u64,
    /// Progress of the snapshot in progress.
    pub snapshot_keys_done: u64,
    pub snapshot_keys_total: u64,
    pub snapshot_bytes: u64,
    /// The memory that it uses besides the data.
    pub snapshot_kept: u64,
    /// Keys that had to be captured before a change.
    pub snapshot_keys_ahead: u64,
    /// Loaded at the last start by this worker.
    pub loaded_keys: u64,
    pub loaded_frames: u64,
    pub loaded_bytes: u64,
    pub load_us: u64,
    /// Bytes of a torn tail that were cut at the last start.
    pub cut_bytes: u64,
    /// The coordinator's state; all zeros at other workers.
    pub node: SaveInfo,
}

/// Snapshots of the whole node, as its coordinator knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveInfo {
    /// The generation that the manifest names.
    pub generation: u64,
    /// Whether a snapshot is in progress, and when it began (`Now::unix_us`).
    pub in_progress: bool,
    pub began_unix_us: u64,
    /// It was started by BGREWRITEAOF, or by the log's growth.
    pub is_rewrite: bool,
    /// Another one follows as soon as that ends.
    pub scheduled: bool,
    /// Seconds since 1970; when the last snapshot was installed, or the start.
    pub last_save_time_s: u64,
    pub last_save_failed: bool,
    pub last_save_error: Option<String>,
    /// Duration of the last one, in seconds.
    pub last_save_took_s: Option<u64>,
    /// The same two for the last rewrite.
    pub last_rewrite_failed: bool,
    pub last_rewrite_took_s: Option<u64>,
    /// Snapshots installed since the start.
    pub saves: u64,
    pub rewrites: u64,
    pub failures: u64,
    /// Changes are logged, and found at the next start.
    pub logs: bool,
    /// Logging is being switched on or off.
    pub switches_log: bool,
    /// Backups that hold files.
    pub pins: u64,
    /// Earlier saves that can be restored.
    pub kept: u64,
}

impl PersistenceInfo {
    /// Adds the state of another worker.
    pub fn merge(&mut self, other: &PersistenceInfo) {
        self.aof_enabled |= other.aof_enabled;
        self.aof_switching |= other.aof_switching;
        if self.aof_last_error.is_none() {
            self.aof_last_error.clone_from(&other.aof_last_error);
        }
        let sums: [(&mut u64, u64); 21] = [
            (&mut self.aof_current_size, other.aof_current_size),
            (&mut self.aof_base_size, other.aof_base_size),
            (&mut self.aof_pending_bytes, other.aof_pending_bytes),
            (&mut self.aof_unsynced_bytes, other.aof_unsynced_bytes),
            (&mut self.frames, other.frames),
            (&mut self.logged_bytes, other.logged_bytes),
            (&mut self.writes, other.writes),
            (&mut self.syncs, other.syncs),
            (&mut self.errors, other.errors),
            (&mut self.delayed_syncs, other.delayed_syncs),
            (&mut self.sync_us, other.sync_us),
            (
                &mut self.changes_since_last_save,
                other.changes_since_last_save,
            ),
            (&mut self.snapshot_keys_done, other.snapshot_keys_done),
            (&mut self.snapshot_keys_total, other.snapshot_keys_total),
            (&mut self.snapshot_bytes, other.snapshot_bytes),
            (&mut self.snapshot_kept, other.snapshot_kept),
            (&mut self.snapshot_keys_ahead, other.snapshot_keys_ahead),
            (&mut self.loaded_keys, other.loaded_keys),
            (&mut self.loaded_frames, other.loaded_frames),
            (&mut self.loaded_bytes, other.loaded_bytes),
            (&mut self.cut_bytes, other.cut_bytes),
        ];
        for (sum, value) in sums {
            *sum += value;
        }
        self.last_sync_us = self.last_sync_us.max(other.last_sync_us);
        self.load_us = self.load_us.max(other.load_us);
        // Only one of them is the coordinator.
        if other.node != SaveInfo::default() {
            self.node = other.node.clone();
        }
    }
}

/// Progress of loading at start, shared by all threads: set before the first worker takes a turn if
/// there is a data folder, counted down by each worker.
#[derive(Debug, Default)]
pub struct Loading {
    /// Workers that are still loading.
    workers: AtomicUsize,
    total_bytes: AtomicU64,
    done_bytes: AtomicU64,
}

impl Loading {
    /// The node starts with data to load: no client is served before every worker has called
    /// [`Loading::finish_worker`].
    pub fn begin(&self, workers: usize) {
        self.workers.store(workers, Ordering::Release);
    }

    /// Adds the bytes that this worker has to read.
    pub fn add_total(&self, bytes: u64) {
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn add_done(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn finish_worker(&self) {
        let lowered = |left: usize| left.checked_sub(1);
        let _ = self
            .workers
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, lowered);
    }

    pub fn is_loading(&self) -> bool {
        self.workers.load(Ordering::Acquire) > 0
    }

    pub fn total_bytes(&self) -> u64 {
        self.total_bytes.load(Ordering::Relaxed)
    }

    pub fn done_bytes(&self) -> u64 {
        self.done_bytes
            .load(Ordering::Relaxed)
            .min(self.total_bytes())
    }

    /// The reply to requests meanwhile.
    pub(crate) fn failure(&self) -> Failure {
        let percent = self.percent();
        format!("LOADING Rufous is loading the dataset in memory ({percent} % so far)").into()
    }

    /// In percent; 100 if there is nothing to load.
    pub fn percent(&self) -> u64 {
        let total = u128::from(self.total_bytes());
        (u128::from(self.done_bytes()) * 100)
            .checked_div(total)
            .unwrap_or(100) as u64
    }
}

/// An order of a command to the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOrder {
    /// A snapshot, answered [`SaveAnswer::Saved`] once it is installed.
    Save,
    /// A snapshot, answered as soon as it begins; with `schedule`, also if another is in progress
    /// and this one has to wait for it.
    Background { schedule: bool },
    /// The same as a rewrite of the log; it always waits.
    Rewrite,
    /// An instant of the whole node as files that are kept, for a backup: a cut of the logs if
    /// logging is on and there is a manifest, a snapshot otherwise. Answered with
    /// [`SaveAnswer::Pinned`] once everything up to that instant is synced.
    Pin,
    /// The files of this pin may be deleted; [`SaveAnswer::Unpinned`].
    Unpin(u64),
    /// As `Save`, before the node stops; no new save begins after it.
    BeforeStop,
    /// Likewise, but answered at once where the log has everything.
    BeforeStopUnlessLogged,
    /// Answered with [`SaveAnswer::Saved`] once logging is what the settings say: every change that
    /// a reply shows is found at the next start, or the end of the log is recorded.
    SwitchLog,
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveAnswer {
    Saved,
    Started,
    /// It follows as soon as the one in progress ends.
    Scheduled,
    /// Another one is in progress.
    Busy,
    /// There is no data folder to save to.
    NoFolder,
    Failed(String),
    Pinned(Pinned),
    /// Whether this pin existed.
    Unpinned(bool),
}

/// The files of a pin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    pub id: u64,
    /// The manifest that a start from these files needs.
    pub manifest: Vec<u8>,
    /// The files that it needs, and the length to use of each: logs go on growing.
    pub files: Vec<(String, u64)>,
    pub unix_us: u64,
}

impl Pinned {
    /// The manifest without the seed of the hash tables, with which clients could choose keys that all
    /// fall into one bucket. `rufous backup` reads the seed from the folder.
    pub fn shown_manifest(&self) -> Vec<u8> {
        let without = |manifest| Manifest {
            hash_seed: 0,
            ..manifest
        };
        let manifest = Manifest::decode(&self.manifest).map(without);
        manifest.map_or_else(|_| Vec::new(), |manifest| manifest.encode())
    }
}

/// An order at the coordinator.
#[derive(Debug)]
pub struct Asked {
    pub order: SaveOrder,
    from: WorkerId,
    /// `None`: no command waits for the answer.
    gather: Option<u64>,
}

/// The state of this module in a front.
#[derive(Debug, Default)]
pub struct Persistence {
    /// Updated by the code that saves and loads.
    pub info: PersistenceInfo,
    /// Whether orders are taken. If not, there is no data folder, and every order is answered so.
    pub takes_orders: bool,
    orders: VecDeque<Asked>,
    /// For commands of this worker.
    answers: Vec<(u64, SaveAnswer)>,
    /// The pins that connections of this worker hold.
    pins: Vec<(ConnId, u64)>,
}

impl Session<'_> {
    /// Sends an order to the coordinator; the reply is made of its answer, which may come much
    /// later.
    pub fn order_save(
        &mut self,
        order: SaveOrder,
        finish: impl FnOnce(&mut Local<'_>, SaveAnswer, &mut Reply<'_>) + Send + 'static,
    ) {
        let finish =
            move |front: &mut Local<'_>, answers: Vec<SaveAnswer>, reply: &mut Reply<'_>| {
                if let Some(answer) = answers.into_iter().next() {
                    finish(front, answer, reply);
                }
            };
        let Some(gather) = self.expect(1, None, finish) else {
            return;
        };
        self.local.front.send_order(order, Some(gather));
    }
}

impl Session<'_> {
    /// Has all workers apply the settings, and waits until logging is what they say.
    pub fn switch_log(
        &mut self,
        finish: impl FnOnce(&mut Local<'_>, SaveAnswer, &mut Reply<'_>) + Send + 'static,
    ) {
        let finish =
            move |front: &mut Local<'_>, answers: Vec<SaveAnswer>, reply: &mut Reply<'_>| {
                if let Some(answer) = answers.into_iter().next() {
                    finish(front, answer, reply);
                }
            };
        self.local.take_settings();
        let own = self.local.front.id();
        let workers = self.local.front.kernel.placement().workers();
        let all = (0..workers).map(|w| WorkerId(w as u16));
        // The coordinator applies them with the order, which it answers in their place.
        let others: Vec<_> = all.filter(|w| *w != own && *w != COORDINATOR).collect();
        let Some(gather) = self.expect(others.len() + 1, None, finish) else {
            return;
        };
        self.ask_for(gather, &others, |local, _| local.take_settings());
        self.local
            .front
            .send_order(SaveOrder::SwitchLog, Some(gather));
    }
}

impl Front {
    /// Orders since the last call; only the coordinator gets any. A stopping node has to answer the
    /// remaining ones, or it never stops.
    pub fn take_save_orders(&mut self) -> VecDeque<Asked> {
        std::mem::take(&mut self.persistence.orders)
    }

    /// Answers an order.
    pub fn answer_save(&mut self, asked: Asked, answer: SaveAnswer) {
        let Some(gather) = asked.gather else {
            return;
        };
        if asked.from == self.id() {
            self.persistence.answers.push((gather, answer));
        } else {
            self.out.answer(asked.from, gather, Box::new(answer));
        }
    }

    fn send_order(&mut self, order: SaveOrder, gather: Option<u64>) {
        let from = self.id();
        let asked = Asked {
            order,
            from,
            gather,
        };
        if from == COORDINATOR {
            self.persistence.orders.push_back(asked);
        } else {
            self.out
                .tell(COORDINATOR, move |front: &mut Front, _: Now| {
                    front.persistence.orders.push_back(asked);
                });
        }
    }

    /// When the last snapshot was installed, or the node started.
    pub(crate) fn last_save_time_s(&self) -> u64 {
        match self.persistence.info.node.last_save_time_s {
            0 => self.shared.started_unix_us / 1_000_000,
            seconds => seconds,
        }
    }

    /// A pin belongs to a connection, and is released when that closes.
    pub(crate) fn keep_pin(&mut self, conn: ConnId, id: u64) {
        if self.connection(conn).is_some() {
            self.persistence.pins.push((conn, id));
        } else {
            self.send_order(SaveOrder::Unpin(id), None);
        }
    }

    pub(crate) fn forget_pin(&mut self, id: u64) {
        self.persistence.pins.retain(|(_, pin)| *pin != id);
    }

    /// Releases the pins of a closed connection.
    pub(super) fn release_pins(&mut self, conn: ConnId) {
        let of_it = self
            .persistence
            .pins
            .extract_if(.., |(owner, _)| *owner == conn);
        let ids: Vec<u64> = of_it.map(|(_, id)| id).collect();
        for id in ids {
            self.send_order(SaveOrder::Unpin(id), None);
        }
    }

    /// Delivers answers to commands of this worker.
    pub(super) fn deliver_save_answers(&mut self, fx: &mut Effects<Message>) {
        if !self.persistence.takes_orders {
            for asked in self.take_save_orders() {
                self.answer_save(asked, SaveAnswer::NoFolder);
            }
        }
        for (gather, answer) in std::mem::take(&mut self.persistence.answers) {
            self.on_answered(gather, COORDINATOR, Box::new(answer), fx);
        }
    }
}
