//! Loading the data of one partition (a worker of the last run) at a start.
//!
//! A loader reads the snapshot into a shard, then scans the log to find its valid frames, and stops
//! there: which commands over several workers are complete is decided from the logs of all
//! partitions ([`judge`]). Then it applies the log, removes the invalid rest, and syncs the valid
//! part: data that was loaded once must not be lost in the next crash.
//!
//! Map, in reading order:
//! - [`plan`]: which files exist, according to the manifest
//! - [`damage`]: why they cannot be loaded
//! - `pass`, `fetch`: reading files
//! - `snapshot`: a snapshot's file
//! - `segments`, [`log`]: which part of a log is valid
//! - `apply`: the second pass over a log; `kept`: frames that it does not read again
//! - `tidy`: changes of files

mod apply;
pub mod damage;
mod entries;
mod fetch;
mod kept;
pub mod log;
mod pass;
pub mod plan;
mod segments;
mod snapshot;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod tidy;

pub use damage::{Damage, DamageKind};
pub use log::{Break, LogSummary};
pub use plan::{Folder, Plan, SegmentFile, SnapshotPlan};

pub(super) use apply::{ApplyPass, Change};
pub(super) use log::{LogPass, Scanned};
pub(super) use pass::{Nowhere, Pass, Target};
pub(super) use segments::{HeadersPass, Segment, SegmentState};
pub(super) use snapshot::SnapshotPass;

use super::file::FileHeader;
use super::ids;
use super::resolve::{Parts, Verdict, resolve};
use fetch::Fetch;
use rufous_base::Now;
use rufous_base::disk::{DiskDone, DiskRequest};
use rufous_store::shard::Shard;
use tidy::Tidy;

/// The stage of a loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading the snapshot and scanning the log.
    Scanning,
    /// Waiting for [`Loader::resolve`].
    Scanned,
    Applying,
    Finished,
    Failed(Damage),
}

/// The result of loading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Keys in the snapshot.
    pub keys: u64,
    /// Frames of the log that were applied.
    pub frames: u64,
    /// The number of the log's next frame. All frames before it are synced.
    pub next_seq: u64,
    /// The header of the last segment that was kept: the next one has its generation and salt, and
    /// the following index.
    pub last: Option<FileHeader>,
    /// The highest run that wrote to these files.
    pub run: u64,
    /// Whether the node was shut down in order.
    pub clean: bool,
    /// The end of the log that was given up because it was never completely written.
    pub torn: Option<Break>,
    /// Frames and bytes that were given up because they follow a command of which another worker
    /// had lost its part.
    pub cut: (u64, u64),
    /// Commands over several workers that not all of them had logged.
    pub skipped: u64,
}

/// Decides for all partitions, in their order, which commands are complete, and that no log is
/// missing.
pub fn judge(plans: &[Plan], summaries: &[&LogSummary]) -> Result<Vec<Verdict>, Damage> {
    let missing = (0..).zip(summaries).find(|(_, summary)| !summary.present);
    let with = summaries.iter().position(|summary| summary.frames() > 0);
    if let (Some((missing, _)), Some(with)) = (missing, with) {
        let first = plans.get(with).and_then(|plan| plan.segments.first());
        if let Some(first) = first {
            let generation = first.generation;
            let file = super::DataFile::Log {
                generation,
                worker: missing,
                index: 0,
            };
            let what = format!("missing, although {} exists", first.file);
            return Err(Damage::new(&file.name(), None, what));
        }
    }
    let parts: Vec<&Parts> = summaries.iter().map(|summary| &summary.parts).collect();
    Ok(resolve(&parts))
}

/// See the module's description.
#[derive(Debug)]
pub struct Loader {
    plan: Plan,
    phase: Phase,
    fetch: Fetch,
    next_id: u64,
    first_id: u64,
    total_bytes: u64,
    done_bytes: u64,
    keys: u64,
    skipped: u64,
    summary: LogSummary,
}

#[derive(Debug)]
enum Phase {
    Headers(HeadersPass),
    Snapshot(Box<SnapshotPass>, Vec<Segment>),
    Log(Box<LogPass>),
    Scanned(Box<Scanned>),
    Apply(Box<ApplyPass>),
    Tidy(Box<Tidy>),
    Finished(Box<Loaded>),
    Failed(Damage),
    /// Never visible outside.
    Between,
}

impl Loader {
    /// Request ids hold the partition, so that a worker may run several loaders.
    pub fn new(plan: Plan) -> Self {
        let logs: u64 = plan.segments.iter().map(|s| s.bytes).sum();
        let snapshot = plan.snapshot.as_ref().and_then(|s| s.found).unwrap_or(0);
        let first_id = ids::LOAD | u64::from(plan.partition) << 40;
        let headers = HeadersPass::new(&plan);
        Self {
            fetch: Fetch::new(headers.spans()),
            phase: Phase::Headers(headers),
            next_id: first_id,
            first_id,
            // Logs are read twice.
            total_bytes: snapshot.saturating_add(logs.saturating_mul(2)),
            done_bytes: 0,
            keys: 0,
            skipped: 0,
            summary: LogSummary::default(),
            plan,
        }
    }

    /// Whether a request was made by this loader.
    pub fn owns(&self, id: u64) -> bool {
        id >> 40 == self.first_id >> 40
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn stage(&self) -> Stage {
        match &self.phase {
            Phase::Headers(_) | Phase::Snapshot(..) | Phase::Log(_) | Phase::Between => {
                Stage::Scanning
            }
            Phase::Scanned(_) => Stage::Scanned,
            Phase::Apply(_) | Phase::Tidy(_) => Stage::Applying,
            Phase::Finished(_) => Stage::Finished,
            Phase::Failed(damage) => Stage::Failed(damage.clone()),
        }
    }

    /// Available from [`Stage::Scanned`] on.
    pub fn summary(&self) -> &LogSummary {
        match &self.phase {
            Phase::Scanned(scanned) => &scanned.summary,
            _ => &self.summary,
        }
    }

    pub fn loaded(&self) -> Option<&Loaded> {
        match &self.phase {
            Phase::Finished(loaded) => Some(loaded),
            _ => None,
        }
    }

    /// Bytes processed, and bytes to process in total.
    pub fn progress(&self) -> (u64, u64) {
        match self.phase {
            Phase::Tidy(_) | Phase::Finished(_) => (self.total_bytes, self.total_bytes),
            _ => (self.done_bytes.min(self.total_bytes), self.total_bytes),
        }
    }

    /// Continues from [`Stage::Scanned`] with the decision of [`judge`].
    pub fn resolve(&mut self, verdict: Verdict) {
        match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Scanned(scanned) => {
                self.summary = LogSummary {
                    parts: Parts::default(),
                    ..scanned.summary.clone()
                };
                self.skipped = verdict.skip.len() as u64;
                let apply = ApplyPass::new(*scanned, verdict);
                self.fetch = Fetch::new(apply.spans());
                self.phase = Phase::Apply(Box::new(apply));
            }
            other => self.phase = other,
        }
    }

    /// Makes the next requests to the disk.
    pub fn poll(&mut self, out: &mut Vec<DiskRequest>) {
        loop {
            match &mut self.phase {
                Phase::Scanned(_) | Phase::Finished(_) | Phase::Failed(_) | Phase::Between => {
                    return;
                }
                Phase::Tidy(tidy) => {
                    tidy.poll(&mut self.next_id, out);
                    return;
                }
                _ => {}
            }
            self.fetch.poll(&mut self.next_id, out);
            // Spans without bytes: there is no request and no result.
            if let Err(damage) = self.work(&mut Nowhere) {
                self.phase = Phase::Failed(damage);
            } else if self.fetch.is_finished() {
                self.advance();
            } else if self.fetch.is_waiting() {
                return;
            }
        }
    }

    /// Handles a result, and processes the bytes that have arrived. Call [`Loader::poll`]
    /// afterwards.
    pub fn on_done(&mut self, now: Now, done: DiskDone, shard: &mut Shard) {
        if let Phase::Tidy(tidy) = &mut self.phase {
            match tidy.on_done(done) {
                Ok(()) => self.finish_if_tidy(),
                Err(damage) => self.phase = Phase::Failed(damage),
            }
            return;
        }
        if self.pass().is_none() {
            // The loader has failed: the first reason stays.
            return;
        }
        shard.set_replay_time(now);
        let result = self.fetch.arrived(done);
        if let Err(damage) = result.and_then(|()| self.work(shard)) {
            self.phase = Phase::Failed(damage);
        }
    }

    fn pass(&mut self) -> Option<&mut dyn Pass> {
        match &mut self.phase {
            Phase::Headers(pass) => Some(pass),
            Phase::Snapshot(pass, _) => Some(&mut **pass),
            Phase::Log(pass) => Some(&mut **pass),
            Phase::Apply(pass) => Some(&mut **pass),
            _ => None,
        }
    }

    fn work(&mut self, target: &mut dyn Target) -> Result<(), Damage> {
        while let Some(piece) = self.fetch.take() {
            if !matches!(self.phase, Phase::Headers(_)) {
                self.done_bytes += piece.bytes.len() as u64;
            }
            let Some(pass) = self.pass() else {
                return Ok(());
            };
            pass.feed(piece.span, &piece.bytes, target)?;
            if piece.is_last {
                pass.end(piece.span, target)?;
            }
        }
        Ok(())
    }

    /// Ends the pass.
    fn advance(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Between);
        match self.next_phase(phase) {
            Ok(phase) => self.phase = phase,
            Err(damage) => self.phase = Phase::Failed(damage),
        }
        if let Some(spans) = self.pass().map(|pass| pass.spans()) {
            self.fetch = Fetch::new(spans);
        }
        self.finish_if_tidy();
    }

    fn next_phase(&mut self, phase: Phase) -> Result<Phase, Damage> {
        match phase {
            Phase::Headers(pass) => {
                let segments = pass.segments()?;
                match SnapshotPass::new(&self.plan) {
                    Some(pass) => {
                        pass.presence()?;
                        Ok(Phase::Snapshot(Box::new(pass), segments))
                    }
                    None => Ok(Phase::Log(Box::new(LogPass::new(&self.plan, segments)))),
                }
            }
            Phase::Snapshot(pass, segments) => {
                self.keys = pass.keys;
                Ok(Phase::Log(Box::new(LogPass::new(&self.plan, segments))))
            }
            Phase::Log(pass) => {
                let scanned = pass.finish();
                match scanned.summary.corruption() {
                    Some(damage) => Err(damage),
                    None => Ok(Phase::Scanned(Box::new(scanned))),
                }
            }
            Phase::Apply(apply) => Ok(Phase::Tidy(Box::new(Tidy::new(
                &apply,
                self.loaded_by(&apply),
            )))),
            other => Ok(other),
        }
    }

    fn loaded_by(&self, apply: &ApplyPass) -> Loaded {
        Loaded {
            keys: self.keys,
            frames: apply.frames,
            next_seq: apply.next_seq(),
            last: apply.last_header().copied(),
            run: self.summary.run,
            clean: self.summary.clean && self.summary.broken.is_none() && apply.cut.0 == 0,
            torn: self.summary.broken.clone(),
            cut: apply.cut,
            skipped: self.skipped,
        }
    }

    fn finish_if_tidy(&mut self) {
        if let Phase::Tidy(tidy) = &mut self.phase
            && let Some(loaded) = tidy.finished()
        {
            self.phase = Phase::Finished(Box::new(loaded.clone()));
        }
    }
}
