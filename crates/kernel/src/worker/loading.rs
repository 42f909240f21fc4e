//! Loading at start: worker 0 reads the manifest and plans; every worker loads
//! its partitions, side by side.
//!
//! 1. A partition is what one worker of the earlier run had. First the logs of
//!    all partitions are looked through; worker 0 then decides what counts of
//!    commands over several workers (see [`crate::durable::resolve`]).
//! 2. Each worker loads its partitions. Where there are as many workers as
//!    before, a partition is the worker's shard. Else its keys go to their
//!    owners, and a snapshot of the new layout replaces the old files.
//! 3. Every worker starts its log before worker 0 says that the node serves:
//!    no command runs anywhere without being logged.

use super::Worker;
use super::moving::highest_generation;
use crate::durable::keeper::Keeper;
use crate::durable::load::{self, Folder, Loader, LogSummary, judge};
use crate::durable::resolve::Verdict;
use crate::durable::{Event, LoadPlan, Manifest, Note, ids, manifest};
use crate::program::Program;
use crate::shard::Shard;
use rufous_base::disk::{
    DiskDone, DiskErrorKind, DiskOp, DiskReply, DiskRequest, FileInfo, FileName, Lane,
};
use rufous_base::{Now, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

const READ_MANIFEST: u64 = ids::SAVE | 1 << 40;
const LIST_FILES: u64 = ids::SAVE | 2 << 40;

/// How far loading has come.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// Nothing to load, or loaded.
    #[default]
    Serving,
    /// For worker 0 to plan, or to say that the node serves.
    Waiting,
    /// At worker 0: what it finds.
    Finding {
        manifest: Option<Option<Vec<u8>>>,
        files: Option<Vec<FileInfo>>,
    },
    Loading(Box<Loading>),
    /// Keys go to their owners, or wait to be saved.
    Moving {
        generation: u64,
        /// Workers that may send more.
        senders: usize,
    },
    /// Replicas hear what the others have kept.
    Exchanging {
        /// Worker 0 knows that this one has.
        told: bool,
    },
    Failed,
}

/// A worker's partitions.
#[derive(Debug)]
pub(super) struct Loading {
    plan: Arc<LoadPlan>,
    parts: Vec<Part>,
    /// Which of them reads.
    at: usize,
    verdicts: Option<Arc<Vec<Verdict>>>,
    told_bytes: u64,
}

#[derive(Debug)]
struct Part {
    loader: Loader,
    /// Where it goes, unless into the worker's own shard.
    staging: Option<Box<Shard>>,
}

/// What worker 0 has heard of the others.
#[derive(Debug, Default)]
pub(super) struct Heard {
    summaries: BTreeMap<u16, LogSummary>,
    /// To be told once the manifest is right.
    resolved: Option<(Arc<Vec<Verdict>>, u64)>,
    loaded: usize,
    pub(super) exchanged: usize,
}

impl<P: Program> Worker<P> {
    /// Whether requests may run.
    pub fn is_serving(&self) -> bool {
        matches!(self.durable.stage, Stage::Serving)
    }

    pub(super) fn begin_loading(&mut self) {
        if self.id.0 != 0 {
            self.durable.stage = Stage::Waiting;
            return;
        }
        self.durable.stage = Stage::Finding {
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
            self.durable.requests.push(DiskRequest { id, lane, op });
        }
    }

    /// An answer that worker 0 needs before it can plan.
    pub(super) fn on_found(&mut self, now: Now, done: DiskDone) {
        let Stage::Finding { manifest, files } = &mut self.durable.stage else {
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
                return self.cannot_load(now, &text);
            }
        }
        if let (Some(manifest), Some(files)) = (manifest.take_if(|_| files.is_some()), files) {
            let files = std::mem::take(files);
            self.plan(now, manifest, files);
        }
    }

    fn plan(&mut self, now: Now, manifest: Option<Vec<u8>>, files: Vec<FileInfo>) {
        let highest = highest_generation(&files);
        let folder = match Folder::new(&files, manifest.as_deref()) {
            Ok(folder) => folder,
            Err(damage) => return self.cannot_load(now, &explain(&damage)),
        };
        let workers = self.placement.workers();
        let segments = folder.plans.iter().flat_map(|p| &p.segments);
        let generation = segments.map(|s| s.generation).max().unwrap_or(1);
        let moves = folder
            .manifest
            .as_ref()
            .is_some_and(|m| usize::from(m.workers) != workers);
        let logs_from = folder.manifest.as_ref().map_or(0, |m| m.logs_from);
        let plan = Arc::new(LoadPlan {
            generation: generation.max(logs_from),
            highest: highest.max(generation).max(logs_from),
            moves,
            folder,
        });
        self.tell_all(now, || Note::Plan(Arc::clone(&plan)));
    }

    pub(super) fn on_plan(&mut self, now: Now, plan: Arc<LoadPlan>) {
        if let Some(seed) = plan.hash_seed() {
            self.durable.file_seed = seed;
        }
        let workers = self.placement.workers();
        let plans = plan.folder.plans.iter();
        let mine = plans.filter(|p| usize::from(p.partition) % workers == self.id.index());
        let seed = self.durable.hash_seed;
        // As many as there are partitions wrote them.
        let writers = plan.folder.plans.len();
        self.shard.hold_counts(writers);
        let parts: Vec<_> = mine
            .map(|p| Part {
                loader: Loader::new(p.clone()),
                staging: plan.moves.then(|| Shard::of_files(seed, writers)),
            })
            .collect();
        let bytes = parts.iter().map(|p| p.loader.progress().1).sum();
        self.durable.events.push(Event::LoadPlanned { bytes });
        self.durable.stage = Stage::Loading(Box::new(Loading {
            plan,
            parts,
            at: 0,
            verdicts: None,
            told_bytes: 0,
        }));
        self.load_on(now);
    }

    /// The disk has answered a loader.
    pub(super) fn on_load_disk(&mut self, now: Now, done: DiskDone) {
        let Stage::Loading(loading) = &mut self.durable.stage else {
            return;
        };
        let Some(part) = loading.parts.get_mut(loading.at) else {
            return;
        };
        let shard = part.staging.as_deref_mut().unwrap_or(&mut self.shard);
        part.loader.on_done(now, done, shard);
        let done_bytes = loading.parts.iter().map(|p| p.loader.progress().0).sum();
        let bytes = u64::saturating_sub(done_bytes, loading.told_bytes);
        loading.told_bytes += bytes;
        self.durable.events.push(Event::LoadProgress { bytes });
        self.load_on(now);
    }

    /// Goes on as far as it can without the disk or the others.
    fn load_on(&mut self, now: Now) {
        loop {
            let Stage::Loading(loading) = &mut self.durable.stage else {
                return;
            };
            let Some(part) = loading.parts.get_mut(loading.at) else {
                if loading.verdicts.is_some() {
                    self.loaded(now);
                } else if loading.plan.folder.plans.is_empty() && self.id.0 == 0 {
                    self.resolve(now);
                }
                return;
            };
            let partition = part.loader.plan().partition;
            part.loader.poll(&mut self.durable.requests);
            match part.loader.stage() {
                load::Stage::Failed(damage) => {
                    let text = explain(&damage);
                    return self.cannot_load(now, &text);
                }
                load::Stage::Scanned if loading.verdicts.is_none() => {
                    let summary = part.loader.summary().clone();
                    loading.at += 1;
                    let note = Note::Scanned { partition, summary };
                    self.tell(now, WorkerId(0), note);
                }
                load::Stage::Scanned => {
                    let verdicts = loading.verdicts.as_ref();
                    let verdict = verdicts.and_then(|v| v.get(usize::from(partition)));
                    part.loader.resolve(verdict.cloned().unwrap_or_default());
                }
                load::Stage::Finished => {
                    let loaded = part.loader.loaded().cloned();
                    let mut staging = part.staging.take();
                    let shard = staging.as_deref_mut().unwrap_or(&mut self.shard);
                    let table = Arc::clone(shard.replayed_keyspaces());
                    let held = shard.take_held();
                    let node = shard.node();
                    loading.at += 1;
                    self.durable.events.extend(loaded.map(Event::Loaded));
                    self.tell_table(now, &table);
                    self.tell_node_of_files(now, node, &table);
                    self.tell_held(now, held);
                    if let Some(staging) = staging {
                        self.tell_marks(now, &staging);
                        self.move_keys(now, staging);
                    }
                }
                load::Stage::Scanning | load::Stage::Applying => return,
            }
        }
    }

    /// At worker 0: a partition's logs have been looked through.
    pub(super) fn on_scanned(&mut self, now: Now, partition: u16, summary: LogSummary) {
        self.durable.heard.summaries.insert(partition, summary);
        let Stage::Loading(loading) = &self.durable.stage else {
            return;
        };
        if self.durable.heard.summaries.len() == loading.plan.folder.plans.len() {
            self.resolve(now);
        }
    }

    fn resolve(&mut self, now: Now) {
        let Stage::Loading(loading) = &self.durable.stage else {
            return;
        };
        let plan = Arc::clone(&loading.plan);
        let summaries = std::mem::take(&mut self.durable.heard.summaries);
        let all: Vec<_> = summaries.values().collect();
        let verdicts = match judge(&plan.folder.plans, &all) {
            Ok(verdicts) => Arc::new(verdicts),
            Err(damage) => return self.cannot_load(now, &explain(&damage)),
        };
        // Not before it is clear that all that counts can be loaded.
        for file in &plan.folder.strays {
            self.remove_file(file.clone());
        }
        let stored = plan.folder.manifest.as_ref().map_or(0, |m| m.run);
        let runs = summaries.values().map(|s| s.run);
        let run = runs.max().unwrap_or(0).max(stored) + 1;
        let mut keeper = self.new_keeper(now, &plan, run);
        if let Some(generation) = plan.rewrite() {
            keeper.begin(generation, now);
        }
        self.durable.heard.resolved = Some((verdicts, run));
        // What is written from now on must be found again; or, without a log,
        // what there is must not be taken for all that happened.
        let logs = self.durable.settings.log;
        let until = (!logs).then_some(plan.generation);
        let stored = plan.folder.manifest.as_ref();
        if plan.moves || stored.is_some_and(|m| m.logs_until == until) {
            self.durable.keeper = Some(keeper);
            return self.tell_resolved(now);
        }
        keeper.install_logs_until(until, &mut self.durable.requests);
        self.durable.keeper = Some(keeper);
    }

    fn tell_resolved(&mut self, now: Now) {
        let Some((verdicts, run)) = self.durable.heard.resolved.take() else {
            return;
        };
        let note = || Note::Resolved {
            verdicts: Arc::clone(&verdicts),
            run,
        };
        self.tell_all(now, note);
    }

    pub(super) fn on_resolved(&mut self, now: Now, verdicts: Arc<Vec<Verdict>>, run: u64) {
        self.durable.run = run;
        let Stage::Loading(loading) = &mut self.durable.stage else {
            return;
        };
        loading.verdicts = Some(verdicts);
        loading.at = 0;
        self.load_on(now);
    }

    /// All partitions of this worker are loaded.
    fn loaded(&mut self, now: Now) {
        let stage = std::mem::replace(&mut self.durable.stage, Stage::Waiting);
        let Stage::Loading(loading) = stage else {
            return;
        };
        let plan = &loading.plan;
        if let Some(generation) = plan.rewrite() {
            self.durable.stage = Stage::Moving {
                generation,
                senders: self.placement.workers(),
            };
            let early = std::mem::take(&mut self.durable.early_ends);
            self.tell_all(now, || Note::NoMoreKeys);
            for _ in 0..early {
                self.on_no_more_keys();
            }
            return;
        }
        let loaded = loading.parts.first().and_then(|p| p.loader.loaded());
        let last = loaded.and_then(|l| l.last.as_ref());
        let (index, salt) = match last {
            Some(last) if last.generation == plan.generation => (last.index + 1, Some(last.salt)),
            _ => (0, None),
        };
        let seq = loaded.map_or(0, |l| l.next_seq);
        self.start_log(plan.generation, index, seq, salt);
        self.durable.ready = true;
        self.note_ready(now);
    }

    /// Tells worker 0 that this one may be served, once its log can take frames.
    pub(super) fn note_ready(&mut self, now: Now) {
        if !self.durable.ready {
            return;
        }
        if let Some(log) = &self.durable.log
            && !log.generation_ready(log.generation())
        {
            return;
        }
        self.durable.ready = false;
        self.tell(now, WorkerId(0), Note::Loaded);
    }

    fn new_keeper(&self, now: Now, plan: &LoadPlan, run: u64) -> Keeper {
        let workers = self.placement.workers();
        let generation = plan.rewrite().unwrap_or(plan.generation);
        let first = Manifest {
            generation: 0,
            logs_from: generation,
            logs_until: None,
            workers: workers as u16,
            hash_seed: self.durable.file_seed,
            run,
            saved_ms: now.unix_ms(),
            snapshots: Vec::new(),
        };
        let manifest = plan.folder.manifest.clone().unwrap_or(first);
        let manifest = Manifest { run, ..manifest };
        let mut keeper = Keeper::new(manifest, workers, generation, now);
        let schedule = self.durable.settings.schedule.clone();
        keeper.found(schedule, plan.folder.kept.iter().copied());
        keeper.logs = self.durable.settings.log;
        keeper
    }

    /// At worker 0: a worker is ready.
    pub(super) fn on_loaded(&mut self, now: Now) {
        self.durable.heard.loaded += 1;
        if self.durable.heard.loaded == self.placement.workers() {
            self.begin_exchange(now);
        }
    }

    /// At worker 0: the manifest that serving needs is on disk, or cannot be.
    pub(super) fn on_first_manifest(&mut self, now: Now, ended: Result<u64, Arc<str>>) {
        match ended {
            Ok(_) if self.durable.heard.resolved.is_some() => {
                self.tell_resolved(now);
            }
            Ok(_) => self.begin_exchange(now),
            Err(text) => self.cannot_load(now, &text),
        }
    }

    pub(super) fn on_serve(&mut self) {
        self.durable.stage = Stage::Serving;
        self.be_no_node();
        self.durable.changes_at_cut = self.shard.counters().changes;
        self.durable.events.push(Event::Serving);
    }

    /// The node cannot start.
    fn cannot_load(&mut self, now: Now, text: &str) {
        let text = Arc::<str>::from(text);
        self.tell_all(now, || Note::Unloadable(Arc::clone(&text)));
    }

    pub(super) fn on_unloadable(&mut self, text: Arc<str>) {
        self.durable.stage = Stage::Failed;
        self.durable.events.push(Event::Unloadable(text));
    }
}

fn explain(damage: &load::Damage) -> String {
    format!("{damage}; {}", damage.advice())
}
