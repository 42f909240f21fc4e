//! Removing invalid parts of files, and syncing the valid ones.

use super::apply::{ApplyPass, Change};
use super::fetch::CHUNK_BYTES;
use super::{Damage, Loaded};
use rufous_base::disk::{DiskDone, DiskOp, DiskReply, DiskRequest, FileName, Lane};
use std::collections::VecDeque;

/// Changes of files, executed one after the other.
#[derive(Debug)]
pub(super) struct Tidy {
    left: VecDeque<Step>,
    asked: bool,
    loaded: Loaded,
}

#[derive(Debug)]
struct Step {
    file: FileName,
    doing: &'static str,
    op: DiskOp,
}

impl Tidy {
    pub(super) fn new(apply: &ApplyPass, loaded: Loaded) -> Self {
        let mut tidy = Self {
            left: VecDeque::new(),
            asked: false,
            loaded,
        };
        for change in apply.changes() {
            tidy.plan(change);
        }
        if let Some(last) = tidy.left.back().map(|step| step.file.clone()) {
            tidy.step(&last, "sync the folder", DiskOp::SyncNames);
        }
        tidy
    }

    fn step(&mut self, file: &FileName, doing: &'static str, op: DiskOp) {
        let file = file.clone();
        self.left.push_back(Step { file, doing, op });
    }

    fn plan(&mut self, change: Change) {
        match change {
            Change::Remove(file) => {
                self.step(&file, "remove it", DiskOp::Remove { file: file.clone() });
                self.step(&file, "sync the folder", DiskOp::SyncNames);
            }
            Change::Empty(_, 0) => {}
            Change::Empty(file, _) => {
                self.truncate(&file, 0);
                self.step(&file, "sync it", DiskOp::Sync { file: file.clone() });
            }
            Change::Truncate(file, bytes) => self.truncate(&file, bytes),
            Change::Clear(file, (from, end, _)) => {
                let mut at = from;
                while at < end {
                    let bytes = (end - at).min(CHUNK_BYTES);
                    let op = DiskOp::Write {
                        file: file.clone(),
                        at,
                        bytes: vec![0; bytes as usize],
                        sync: false,
                    };
                    self.step(&file, "clear it", op);
                    at += bytes;
                }
            }
            Change::Rewrite(file, from, end) => {
                let mut at = from;
                while at < end {
                    let bytes = (end - at).min(CHUNK_BYTES);
                    let read = DiskOp::Read {
                        file: file.clone(),
                        at,
                        bytes: bytes as usize,
                    };
                    self.step(&file, "read it", read);
                    at += bytes;
                }
            }
            Change::Write(file, at, bytes) => {
                let op = DiskOp::Write {
                    file: file.clone(),
                    at,
                    bytes,
                    sync: false,
                };
                self.step(&file, "write it", op);
            }
            Change::Sync(file) => {
                self.step(&file, "sync it", DiskOp::Sync { file: file.clone() });
            }
        }
    }

    fn truncate(&mut self, file: &FileName, bytes: u64) {
        let name = file.clone();
        let op = DiskOp::Truncate { file: name, bytes };
        self.step(file, "truncate it", op);
    }

    pub(super) fn poll(&mut self, next_id: &mut u64, out: &mut Vec<DiskRequest>) {
        if self.asked {
            return;
        }
        if let Some(step) = self.left.front() {
            out.push(DiskRequest {
                id: *next_id,
                lane: Lane::Bulk,
                op: step.op.clone(),
            });
            *next_id += 1;
            self.asked = true;
        }
    }

    pub(super) fn on_done(&mut self, done: DiskDone) -> Result<(), Damage> {
        self.asked = false;
        let Some(step) = self.left.pop_front() else {
            return Ok(());
        };
        let reply = done
            .result
            .map_err(|error| Damage::disk(&step.file, step.doing, &error))?;
        // The bytes that were read are written back.
        if let (DiskOp::Read { file, at, bytes }, DiskReply::Read(read)) = (step.op, reply) {
            if read.len() != bytes {
                let what = format!("it ends at byte {}", at + read.len() as u64);
                return Err(Damage::new(&file, at, what));
            }
            let op = DiskOp::Write {
                file,
                at,
                bytes: read,
                sync: false,
            };
            self.left.push_front(Step {
                file: step.file,
                doing: "write it",
                op,
            });
        }
        Ok(())
    }

    /// The result of loading, once no change is left to make.
    pub(super) fn finished(&self) -> Option<&Loaded> {
        self.left.is_empty().then_some(&self.loaded)
    }
}
