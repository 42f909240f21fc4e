//! For tests: a small disk that answers in any order over its lanes, fails
//! on demand, and loses unsynced writes.

use rufous_base::disk::{
    DiskDone, DiskError, DiskErrorKind, DiskOp, DiskReply, DiskRequest, FileInfo, FileName, Lane,
};
use rufous_base::rng::Rng;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug, Default)]
pub(super) struct FakeFile {
    /// The bytes that reads return.
    pub(super) bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Written since the last sync, and not dropped by a failed one.
    unsynced: Vec<(usize, Vec<u8>)>,
    named: bool,
}

pub(super) struct FakeDisk {
    pub(super) files: BTreeMap<FileName, FakeFile>,
    lanes: [VecDeque<DiskRequest>; 3],
    /// Executed, and not yet reported.
    done: [VecDeque<DiskDone>; 3],
    pub(super) rng: Rng,
    /// One of so many requests fails; 0 for none.
    pub(super) fail_one_in: usize,
    pub(super) full: bool,
    /// Every sync fails, of writes as well.
    pub(super) no_sync: bool,
}

impl FakeDisk {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            files: BTreeMap::new(),
            lanes: Default::default(),
            done: Default::default(),
            rng: Rng::new(seed),
            fail_one_in: 0,
            full: false,
            no_sync: false,
        }
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.rng.next_u64() % n as u64) as usize
    }

    pub(super) fn take(&mut self, requests: &mut Vec<DiskRequest>) {
        for request in requests.drain(..) {
            self.lanes[request.lane.index()].push_back(request);
        }
    }

    pub(super) fn waiting(&self, lane: Lane) -> usize {
        self.lanes[lane.index()].len()
    }

    /// Executes some requests, and reports one that was executed, of any lane.
    pub(super) fn step(&mut self) -> Option<DiskDone> {
        loop {
            let lane = self.below(3);
            if self.below(2) == 0
                && let Some(done) = self.done[lane].pop_front()
            {
                return Some(done);
            }
            if let Some(request) = self.lanes[lane].pop_front() {
                let id = request.id;
                let result = self.perform(request.op);
                self.done[lane].push_back(DiskDone { id, result });
            }
            let lanes = self.lanes.iter().all(VecDeque::is_empty);
            if lanes && self.done.iter().all(VecDeque::is_empty) {
                return None;
            }
        }
    }

    fn fault(&mut self) -> bool {
        self.fail_one_in > 0 && self.below(self.fail_one_in) == 0
    }

    fn perform(&mut self, op: DiskOp) -> Result<DiskReply, DiskError> {
        match op {
            DiskOp::Create { file, reserve } => {
                if self.full || self.fault() {
                    return Err(error(DiskErrorKind::Full, Vec::new()));
                }
                let bytes = vec![0; reserve as usize];
                let made = FakeFile {
                    bytes: bytes.clone(),
                    synced: bytes,
                    ..FakeFile::default()
                };
                self.files.insert(file, made);
                Ok(DiskReply::Done)
            }
            DiskOp::Write {
                file,
                at,
                bytes,
                sync,
            } => self.write(&file, at as usize, bytes, sync),
            DiskOp::Sync { file } => self.sync(&file, Vec::new()),
            DiskOp::SyncNames => {
                if self.fault() {
                    return Err(error(DiskErrorKind::Sync, Vec::new()));
                }
                self.files.values_mut().for_each(|file| file.named = true);
                Ok(DiskReply::Done)
            }
            DiskOp::Rename { from, to } => {
                let file = self.files.remove(&from).ok_or_else(missing)?;
                self.files.insert(to, file);
                Ok(DiskReply::Done)
            }
            DiskOp::Remove { file } => {
                self.files.remove(&file);
                Ok(DiskReply::Done)
            }
            DiskOp::Truncate { file, bytes } => {
                let file = self.files.get_mut(&file).ok_or_else(missing)?;
                file.bytes.resize(bytes as usize, 0);
                file.synced.resize(bytes as usize, 0);
                Ok(DiskReply::Done)
            }
            DiskOp::Read { file, at, bytes } => {
                let file = self.files.get(&file).ok_or_else(missing)?;
                let from = (at as usize).min(file.bytes.len());
                let to = (from + bytes).min(file.bytes.len());
                Ok(DiskReply::Read(file.bytes[from..to].to_vec()))
            }
            DiskOp::List => Ok(DiskReply::Files(
                self.files
                    .iter()
                    .map(|(file, held)| FileInfo {
                        file: file.clone(),
                        bytes: held.bytes.len() as u64,
                    })
                    .collect(),
            )),
        }
    }

    fn write(
        &mut self,
        name: &FileName,
        at: usize,
        bytes: Vec<u8>,
        sync: bool,
    ) -> Result<DiskReply, DiskError> {
        let failed = self.full || self.fault();
        // A failed write may have written any part.
        let part = if failed {
            self.below(bytes.len() + 1)
        } else {
            bytes.len()
        };
        let kind = if self.below(2) == 0 && !self.full {
            DiskErrorKind::Io
        } else {
            DiskErrorKind::Full
        };
        let Some(file) = self.files.get_mut(name) else {
            return Err(error(DiskErrorKind::NotFound, bytes));
        };
        put(&mut file.bytes, at, &bytes[..part]);
        file.unsynced.push((at, bytes[..part].to_vec()));
        if failed {
            return Err(error(kind, bytes));
        }
        if sync {
            return self.sync(name, bytes);
        }
        Ok(DiskReply::Wrote(bytes))
    }

    fn sync(&mut self, name: &FileName, bytes: Vec<u8>) -> Result<DiskReply, DiskError> {
        let failed = self.no_sync || self.fault();
        let Some(file) = self.files.get_mut(name) else {
            return Err(error(DiskErrorKind::NotFound, bytes));
        };
        let unsynced = std::mem::take(&mut file.unsynced);
        if failed {
            // The operating system drops data that it could not write.
            return Err(error(DiskErrorKind::Sync, bytes));
        }
        for (at, bytes) in unsynced {
            put(&mut file.synced, at, &bytes);
        }
        Ok(if bytes.is_empty() {
            DiskReply::Done
        } else {
            DiskReply::Wrote(bytes)
        })
    }

    /// The files after a loss of power: any part of the unsynced writes survives.
    pub(super) fn after_power_loss(&mut self) -> BTreeMap<FileName, Vec<u8>> {
        const SECTOR: usize = 64;
        let mut left = BTreeMap::new();
        for (name, file) in self.files.clone() {
            if !file.named && self.below(2) == 0 {
                continue;
            }
            let mut bytes = file.synced;
            for (at, written) in file.unsynced {
                let mut from = 0;
                while from < written.len() {
                    let to = ((at + from) / SECTOR + 1) * SECTOR - at;
                    let to = to.min(written.len());
                    if self.below(2) == 0 {
                        put(&mut bytes, at + from, &written[from..to]);
                    }
                    from = to;
                }
            }
            left.insert(name, bytes);
        }
        left
    }

    /// The files after the process was killed.
    pub(super) fn after_kill(&self) -> BTreeMap<FileName, Vec<u8>> {
        let files = self.files.iter();
        files
            .map(|(name, file)| (name.clone(), file.bytes.clone()))
            .collect()
    }
}

fn put(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if to.len() < at + bytes.len() {
        to.resize(at + bytes.len(), 0);
    }
    to[at..at + bytes.len()].copy_from_slice(bytes);
}

fn missing() -> DiskError {
    error(DiskErrorKind::NotFound, Vec::new())
}

fn error(kind: DiskErrorKind, bytes: Vec<u8>) -> DiskError {
    let text = format!("{kind:?}, as planned");
    DiskError { kind, text, bytes }
}
