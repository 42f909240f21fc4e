//! Loading at start: worker 0 reads the manifest and plans; every worker loads its partitions, in
//! parallel.
//!
//! 1. A partition is the data of one worker of the earlier run. First the logs of all partitions
//!    are scanned; worker 0 then decides which pieces of commands over several workers are valid
//!    (see [`crate::durable::resolve`]).
//! 2. Each worker loads its partitions. If the number of workers is unchanged, a partition becomes
//!    the worker's shard. Otherwise its keys move to their owners (`moving`), and a snapshot of the
//!    new layout replaces the old files.
//! 3. Every worker starts its log before worker 0 reports that the node serves: no command is
//!    executed anywhere without being logged.
//! 4. Replicas of lattice keys exchange their state. Then counters that were held back (see
//!    `shard::held`) are restored: the loader of a partition sends all workers the counters that it
//!    held back before anything else of the partition, so a worker that has received the others'
//!    state has these too.
//!
//! The machine reads files through `out.disk` and loads the data into the store; requests to the
//! log, saves and replication are [`Call`]s.

mod moving;
mod part;
mod plan;
#[cfg(test)]
mod tests;

use super::commit::Settings;
use super::out::{Call, LogStart, Out};
use super::store::Store;
use crate::durable::keeper::Purpose;
use crate::durable::load::{self, Loader, LogSummary, judge};
use crate::durable::resolve::Verdict;
use crate::durable::{Event, LoadPlan, Note, ids, manifest};
use crate::shard::{Held, Shard};
use part::Part;
use rufous_base::disk::{
    DiskDone, DiskErrorKind, DiskOp, DiskReply, DiskRequest, FileInfo, FileName, Lane,
};
use rufous_base::{Now, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

const READ_MANIFEST: u64 = ids::SAVE | 1 << 40;
const LIST_FILES: u64 = ids::SAVE | 2 << 40;
const REMOVE_FILE: u64 = ids::SAVE | 3 << 40;

/// The stage of loading.
#[derive(Debug, Default)]
enum Stage {
    /// Nothing to load, or loaded.
    #[default]
    Serving,
    /// Waits for worker 0 to plan, or to report that the node serves.
    Waiting,
    /// At worker 0: reads what is on disk.
    Finding {
        manifest: Option<Option<Vec<u8>>>,
        files: Option<Vec<FileInfo>>,
    },
    Loading(Box<Loading>),
    /// Keys move to their owners, or wait to be saved.
    Moving {
        generation: u64,
        /// Workers that may send more keys.
        senders: usize,
    },
    /// Replicas receive the state that the others have kept.
    Exchanging,
    Failed,
}

/// How the machine continues after a call ([`Call::Load`]).
#[derive(Debug)]
pub(super) enum Next {
    /// With the current partition, or the next one.
    On,
    /// By moving the keys of a partition to their owners.
    Move(Box<Shard>),
}

/// A worker's partitions.
#[derive(Debug)]
struct Loading {
    plan: Arc<LoadPlan>,
    parts: Vec<Part>,
    /// The index of the partition that is being read.
    at: usize,
    verdicts: Option<Arc<Vec<Verdict>>>,
    told_bytes: u64,
}

/// Reports of the other workers to worker 0.
#[derive(Debug, Default)]
struct Heard {
    summaries: BTreeMap<u16, LogSummary>,
    /// To be sent once the manifest is written.
    resolved: Option<(Arc<Vec<Verdict>>, u64)>,
    loaded: usize,
    exchanged: usize,
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Boot {
    hash_seed: u64,
    settings: Settings,
    stage: Stage,
    heard: Heard,
    /// This worker is ready except for its log.
    ready: bool,
    /// Counters of all partitions that are held back, by the worker that loaded them.
    counts: Vec<(WorkerId, Arc<Held>)>,
    /// Senders that finished before this worker expected any keys.
    early_ends: usize,
}

impl Boot {
    pub(super) fn new(hash_seed: u64) -> Self {
        Self {
            hash_seed,
            settings: Settings::default(),
            stage: Stage::Serving,
            heard: Heard::default(),
            ready: false,
            counts: Vec::new(),
            early_ends: 0,
        }
    }

    /// Whether requests may be executed.
    #[inline]
    pub(super) fn is_serving(&self) -> bool {
        matches!(self.stage, Stage::Serving)
    }

    /// Whether the next reply of the disk is for [`Boot::on_found`].
    pub(super) fn is_finding(&self) -> bool {
        matches!(self.stage, Stage::Finding { .. })
    }

    pub(super) fn is_exchanging(&self) -> bool {
        matches!(self.stage, Stage::Exchanging)
    }

    /// Bytes that this worker holds back until the end of the start.
    pub(super) fn held_bytes(&self, own: WorkerId) -> usize {
        let own = self.counts.iter().filter(|(of, _)| *of == own);
        own.map(|(_, held)| held.bytes()).sum()
    }

    /// Whether there is a log at first was settled when the start began.
    pub(super) fn configure(&mut self, settings: &Settings) {
        let log = self.settings.log;
        self.settings = Settings {
            log,
            ..settings.clone()
        };
    }

    pub(super) fn begin(&mut self, settings: &Settings, own: WorkerId, out: &mut Out) {
        self.settings = settings.clone();
        if own.0 != 0 {
            self.stage = Stage::Waiting;
            return;
        }
        self.stage = Stage::Finding {
            manifest: None,
            files: None,
        };
        let read = DiskOp::Read {
            file: FileName::from(crate::durable::file::MANIFEST),
            at: 0,
            bytes: manifest::MOST_BYTES + 1,
        };
        for (id, op) in [(READ_MANIFEST, read), (LIST_FILES, DiskOp::List)] {
            let lane = Lane::Bulk;
            out.disk.push(DiskRequest { id, lane, op });
        }
    }

    /// A reply of the disk that worker 0 needs before it can plan.
    pub(super) fn on_found(&mut self, done: DiskDone, store: &mut Store<'_>, out: &mut Out) {
        let Stage::Finding { manifest, files } = &mut self.stage else {
            return;
        };
        match done.result {
            Ok(DiskReply::Read(bytes)) => *manifest = Some(Some(bytes)),
            Ok(DiskReply::Files(found)) => *files = Some(found),
            Err(error) if done.id == READ_MANIFEST && error.kind == DiskErrorKind::NotFound => {
                *manifest = Some(None);
            }
            Ok(_) => {}
            Err(error) => {
                let what = match done.id {
                    READ_MANIFEST => crate::durable::file::MANIFEST,
                    _ => "the data folder",
                };
                let text = format!("cannot read {what}: {error}");
                return cannot_load(&text, store, out);
            }
        }
        if let (Some(manifest), Some(files)) = (manifest.take_if(|_| files.is_some()), files) {
            match plan::plan(manifest.as_deref(), files, store.workers()) {
                Ok(plan) => {
                    let plan = Arc::new(plan);
                    out.tell_all(store, || Note::Plan(Arc::clone(&plan)));
                }
                Err(damage) => cannot_load(&explain(&damage), store, out),
            }
        }
    }

    pub(super) fn on_plan(&mut self, plan: Arc<LoadPlan>, store: &mut Store<'_>, out: &mut Out) {
        let workers = store.workers();
        let plans = plan.folder.plans.iter();
        let mine = plans.filter(|p| usize::from(p.partition) % workers == store.id.index());
        // The number of writers is the number of partitions.
        let writers = plan.folder.plans.len();
        store.shard.hold_counts(writers);
        let staging = || Shard::of_files(self.hash_seed, writers);
        let parts: Vec<_> = mine
            .map(|p| Part {
                loader: Loader::new(p.clone()),
                staging: plan.moves.then(staging),
            })
            .collect();
        let bytes = parts.iter().map(|p| p.loader.progress().1).sum();
        out.events.push(Event::LoadPlanned { bytes });
        self.stage = Stage::Loading(Box::new(Loading {
            plan,
            parts,
            at: 0,
            verdicts: None,
            told_bytes: 0,
        }));
        out.call(Call::Load(Next::On));
    }

    /// A reply of the disk to a loader.
    pub(super) fn on_disk(
        &mut self,
        now: Now,
        done: DiskDone,
        store: &mut Store<'_>,
        out: &mut Out,
    ) {
        let Stage::Loading(loading) = &mut self.stage else {
            return;
        };
        let Some(part) = loading.parts.get_mut(loading.at) else {
            return;
        };
        let shard = part.staging.as_deref_mut().unwrap_or(store.shard);
        part.loader.on_done(now, done, shard);
        let done_bytes = loading.parts.iter().map(|p| p.loader.progress().0).sum();
        let bytes = u64::saturating_sub(done_bytes, loading.told_bytes);
        loading.told_bytes += bytes;
        out.events.push(Event::LoadProgress { bytes });
        self.load(now, store, out);
    }

    pub(super) fn on_next(&mut self, now: Now, next: Next, store: &mut Store<'_>, out: &mut Out) {
        match next {
            Next::On => self.load(now, store, out),
            Next::Move(staging) => {
                moving::move_keys(staging, store.placement, out);
                out.call(Call::Load(Next::On));
            }
        }
    }

    /// Continues until it needs the disk, or has notes that must arrive first.
    fn load(&mut self, now: Now, store: &mut Store<'_>, out: &mut Out) {
        loop {
            let Stage::Loading(loading) = &mut self.stage else {
                return;
            };
            let Some(part) = loading.parts.get_mut(loading.at) else {
                if loading.verdicts.is_some() {
                    self.on_all_loaded(store, out);
                } else if loading.plan.folder.plans.is_empty() && store.id.0 == 0 {
                    self.resolve(now, store, out);
                }
                return;
            };
            let partition = part.loader.plan().partition;
            part.loader.poll(&mut out.disk);
            match part.loader.stage() {
                load::Stage::Failed(damage) => return cannot_load(&explain(&damage), store, out),
                load::Stage::Scanned if loading.verdicts.is_none() => {
                    let summary = part.loader.summary().clone();
                    loading.at += 1;
                    out.tell(WorkerId(0), Note::Scanned { partition, summary });
                }
                load::Stage::Scanned => {
                    let verdicts = loading.verdicts.as_ref();
                    let verdict = verdicts.and_then(|v| v.get(usize::from(partition)));
                    part.loader.resolve(verdict.cloned().unwrap_or_default());
                }
                load::Stage::Finished => {
                    loading.at += 1;
                    return part.finish(store, out);
                }
                load::Stage::Scanning | load::Stage::Applying => return,
            }
        }
    }

    /// At worker 0: a partition's logs have been scanned.
    pub(super) fn on_scanned(
        &mut self,
        now: Now,
        (partition, summary): (u16, LogSummary),
        store: &mut Store<'_>,
        out: &mut Out,
    ) {
        self.heard.summaries.insert(partition, summary);
        let Stage::Loading(loading) = &self.stage else {
            return;
        };
        if self.heard.summaries.len() == loading.plan.folder.plans.len() {
            self.resolve(now, store, out);
        }
    }

    fn resolve(&mut self, now: Now, store: &mut Store<'_>, out: &mut Out) {
        let Stage::Loading(loading) = &self.stage else {
            return;
        };
        let plan = Arc::clone(&loading.plan);
        let summaries = std::mem::take(&mut self.heard.summaries);
        let all: Vec<_> = summaries.values().collect();
        let verdicts = match judge(&plan.folder.plans, &all) {
            Ok(verdicts) => Arc::new(verdicts),
            Err(damage) => return cannot_load(&explain(&damage), store, out),
        };
        // Only once it is certain that all files in use can be loaded.
        for file in plan.folder.strays.iter().cloned() {
            out.disk.push(DiskRequest {
                id: REMOVE_FILE,
                lane: Lane::Bulk,
                op: DiskOp::Remove { file },
            });
        }
        let stored = plan.folder.manifest.as_ref();
        let runs = summaries.values().map(|s| s.run);
        let run = runs.max().unwrap_or(0).max(stored.map_or(0, |m| m.run)) + 1;
        let mut keeper = plan::keeper(&plan, now, run, self.hash_seed, store.workers());
        let schedule = self.settings.schedule.clone();
        keeper.found(schedule, plan.folder.kept.iter().copied());
        if self.settings.log {
            keeper.log_begins(plan.generation);
        }
        if let Some(generation) = plan.rewrite() {
            keeper.begin(generation, Purpose::Rewrite, now);
        }
        self.heard.resolved = Some((verdicts, run));
        // The next start must find what is written from now on; or, without a log, must not take
        // the existing files for the complete data.
        let until = (!self.settings.log).then_some(plan.generation);
        let is_right = plan.moves || stored.is_some_and(|m| m.logs_until == until);
        if !is_right {
            keeper.install_logs_until(until, &mut out.disk);
        }
        out.call(Call::Keep(Box::new(keeper)));
        if is_right {
            self.tell_resolved(store, out);
        }
    }

    fn tell_resolved(&mut self, store: &Store<'_>, out: &mut Out) {
        if let Some((verdicts, run)) = self.heard.resolved.take() {
            out.tell_all(store, || Note::Resolved {
                verdicts: Arc::clone(&verdicts),
                run,
            });
        }
    }

    pub(super) fn on_resolved(&mut self, verdicts: Arc<Vec<Verdict>>, out: &mut Out) {
        if let Stage::Loading(loading) = &mut self.stage {
            loading.verdicts = Some(verdicts);
            loading.at = 0;
            out.call(Call::Load(Next::On));
        }
    }

    /// All partitions of this worker are loaded.
    fn on_all_loaded(&mut self, store: &mut Store<'_>, out: &mut Out) {
        let stage = std::mem::replace(&mut self.stage, Stage::Waiting);
        let Stage::Loading(loading) = stage else {
            return;
        };
        let plan = &loading.plan;
        if let Some(generation) = plan.rewrite() {
            self.stage = Stage::Moving {
                generation,
                senders: store.workers(),
            };
            out.tell_all(store, || Note::NoMoreKeys);
            for _ in 0..std::mem::take(&mut self.early_ends) {
                self.on_no_more_keys(store, out);
            }
            return;
        }
        let loaded = loading.parts.first().and_then(|p| p.loader.loaded());
        let last = loaded.and_then(|l| l.last.as_ref());
        let (index, salt) = match last {
            Some(last) if last.generation == plan.generation => (last.index + 1, Some(last.salt)),
            _ => (0, None),
        };
        self.ready = true;
        out.call(Call::StartLog(LogStart {
            generation: plan.generation,
            index,
            seq: loaded.map_or(0, |l| l.next_seq),
            salt,
        }));
    }

    /// This worker's log accepts frames, or there is none.
    pub(super) fn on_log_ready(&mut self, out: &mut Out) {
        if std::mem::take(&mut self.ready) {
            out.tell(WorkerId(0), Note::Loaded);
        }
    }

    /// At worker 0: a worker is ready.
    pub(super) fn on_loaded(&mut self, store: &Store<'_>, out: &mut Out) {
        self.heard.loaded += 1;
        if self.heard.loaded == store.workers() {
            out.call(Call::Exchange);
        }
    }

    /// At worker 0: the manifest that serving needs is on disk, or cannot be.
    pub(super) fn on_first_manifest(
        &mut self,
        written: Result<Option<u64>, Arc<str>>,
        store: &Store<'_>,
        out: &mut Out,
    ) {
        match written {
            Ok(_) if self.heard.resolved.is_some() => self.tell_resolved(store, out),
            Ok(_) => out.call(Call::Exchange),
            Err(text) => cannot_load(&text, store, out),
        }
    }

    /// All workers have loaded their data: replicas exchange their state.
    pub(super) fn on_exchange(&mut self) {
        self.stage = Stage::Exchanging;
    }

    /// At worker 0: a worker has received the state of all others.
    pub(super) fn on_exchanged(&mut self, store: &Store<'_>, out: &mut Out) {
        self.heard.exchanged += 1;
        if self.heard.exchanged == store.workers() {
            out.tell_all(store, || Note::Serve);
        }
    }

    pub(super) fn on_serve(&mut self, out: &mut Out) {
        self.stage = Stage::Serving;
        out.events.push(Event::Serving);
    }

    pub(super) fn on_unloadable(&mut self, text: Arc<str>, out: &mut Out) {
        self.stage = Stage::Failed;
        out.events.push(Event::Unloadable(text));
    }
}

/// The node cannot start.
fn cannot_load(text: &str, store: &Store<'_>, out: &mut Out) {
    let text = Arc::<str>::from(text);
    out.tell_all(store, || Note::Unloadable(Arc::clone(&text)));
}

fn explain(damage: &load::Damage) -> String {
    format!("{damage}; {}", damage.advice())
}
