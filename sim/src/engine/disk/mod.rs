//! The disk of the world: files and names that are on it for good only after
//! they were synced, and that fail and fill up as the plan says.
//!
//! - [`file`]: the contents of one file
//! - `names`: which names outlive the power
//! - here: requests as a driver carries them out, with faults

pub mod file;
mod names;

use crate::engine::probes::Probes;
use crate::engine::random::Random;
use crate::node::plan::DiskFaults;
use file::Mark;
use names::Names;
use rufous_base::disk::{DiskError, DiskErrorKind, DiskOp, DiskReply, FileInfo};

/// What a request noted when it began.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    mark: Option<Mark>,
    pub at_us: u64,
}

#[derive(Debug)]
pub struct Disk {
    names: Names,
    faults: DiskFaults,
    random: Random,
    /// Whether faults may happen now.
    pub faulty: bool,
    /// Whether there is no room now.
    pub full: bool,
    /// Whether it answers no request.
    pub hangs: bool,
    /// Whether every other sync takes seconds.
    long_syncs: Option<Random>,
    /// The longest that a sync has taken in this life of the node.
    pub slowest_sync_us: u64,
    /// Since when syncs, or writes, may have failed in this life of the node.
    pub failing_since_us: Option<u64>,
}

impl Disk {
    pub fn new(seed: u64, faults: DiskFaults) -> Self {
        Self {
            names: Names::default(),
            faults,
            random: Random::new(seed, "disk"),
            faulty: true,
            full: false,
            hangs: false,
            long_syncs: None,
            slowest_sync_us: 0,
            failing_since_us: None,
        }
    }

    /// See [`Disk::long_syncs`].
    pub fn with_long_syncs(mut self, seed: Option<u64>) -> Self {
        self.long_syncs = seed.map(|seed| Random::new(seed, "long syncs"));
        self
    }

    /// A life of the node begins.
    pub fn new_life(&mut self) {
        self.slowest_sync_us = 0;
        self.failing_since_us = None;
    }

    /// How long a request takes.
    pub fn takes_us(&mut self, op: &DiskOp) -> u64 {
        let (low, high) = match op {
            DiskOp::Sync { .. } | DiskOp::SyncNames | DiskOp::Write { sync: true, .. } => {
                self.faults.sync_us
            }
            _ => self.faults.write_us,
        };
        if let DiskOp::Sync { .. } = op
            && self.faulty
            && let Some(random) = &mut self.long_syncs
            && random.chance(0.5)
        {
            return random.between(2_000_000, 8_000_000);
        }
        self.random.skewed(low, high)
    }

    pub fn begin(&mut self, op: &DiskOp, at_us: u64) -> Begun {
        let mark = match op {
            DiskOp::Sync { file } => self.names.file(file).map(|f| f.mark()),
            _ => None,
        };
        Begun { mark, at_us }
    }

    /// Carries a request out; its time has passed.
    pub fn finish(
        &mut self,
        op: DiskOp,
        begun: Begun,
        now_us: u64,
        probes: &mut Probes,
    ) -> Result<DiskReply, DiskError> {
        if matches!(op, DiskOp::Sync { .. } | DiskOp::Write { sync: true, .. }) {
            self.slowest_sync_us = self.slowest_sync_us.max(now_us - begun.at_us);
        }
        match op {
            DiskOp::Create { file, reserve } => self.create(&file, reserve, begun.at_us, probes),
            DiskOp::Write {
                file,
                at,
                bytes,
                sync,
            } => self.write(&file, at as usize, bytes, sync, begun, probes),
            DiskOp::Sync { file } => self.sync(&file, begun, probes),
            DiskOp::SyncNames => {
                self.names.sync();
                Ok(DiskReply::Done)
            }
            DiskOp::Rename { from, to } => {
                if !self.names.rename(&from, &to) {
                    return Err(error(DiskErrorKind::NotFound, Vec::new()));
                }
                Ok(DiskReply::Done)
            }
            DiskOp::Remove { file } => {
                self.names.remove(&file);
                Ok(DiskReply::Done)
            }
            DiskOp::Truncate { file, bytes } => {
                let found = self.names.file_mut(&file);
                let file = found.ok_or_else(|| error(DiskErrorKind::NotFound, Vec::new()))?;
                file.resize(bytes as usize);
                Ok(DiskReply::Done)
            }
            DiskOp::Read { file, at, bytes } => {
                let found = self.names.file(&file);
                let file = found.ok_or_else(|| error(DiskErrorKind::NotFound, Vec::new()))?;
                let rest = file.live().get(at as usize..).unwrap_or_default();
                Ok(DiskReply::Read(rest[..bytes.min(rest.len())].to_vec()))
            }
            DiskOp::List => Ok(DiskReply::Files(self.list())),
        }
    }

    fn list(&self) -> Vec<FileInfo> {
        let info = |(name, bytes): (&str, usize)| FileInfo {
            file: name.into(),
            bytes: bytes as u64,
        };
        self.names.list().map(info).collect()
    }

    fn create(
        &mut self,
        file: &str,
        reserve: u64,
        at_us: u64,
        probes: &mut Probes,
    ) -> Result<DiskReply, DiskError> {
        if self.full && self.random.chance(0.7) {
            self.failing_since_us.get_or_insert(at_us);
            probes.hit("disk full");
            return Err(error(DiskErrorKind::Full, Vec::new()));
        }
        self.names.create(file, reserve as usize);
        Ok(DiskReply::Done)
    }

    fn write(
        &mut self,
        name: &str,
        at: usize,
        bytes: Vec<u8>,
        sync: bool,
        begun: Begun,
        probes: &mut Probes,
    ) -> Result<DiskReply, DiskError> {
        let fails = self.faulty && self.random.chance(self.faults.write_error);
        let part = self.random.index(bytes.len() + 1);
        let Some(file) = self.names.file_mut(name) else {
            return Err(error(DiskErrorKind::NotFound, bytes));
        };
        if self.full && at + bytes.len() > file.len() {
            // What fits is written.
            let room = file.len().saturating_sub(at);
            file.write(at, &bytes[..room]);
            self.failing_since_us.get_or_insert(begun.at_us);
            probes.hit("disk full");
            return Err(error(DiskErrorKind::Full, bytes));
        }
        if fails {
            file.write(at, &bytes[..part]);
            self.failing_since_us.get_or_insert(begun.at_us);
            probes.hit("write failed");
            return Err(error(DiskErrorKind::Io, bytes));
        }
        file.write(at, &bytes);
        if sync {
            let begun = Begun {
                mark: Some(file.mark()),
                ..begun
            };
            if let Err(mut error) = self.sync(name, begun, probes) {
                error.bytes = bytes;
                return Err(error);
            }
        }
        Ok(DiskReply::Wrote(bytes))
    }

    fn sync(
        &mut self,
        name: &str,
        begun: Begun,
        probes: &mut Probes,
    ) -> Result<DiskReply, DiskError> {
        let fails = self.faulty && self.random.chance(self.faults.sync_error);
        let Some(file) = self.names.file_mut(name) else {
            return Err(error(DiskErrorKind::NotFound, Vec::new()));
        };
        // A file that was created again while the sync ran has nothing to be synced.
        let mark = begun.mark.unwrap_or(file.mark());
        if fails {
            file.dropped(mark);
            self.failing_since_us.get_or_insert(begun.at_us);
            probes.hit("sync failed");
            return Err(error(DiskErrorKind::Sync, Vec::new()));
        }
        file.synced(mark);
        Ok(DiskReply::Done)
    }

    /// The process was killed while this request was in progress.
    pub fn interrupt(&mut self, op: &DiskOp) {
        if let DiskOp::Write {
            file, at, bytes, ..
        } = op
        {
            let part = self.random.index(bytes.len() + 1);
            if let Some(file) = self.names.file_mut(file) {
                file.write(*at as usize, &bytes[..part]);
            }
        }
    }

    pub fn lose_power(&mut self, probes: &mut Probes) {
        if self
            .names
            .lose_power(&mut self.random, self.faults.unordered_names)
        {
            probes.hit("name lost");
        }
        let torn = self.faults.torn;
        for file in self.names.files_mut() {
            if file.lose_power(&mut self.random, torn) {
                probes.hit("write torn");
            }
        }
    }

    /// Whether all that was written would outlive the power.
    pub fn is_synced(&self) -> bool {
        self.names.are_synced()
    }

    /// Changes a bit of some file, or near the end of a log; says where.
    pub fn flip(&mut self, last: bool, probes: &mut Probes) -> Option<String> {
        if last {
            return self.flip_last(probes);
        }
        let count = self.names.list().count();
        let name = self
            .names
            .list()
            .nth(self.random.index(count))?
            .0
            .to_owned();
        let at = self.names.file_mut(&name)?.flip(&mut self.random)?;
        probes.hit("bit flipped");
        Some(format!("{name} at {at}"))
    }

    /// Sets a bit near the end of a log, in what a loss of power has left whole: it changes bits to zeros alone.
    fn flip_last(&mut self, probes: &mut Probes) -> Option<String> {
        let logs = self.names.list().map(|(name, _)| name);
        let logs: Vec<String> = logs.filter(|name| is_log(name)).map(Into::into).collect();
        if logs.is_empty() {
            return None;
        }
        let name = self.random.pick(&logs).clone();
        let at = self
            .names
            .file_mut(&name)?
            .set_bit_near_end(&mut self.random)?;
        probes.hit("bit flipped");
        Some(format!("{name} at {at}"))
    }

    /// All files with their contents, for a look at the end.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.names.contents()
    }
}

fn is_log(name: &str) -> bool {
    name.starts_with("log-")
}

fn error(kind: DiskErrorKind, bytes: Vec<u8>) -> DiskError {
    let text = match kind {
        DiskErrorKind::Full => "No space left on device",
        DiskErrorKind::NotFound => "No such file or directory",
        DiskErrorKind::Denied => "Permission denied",
        DiskErrorKind::Sync | DiskErrorKind::Io => "Input/output error",
    };
    DiskError {
        kind,
        text: text.into(),
        bytes,
    }
}
