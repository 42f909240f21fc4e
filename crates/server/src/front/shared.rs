//! The state that all workers of a node share, and the counters of each.

use rufous_base::Output;
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::evict::Ledger;
use rufous_resp::request::Limits;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::connection::Connection;
use super::figures::Board;
use super::guesses::Guesses;
use super::persistence::Loading;
use super::process::Process;
use crate::cluster::Cluster;
use crate::config::Config;

/// Fixed for the life of a node, except for the atomics. Nothing here is written on the path of a
/// request.
#[derive(Debug)]
pub struct Shared {
    pub workers: usize,
    pub hash_seed: u64,
    /// Of the node's files: the same after a restart. Without files another one each time.
    pub files: u64,
    /// Forty hexadecimal digits that differ at every start.
    pub run_id: String,
    pub started_unix_us: u64,
    /// The actual listening ports.
    pub port: u16,
    /// The node's cluster, if it is in one.
    pub cluster: Option<Arc<Cluster>>,
    /// Clients in `MONITOR`, over all workers.
    monitors: AtomicUsize,
    pub process: Process,
    /// Counters of the workers, for metrics and health.
    pub board: Board,
    pub loading: Loading,
    /// Bytes that each worker's data takes of `maxmemory`.
    pub ledger: Arc<Ledger>,
    /// Bytes of data by worker, and their peak.
    memory: Vec<AtomicUsize>,
    memory_peak: AtomicUsize,
    /// The settings in force; `None` until the first change. Workers keep their own reference, so
    /// only `CONFIG SET` accesses this.
    settings: Mutex<Option<Arc<Config>>>,
    /// Addresses that have sent wrong passwords.
    guesses: Mutex<Guesses>,
    /// Why the node could not start.
    start_error: OnceLock<String>,
    /// Why the stopping node could not keep all data.
    loss: OnceLock<String>,
    /// Workers of the stopping node that wait for no other node any more.
    parted: AtomicUsize,
    /// Workers that have finished before the node ends.
    finished: AtomicUsize,
    /// `SHUTDOWN NOSAVE`: the node stops without a last snapshot.
    no_last_save: AtomicBool,
}

impl Shared {
    pub fn new(
        workers: usize,
        hash_seed: u64,
        run_id: String,
        started_unix_us: u64,
        port: u16,
    ) -> Self {
        Self {
            workers,
            hash_seed,
            files: hash_seed,
            run_id,
            started_unix_us,
            port,
            cluster: None,
            monitors: AtomicUsize::new(0),
            process: Process::default(),
            board: Board::new(workers),
            loading: Loading::default(),
            ledger: Arc::new(Ledger::new(workers)),
            memory: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            memory_peak: AtomicUsize::new(0),
            settings: Mutex::new(None),
            guesses: Mutex::default(),
            start_error: OnceLock::new(),
            loss: OnceLock::new(),
            parted: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            no_last_save: AtomicBool::new(false),
        }
    }

    #[inline]
    pub fn has_monitors(&self) -> bool {
        self.monitors.load(Ordering::Relaxed) != 0
    }

    /// Changes the settings, all or nothing. Two changes at different workers are serialised; each
    /// worker then applies the result of [`Shared::settings`], so all end up with the same.
    pub fn change_settings<E>(
        &self,
        current: &Arc<Config>,
        change: impl FnOnce(&mut Config) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Config::clone(settings.as_ref().unwrap_or(current));
        change(&mut changed)?;
        *settings = Some(Arc::new(changed));
        Ok(())
    }

    /// The settings in force, if they were ever changed.
    pub fn settings(&self) -> Option<Arc<Config>> {
        self.settings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Taken where a password is checked, and nowhere else.
    pub(crate) fn guesses(&self) -> MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the node stop without a last snapshot.
    pub fn forgo_last_save(&self) {
        self.no_last_save.store(true, Ordering::Relaxed);
    }

    pub fn forgoes_last_save(&self) -> bool {
        self.no_last_save.load(Ordering::Relaxed)
    }

    /// The node cannot start. True for the first call.
    pub fn refuse_start(&self, why: &str) -> bool {
        self.start_error.set(why.to_owned()).is_ok()
    }

    pub fn start_error(&self) -> Option<&str> {
        let cluster = self.cluster.as_ref();
        let of_cluster = || cluster.and_then(|cluster| cluster.may_not.get());
        self.start_error
            .get()
            .or_else(of_cluster)
            .map(String::as_str)
    }

    /// The stopping node cannot keep all data.
    pub fn lose_data(&self, why: &str) {
        // The first reason is the cause of the others.
        let _ = self.loss.set(why.to_owned());
    }

    /// A worker of the stopping node waits for no other node any more.
    pub(crate) fn part_from_peers(&self) {
        self.parted.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether that holds for all workers.
    pub(crate) fn all_parted(&self) -> bool {
        self.parted.load(Ordering::Relaxed) >= self.memory.len()
    }

    pub(super) fn finish_worker(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Why the node, which has ended, may have lost data that it is to keep.
    pub fn loss(&self) -> Option<&str> {
        let cut_short = self.finished.load(Ordering::Relaxed) < self.memory.len();
        let loss = self.loss.get().map(String::as_str);
        loss.or_else(|| cut_short.then_some("the disk did not finish in time"))
    }

    /// Records the memory that a worker's data takes.
    pub fn memory_changed(&self, worker: usize, bytes: usize) {
        self.memory[worker].store(bytes, Ordering::Relaxed);
        let total = self.memory.iter().map(|m| m.load(Ordering::Relaxed)).sum();
        self.memory_peak.fetch_max(total, Ordering::Relaxed);
    }

    /// Publishes the memory that the worker's data takes to the other workers.
    pub(super) fn publish_memory(&self, kernel: &Worker<DataCommands>) {
        self.memory_changed(kernel.id().index(), kernel.memory().total());
    }

    /// The peak of the data's memory, sampled ten times a second.
    pub fn memory_peak(&self) -> usize {
        self.memory_peak.load(Ordering::Relaxed)
    }

    pub fn monitors_changed(&self, by: isize) {
        if by >= 0 {
            self.monitors
                .fetch_add(by.unsigned_abs(), Ordering::Relaxed);
        } else {
            self.monitors
                .fetch_sub(by.unsigned_abs(), Ordering::Relaxed);
        }
    }
}

/// The reply to a client from outside while the node has no password.
pub const PROTECTED_MODE: &str = "DENIED Rufous is running in protected mode because no password is set, so it accepts connections from this machine only. Set a password (requirepass), bind to addresses that only trusted clients reach and set protected-mode to no, or connect from this machine.";

/// Limits on requests, before and after authentication.
#[derive(Clone, Debug)]
pub struct RequestLimits {
    known: Limits,
    unknown: Limits,
}

impl RequestLimits {
    pub fn new(config: &Config) -> Self {
        let known = Limits {
            max_bulk: config.proto_max_bulk_len,
            ..Limits::default()
        };
        Self {
            known,
            unknown: Limits::unauthenticated(),
        }
    }

    pub fn of(&self, connection: &Connection) -> &Limits {
        if connection.authenticated {
            &self.known
        } else {
            &self.unknown
        }
    }
}

/// Counters of one worker, apart from those of commands.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub connections: u64,
    pub rejected_connections: u64,
    pub error_replies: u64,
    /// Error replies by prefix (`ERR`, `WRONGTYPE`, …).
    pub errors: BTreeMap<String, u64>,
    pub auth_failures: u64,
    /// Passwords that waited before they were checked, and that were not checked, because their
    /// address had sent many wrong ones.
    pub auth_delayed: u64,
    pub auth_refused: u64,
    /// Messages of other nodes that no handler takes.
    pub peer_messages_unused: u64,
    /// Transactions begun with `BEGIN`.
    pub transactions_committed: u64,
    pub transactions_rolled_back: u64,
    /// Sessions that go on here, and those of them that had to wait.
    pub sessions_resumed: u64,
    pub sessions_waited: u64,
    /// Sessions that do not, as something that they have seen is not here.
    pub sessions_behind: u64,
}

/// Limit on the prefixes that are counted: scripts and echoes could otherwise make up more.
const MAX_ERROR_PREFIXES: usize = 128;

impl Counters {
    /// A transaction that `BEGIN` has begun was committed, or not.
    pub(crate) fn on_transaction_ended(&mut self, is_committed: bool) {
        if is_committed {
            self.transactions_committed += 1;
        } else {
            self.transactions_rolled_back += 1;
        }
    }

    /// Counts the reply between two marks of an output if it is an error.
    #[inline]
    pub fn note_reply(&mut self, out: &Output, start: (usize, usize), end: (usize, usize)) {
        if out.is_error(start) {
            self.note_error(&out.bytes[start.0..end.0]);
        }
    }

    #[cold]
    fn note_error(&mut self, reply: &[u8]) {
        self.error_replies += 1;
        let text = reply.get(1..).unwrap_or_default();
        let end = text.iter().position(|b| matches!(b, b' ' | b'\r'));
        let end = end.unwrap_or(text.len()).min(63);
        let prefix = String::from_utf8_lossy(&text[..end]);
        if let Some(count) = self.errors.get_mut(prefix.as_ref()) {
            *count += 1;
        } else if self.errors.len() < MAX_ERROR_PREFIXES {
            self.errors.insert(prefix.into_owned(), 1);
        }
    }

    pub fn merge(&mut self, other: &Counters) {
        self.connections += other.connections;
        self.rejected_connections += other.rejected_connections;
        self.error_replies += other.error_replies;
        self.auth_failures += other.auth_failures;
        self.auth_delayed += other.auth_delayed;
        self.auth_refused += other.auth_refused;
        self.peer_messages_unused += other.peer_messages_unused;
        self.transactions_committed += other.transactions_committed;
        self.transactions_rolled_back += other.transactions_rolled_back;
        self.sessions_resumed += other.sessions_resumed;
        self.sessions_waited += other.sessions_waited;
        self.sessions_behind += other.sessions_behind;
        for (prefix, count) in &other.errors {
            *self.errors.entry(prefix.clone()).or_default() += count;
        }
    }
}
