//! Checking a data folder without starting a node on it, and finding the changes that would make a
//! start possible.
//!
//! The passes over the files are those of a start ([`super::load`]), so that both have the same
//! result.

mod guess;
mod kept;
mod repair;
#[cfg(test)]
mod tests;

pub use kept::{Depth, EarlierSave, Return, earlier_save, earlier_saves, plan_return};

use super::file::{DataFile, MANIFEST};
use super::load::{
    ApplyPass, Damage, DamageKind, Folder, HeadersPass, LogPass, LogSummary, Nowhere, Pass, Plan,
    Scanned, SegmentState, judge,
};
use super::manifest::MOST_BYTES;
use super::resolve::{Verdict, resolve};
use rufous_base::disk::{FileInfo, FileName};
use std::io;

/// The files of a folder, for reading.
pub trait Source {
    fn list(&mut self) -> io::Result<Vec<FileInfo>>;
    /// Returns fewer bytes only at the end of the file.
    fn read(&mut self, file: &str, at: u64, bytes: usize) -> io::Result<Vec<u8>>;
}

/// The contents of a folder.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The contents of each file.
    pub files: Vec<(FileName, String)>,
    /// What a start would give up, and why it may.
    pub notes: Vec<String>,
    /// What stops a start.
    pub damage: Vec<Damage>,
    /// How to make a start possible: empty if nothing is damaged, `None` if it is impossible.
    pub repair: Option<Repair>,
}

/// Changes of files, to be made in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    pub changes: Vec<FileChange>,
    /// The data that they give up.
    pub given_up: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    Remove(FileName),
    /// Cuts or extends the file to this many bytes.
    Resize(FileName, u64),
    /// Writes at an offset of the file, which is created if it does not exist.
    Write(FileName, u64, Vec<u8>),
}

impl FileChange {
    pub fn file(&self) -> &FileName {
        match self {
            FileChange::Remove(file)
            | FileChange::Resize(file, _)
            | FileChange::Write(file, ..) => file,
        }
    }
}

impl Report {
    /// Whether a node would start.
    pub fn is_fine(&self) -> bool {
        self.damage.is_empty()
    }
}

const CHUNK_BYTES: usize = 1 << 20;

/// Checks all files. A random `hash_seed` is used where that of the node is lost.
pub fn check(source: &mut dyn Source, hash_seed: u64) -> io::Result<Report> {
    let files = source.list()?;
    let manifest = match files.iter().any(|info| *info.file == *MANIFEST) {
        true => Some(source.read(MANIFEST, 0, MOST_BYTES + 1)?),
        false => None,
    };
    let mut check = Check {
        source,
        report: Report {
            repair: Some(Repair::default()),
            ..Report::default()
        },
    };
    let folder = match Folder::new(&files, manifest.as_deref()) {
        Ok(folder) => Some(folder),
        Err(damage) => {
            let may_guess = damage.kind == DamageKind::Damaged;
            check.report.damage.push(damage);
            match may_guess {
                true => check.guess(&files, manifest.as_deref(), hash_seed)?,
                false => None,
            }
        }
    };
    let Some(folder) = folder else {
        check.report.repair = None;
        return Ok(check.report);
    };
    check.folder(&folder)?;
    Ok(check.report)
}

struct Check<'a> {
    source: &'a mut dyn Source,
    report: Report,
}

impl Check<'_> {
    fn folder(&mut self, folder: &Folder) -> io::Result<()> {
        if let Some(manifest) = &folder.manifest {
            let text = format!(
                "snapshot of generation {}, logs from generation {}, {} workers, run {}",
                manifest.generation, manifest.logs_from, manifest.workers, manifest.run
            );
            self.say(&MANIFEST.into(), text);
        }
        for stray in &folder.strays {
            self.say(stray, "left over; a start removes it".into());
        }
        self.earlier_saves()?;
        let mut manifest = folder.manifest.clone();
        let mut scans = Vec::new();
        for plan in &folder.plans {
            self.snapshot(plan, manifest.as_mut())?;
            let Some(scanned) = self.log(plan)? else {
                self.report.repair = None;
                return Ok(());
            };
            scans.push(scanned);
        }
        self.logs(folder, scans)?;
        // Last, so that all files that it names exist.
        if let Some(manifest) = manifest
            && let Some(repair) = &mut self.report.repair
            && (folder.manifest.as_ref() != Some(&manifest)
                || self.report.damage.iter().any(|d| *d.file == *MANIFEST))
        {
            let bytes = manifest.encode();
            let file = FileName::from(MANIFEST);
            let size = bytes.len() as u64;
            repair
                .changes
                .push(FileChange::Write(file.clone(), 0, bytes));
            repair.changes.push(FileChange::Resize(file, size));
        }
        Ok(())
    }

    fn say(&mut self, file: &FileName, text: String) {
        self.report.files.push((file.clone(), text));
    }

    /// The log of a partition; `None` where it cannot be judged.
    fn log(&mut self, plan: &Plan) -> io::Result<Option<Scanned>> {
        let mut plan = plan.clone();
        loop {
            let mut headers = HeadersPass::new(&plan);
            if let Err(damage) = run(self.source, &mut headers, &mut |_| ())? {
                self.report.damage.push(damage);
                return Ok(None);
            }
            let segments = match headers.segments() {
                Ok(segments) => segments,
                Err(damage) => {
                    self.report.damage.push(damage);
                    return Ok(None);
                }
            };
            let mut pass = LogPass::new(&plan, segments);
            if let Err(damage) = run(self.source, &mut pass, &mut |_| ())? {
                // It belongs to no log; the other segments are checked without it.
                let before = plan.segments.len();
                plan.segments.retain(|segment| segment.file != damage.file);
                let file = damage.file.clone();
                self.report.damage.push(damage);
                if plan.segments.len() == before {
                    return Ok(None);
                }
                self.change(FileChange::Remove(file.clone()));
                self.give_up(format!("{file}, which no other file refers to"));
                continue;
            }
            let scanned = pass.finish();
            self.tell_log(&scanned);
            self.report.damage.extend(scanned.summary.corruption());
            return Ok(Some(scanned));
        }
    }

    fn tell_log(&mut self, scanned: &Scanned) {
        for (segment, end) in scanned.ends() {
            let bytes = segment.file.bytes;
            let text = match &segment.state {
                SegmentState::Good(header) => format!(
                    "from frame {}, run {}; {bytes} bytes, frames up to byte {end}",
                    header.first_seq, header.run
                ),
                SegmentState::Unused => format!("not used yet; {bytes} bytes"),
                SegmentState::Torn => "its header is not whole".into(),
                SegmentState::Damaged(why) => why.clone(),
                SegmentState::Foreign(header) => format!(
                    "started for {} workers and not used; the next start removes it",
                    header.workers
                ),
            };
            self.say(&segment.file.file, text);
        }
        if let Some(broken) = &scanned.summary.broken
            && broken.proof.is_none()
        {
            self.report.notes.push(format!(
                "{} ends at byte {} (frame {}): {}. It was not synced before the end: a start \
                 cuts it there, with {} bytes and {} whole frames behind it",
                broken.file, broken.offset, broken.seq, broken.why, broken.bytes, broken.frames
            ));
        }
    }

    /// Checks all logs together.
    fn logs(&mut self, folder: &Folder, scans: Vec<Scanned>) -> io::Result<()> {
        let summaries: Vec<&LogSummary> = scans.iter().map(|s| &s.summary).collect();
        let verdicts: Vec<Verdict> = match judge(&folder.plans, &summaries) {
            Ok(verdicts) => verdicts,
            Err(damage) => {
                self.report.damage.push(damage);
                self.replace_missing(folder, &summaries);
                let parts: Vec<_> = summaries.iter().map(|s| &s.parts).collect();
                resolve(&parts)
            }
        };
        let is_damaged = !self.report.damage.is_empty();
        for ((plan, scanned), verdict) in folder.plans.iter().zip(scans).zip(verdicts) {
            let torn = scanned.summary.broken.clone();
            let worker = plan.partition;
            if !verdict.skip.is_empty() {
                self.report.notes.push(format!(
                    "log of worker {worker}: {} commands over several workers were not logged \
                     by all of them; a start passes over them",
                    verdict.skip.len()
                ));
            }
            let mut apply = ApplyPass::new(scanned, verdict);
            if let Err(damage) = run(self.source, &mut apply, &mut |_| ())? {
                self.report.damage.push(damage);
                self.report.repair = None;
                return Ok(());
            }
            if apply.cut.0 > 0 {
                self.report.notes.push(format!(
                    "log of worker {worker}: {} frames ({} bytes) from frame {} on follow a \
                     command of which another worker has lost its part; a start cuts them",
                    apply.cut.0,
                    apply.cut.1,
                    apply.next_seq()
                ));
            }
            if is_damaged {
                self.cut_log(folder, &apply, torn.as_ref(), worker);
            }
        }
        Ok(())
    }

    /// Begins a new log where no file of one is left.
    fn replace_missing(&mut self, folder: &Folder, summaries: &[&LogSummary]) {
        let generation = folder.manifest.as_ref().map_or(0, |m| m.logs_from);
        for (plan, summary) in folder.plans.iter().zip(summaries) {
            if !summary.present {
                let file = DataFile::Log {
                    generation,
                    worker: plan.partition,
                    index: 0,
                };
                self.change(FileChange::Resize(file.name(), 0));
                self.give_up(format!(
                    "the log of worker {}, which no longer exists",
                    plan.partition
                ));
            }
        }
    }

    fn change(&mut self, change: FileChange) {
        if let Some(repair) = &mut self.report.repair {
            repair.changes.push(change);
        }
    }

    fn give_up(&mut self, what: String) {
        if let Some(repair) = &mut self.report.repair {
            repair.given_up.push(what);
        }
    }
}

/// Runs a pass over its files. An error of the operating system when reading one is not damage, and
/// ends the check.
fn run(
    source: &mut dyn Source,
    pass: &mut dyn Pass,
    patch: &mut dyn FnMut(&mut Vec<u8>),
) -> io::Result<Result<(), Damage>> {
    for (at, span) in pass.spans().into_iter().enumerate() {
        let mut offset = span.from;
        while offset < span.to {
            let bytes = (span.to - offset).min(CHUNK_BYTES as u64) as usize;
            let mut chunk = source.read(&span.file, offset, bytes)?;
            if chunk.is_empty() {
                break;
            }
            if offset == 0 {
                patch(&mut chunk);
            }
            offset += chunk.len() as u64;
            if let Err(damage) = pass.feed(at, &chunk, &mut Nowhere) {
                return Ok(Err(damage));
            }
        }
        if let Err(damage) = pass.end(at, &mut Nowhere) {
            return Ok(Err(damage));
        }
    }
    Ok(Ok(()))
}
