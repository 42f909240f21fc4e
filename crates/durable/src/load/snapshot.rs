//! Reading one snapshot: a key per effect, and an end mark with their number.

use super::super::entry::Entry;
use super::super::file::{self, DataFile, FileHeader, FileKind, HeaderError};
use super::super::scan::{FrameReader, Step};
use super::Damage;
use super::pass::{Pass, Span, Stage, Target};
use super::plan::{Plan, SnapshotPlan};
use crc32fast::Hasher;
use rufous_base::disk::FileName;
use rufous_store::effect::Effect;

/// One pass over a snapshot's file.
#[derive(Debug)]
pub(in super::super) struct SnapshotPass {
    plan: SnapshotPlan,
    partition: u16,
    workers: u16,
    head: Vec<u8>,
    reader: Option<FrameReader>,
    crc: Hasher,
    /// The keys in whole frames before any damage.
    pub(in super::super) keys: u64,
    pub(in super::super) frames: u64,
    pub(in super::super) frames_end: u64,
    stage: Stage,
    ended: bool,
    /// No error was found so far.
    is_whole: bool,
}

impl SnapshotPass {
    pub(in super::super) fn new(plan: &Plan) -> Option<Self> {
        let snapshot = plan.snapshot.clone()?;
        Some(Self {
            plan: snapshot,
            partition: plan.partition,
            workers: plan.workers,
            head: Vec::new(),
            reader: None,
            crc: Hasher::new(),
            keys: 0,
            frames: 0,
            frames_end: file::HEADER_BYTES as u64,
            stage: Stage::default(),
            ended: false,
            is_whole: true,
        })
    }

    fn file(&self) -> &FileName {
        &self.plan.named.file
    }

    fn damage(&self, offset: impl Into<Option<u64>>, what: impl Into<String>) -> Damage {
        Damage::new(self.file(), offset, what.into())
    }

    /// Keys and checksum of a file that is complete according to its own end mark.
    pub(in super::super) fn whole(&self) -> Option<(u64, u32)> {
        let whole = self.ended && self.is_whole;
        whole.then(|| (self.keys, self.crc.clone().finalize()))
    }

    /// Whether a file of the right size exists.
    pub(in super::super) fn presence(&self) -> Result<(), Damage> {
        let bytes = self.plan.named.bytes;
        match self.plan.found {
            Some(found) if found == bytes => Ok(()),
            Some(found) => {
                let what = format!("it has {found} bytes; the manifest records {bytes}");
                Err(self.damage(None, what))
            }
            None => Err(self.damage(None, "missing, although the manifest names it")),
        }
    }

    fn start(&mut self) -> Result<(), Damage> {
        let header = match FileHeader::decode(&self.head) {
            Ok(header) => header,
            Err(error @ HeaderError::Newer(_)) => return Err(Damage::newer(self.file(), error)),
            Err(error) => return Err(self.damage(0, error.to_string())),
        };
        let named = DataFile::parse(self.file());
        if named != Some(header.file())
            || header.kind != FileKind::Snapshot
            || (header.worker, header.workers) != (self.partition, self.workers)
        {
            return Err(self.damage(0, "it is the snapshot of another worker or time"));
        }
        let bytes = self.plan.found.unwrap_or(0);
        self.reader = Some(FrameReader::new(&header, bytes));
        Ok(())
    }

    fn frames(&mut self, target: &mut dyn Target) -> Result<(), Damage> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let file = &self.plan.named.file;
        let damage = |offset: u64, what: &str| Err(Damage::new(file, offset, what.into()));
        loop {
            let frame = match reader.next() {
                Step::Frame(frame) => frame,
                Step::NeedMore | Step::End { .. } => return Ok(()),
                Step::Bad(bad) => return damage(bad.offset, &bad.why.to_string()),
            };
            if self.ended {
                return damage(frame.offset, "frames follow its end");
            }
            let mut keys = 0;
            let mut rest = frame.payload;
            while !rest.is_empty() {
                let start = rest;
                match Entry::decode(&mut rest) {
                    Ok(Entry::Effect(
                        effect @ (Effect::Set { .. }
                        | Effect::Put { .. }
                        | Effect::More { .. }
                        | Effect::Keyspaces { .. }
                        | Effect::Horizon { .. }
                        | Effect::Slot { .. }
                        | Effect::Node { .. }
                        | Effect::Reported { .. }),
                    )) if !self.ended => {
                        // The rest of a large value belongs to a key that was counted.
                        let is_key = matches!(effect, Effect::Set { .. } | Effect::Put { .. });
                        keys += u64::from(is_key);
                        let effect = &start[..start.len() - rest.len()];
                        if self.stage.push(effect, target).is_err() {
                            return damage(frame.offset, "a key is none");
                        }
                    }
                    Ok(Entry::SnapshotEnd { keys: of, frames }) if !self.ended => {
                        if (of, frames) != (self.keys + keys, self.frames) {
                            let what = format!(
                                "it has {} keys in {} frames; its end mark records {of} in {frames}",
                                self.keys + keys,
                                self.frames
                            );
                            return damage(frame.offset, &what);
                        }
                        self.ended = true;
                    }
                    _ => return damage(frame.offset, "a frame holds what no snapshot does"),
                }
            }
            self.keys += keys;
            if !self.ended {
                self.frames += 1;
                let header = super::super::frame::HEADER_BYTES as u64;
                self.frames_end = frame.offset + header + frame.payload.len() as u64;
            }
        }
    }
}

impl Pass for SnapshotPass {
    fn spans(&self) -> Vec<Span> {
        vec![Span {
            file: self.file().clone(),
            from: 0,
            to: self.plan.found.unwrap_or(0),
        }]
    }

    fn feed(&mut self, _: usize, bytes: &[u8], target: &mut dyn Target) -> Result<(), Damage> {
        self.crc.update(bytes);
        let missing = file::HEADER_BYTES - self.head.len();
        let (head, rest) = bytes.split_at(missing.min(bytes.len()));
        self.head.extend_from_slice(head);
        if self.reader.is_none() {
            if self.head.len() < file::HEADER_BYTES {
                return Ok(());
            }
            self.start()?;
        }
        if let Some(reader) = &mut self.reader {
            reader.feed(rest);
        }
        let result = self.frames(target);
        self.is_whole &= result.is_ok();
        result
    }

    fn end(&mut self, _: usize, target: &mut dyn Target) -> Result<(), Damage> {
        if self.stage.flush(target).is_err() {
            return Err(self.damage(None, "a key is none"));
        }
        if self.reader.is_none() {
            return Err(self.damage(0, HeaderError::Damaged.to_string()));
        }
        if !self.ended {
            return Err(self.damage(self.frames_end, "it ends before its end mark"));
        }
        let named = &self.plan.named;
        if self.keys != named.keys {
            let what = format!(
                "it has {} keys; the manifest records {}",
                self.keys, named.keys
            );
            return Err(self.damage(None, what));
        }
        if self.crc.clone().finalize() != named.crc {
            return Err(self.damage(None, "its checksum is not that of the manifest"));
        }
        Ok(())
    }
}
