//! What commands, metrics and health know of durability, and how commands ask
//! for snapshots: the border between them and what does the work.
//!
//! Each worker keeps its own [`PersistenceInfo`] up to date; `INFO` and metrics
//! merge them. Orders ([`SaveOrder`]) of commands at any worker travel to the
//! first one, which takes them with [`Front::take_save_orders`] and answers
//! each once, then or much later, with [`Front::answer_save`].

use super::gather::Answer;
use super::local::Local;
use super::session::Session;
use super::{Front, Message};
use rufous_base::{ConnId, Effects, Now, WorkerId};
use rufous_command::Reply;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The worker that coordinates snapshots.
pub const COORDINATOR: WorkerId = WorkerId(0);

/// What one worker, or all of them, can tell of durability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistenceInfo {
    /// Whether changes are logged.
    pub aof_enabled: bool,
    /// Why the last write or sync of the log failed, until one succeeds.
    pub aof_last_error: Option<String>,
    /// Bytes of all logs that a restart would read.
    pub aof_current_size: u64,
    /// That size right after the last snapshot, or at start.
    pub aof_base_size: u64,
    /// Bytes that are not on their way to the disk yet.
    pub aof_pending_bytes: u64,
    /// Bytes written that no sync has covered yet.
    pub aof_unsynced_bytes: u64,
    /// Frames and bytes ever logged.
    pub frames: u64,
    pub logged_bytes: u64,
    /// Writes and syncs of the log that succeeded, and failures of either.
    pub writes: u64,
    pub syncs: u64,
    pub errors: u64,
    /// How long the last sync took, and all of them together.
    pub last_sync_us: u64,
    pub sync_us: u64,
    /// Changes since the last snapshot's cut.
    pub changes_since_last_save: u64,
    /// Of the snapshot under way.
    pub snapshot_keys_done: u64,
    pub snapshot_keys_total: u64,
    pub snapshot_bytes: u64,
    /// What it keeps in memory besides the data.
    pub snapshot_kept: u64,
    /// Keys that had to be captured ahead of a change.
    pub snapshot_keys_ahead: u64,
    /// Of the last start, in this worker's part.
    pub loaded_keys: u64,
    pub loaded_frames: u64,
    pub loaded_bytes: u64,
    pub load_us: u64,
    /// Bytes of a torn tail that were cut at the last start.
    pub cut_bytes: u64,
    /// What the coordinator alone knows; all zeros elsewhere.
    pub node: SaveInfo,
}

/// Snapshots of the whole node, as its coordinator knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveInfo {
    /// The generation that the manifest names.
    pub generation: u64,
    /// Whether a snapshot is under way, and when it began (`Now::unix_us`).
    pub in_progress: bool,
    pub began_unix_us: u64,
    /// It was asked for with BGREWRITEAOF, or by the log's growth.
    pub is_rewrite: bool,
    /// One is to follow as soon as that ends.
    pub scheduled: bool,
    /// Seconds since 1970; when the last snapshot was installed, or the start.
    pub last_save_time_s: u64,
    pub last_save_failed: bool,
    pub last_save_error: Option<String>,
    /// Of the last one, in seconds.
    pub last_save_took_s: Option<u64>,
    /// The same two of the last one asked for as a rewrite.
    pub last_rewrite_failed: bool,
    pub last_rewrite_took_s: Option<u64>,
    /// Installed since the start.
    pub saves: u64,
    pub rewrites: u64,
    pub failures: u64,
    /// Backups that hold files.
    pub pins: u64,
    /// Earlier saves that one can go back to.
    pub kept: u64,
}

impl PersistenceInfo {
    /// Adds what another worker tells.
    pub fn merge(&mut self, other: &PersistenceInfo) {
        self.aof_enabled |= other.aof_enabled;
        if self.aof_last_error.is_none() {
            self.aof_last_error.clone_from(&other.aof_last_error);
        }
        let sums: [(&mut u64, u64); 20] = [
            (&mut self.aof_current_size, other.aof_current_size),
            (&mut self.aof_base_size, other.aof_base_size),
            (&mut self.aof_pending_bytes, other.aof_pending_bytes),
            (&mut self.aof_unsynced_bytes, other.aof_unsynced_bytes),
            (&mut self.frames, other.frames),
            (&mut self.logged_bytes, other.logged_bytes),
            (&mut self.writes, other.writes),
            (&mut self.syncs, other.syncs),
            (&mut self.errors, other.errors),
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

/// Loading at start, as everybody may see it: set before the first worker
/// takes a turn where there is a data folder, counted down by each worker.
#[derive(Debug, Default)]
pub struct Loading {
    /// Workers that are not done.
    workers: AtomicUsize,
    total_bytes: AtomicU64,
    done_bytes: AtomicU64,
}

impl Loading {
    /// The node starts with data to load: nobody is served before every worker
    /// has called [`Loading::finish_worker`].
    pub fn begin(&self, workers: usize) {
        self.workers.store(workers, Ordering::Release);
    }

    /// This worker has so much to read.
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

    /// Of 100; all of nothing is 100.
    pub fn percent(&self) -> u64 {
        let total = u128::from(self.total_bytes());
        (u128::from(self.done_bytes()) * 100)
            .checked_div(total)
            .unwrap_or(100) as u64
    }
}

/// What a command wants of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOrder {
    /// A snapshot, answered [`SaveAnswer::Saved`] once it is installed.
    Save,
    /// A snapshot, answered as soon as it begins; with `schedule`, also where
    /// another is under way and this one has to wait for it.
    Background { schedule: bool },
    /// The same in the name of the log; it waits by itself.
    Rewrite,
    /// An instant of the whole node as files that stay, for a backup: a cut of
    /// the logs where they are on and a manifest stands, a snapshot otherwise.
    /// Answered [`SaveAnswer::Pinned`] once everything that belongs to it is synced.
    Pin,
    /// The files of that pin may go; [`SaveAnswer::Unpinned`].
    Unpin(u64),
    /// Before the node stops; as `Save`, but nothing new begins after it.
    BeforeStop,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveAnswer {
    Saved,
    Started,
    /// Follows as soon as the one under way ends.
    Scheduled,
    /// Another is under way.
    Busy,
    /// There is no data folder to save to.
    NoFolder,
    Failed(String),
    Pinned(Pinned),
    /// Whether there was such a pin.
    Unpinned(bool),
}

/// The files of an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    pub id: u64,
    /// The bytes of a manifest that a start from these files needs.
    pub manifest: Vec<u8>,
    /// The files that it needs, and how much of each: logs go on growing.
    pub files: Vec<(String, u64)>,
    pub unix_us: u64,
}

/// An order at the coordinator.
#[derive(Debug)]
pub struct Asked {
    pub order: SaveOrder,
    from: WorkerId,
    /// `None`: nobody waits for the answer.
    gather: Option<u64>,
}

/// What a front keeps for this module.
#[derive(Debug, Default)]
pub struct Persistence {
    /// Kept up to date by what does the work.
    pub info: PersistenceInfo,
    /// Somebody takes orders. Without it there is no data folder, and every
    /// order is answered so.
    pub takes_orders: bool,
    orders: VecDeque<Asked>,
    /// For commands of this worker.
    answers: Vec<(u64, SaveAnswer)>,
    /// Which connection of this worker's keeps which pins.
    pins: Vec<(ConnId, u64)>,
}

impl Session<'_> {
    /// Has the coordinator do something; the reply is made of its answer,
    /// which may come much later.
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

impl Front {
    /// Orders that came since the last call; only the coordinator gets any.
    /// A node that stops answers those that are left, or it never stops.
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
            let answer: Answer = Box::new(answer);
            self.outgoing
                .push((asked.from, Message::Answered { gather, answer }));
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
            self.tell(COORDINATOR, move |front: &mut Front, _: Now| {
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

    /// A pin belongs to a connection, and goes with it.
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

    /// Lets go of what a connection kept that is gone.
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

    /// Takes answers to commands of this worker to them.
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
