//! Applying what counts of a log, and taking away the rest of it.

use super::super::entry::{Entry, TxnId};
use super::super::file::{self, FileHeader};
use super::super::resolve::Verdict;
use super::super::scan::{FrameReader, Step};
use super::Damage;
use super::kept::Kept;
use super::log::Scanned;
use super::pass::{Pass, Span, Stage, Target};
use super::segments::{Segment, SegmentState};
use rufous_base::disk::FileName;
use rufous_store::effect::{Effect, NotAnEffect};
use std::collections::HashSet;

/// The second pass over a log.
#[derive(Debug)]
pub(in super::super) struct ApplyPass {
    segments: Vec<Segment>,
    /// Which segments have frames that count, and where those end.
    spans: Vec<(usize, u64)>,
    reader: Option<FrameReader>,
    stage: Stage,
    /// The first frame that does not count.
    end: u64,
    skip: HashSet<TxnId>,
    /// Frames and bytes behind a cut forced by commands that are not whole.
    pub(in super::super) cut: (u64, u64),
    pub(in super::super) frames: u64,
    /// The last segment that is kept, and where it ends.
    last: Option<(usize, u64)>,
    broken: bool,
    /// Frames before this one are known to be synced.
    synced: u64,
    /// What is not, of each segment: from and up to where.
    unsure: Vec<(usize, u64, u64)>,
    kept: Kept,
}

impl ApplyPass {
    pub(in super::super) fn new(scanned: Scanned, verdict: Verdict) -> Self {
        let Scanned {
            summary,
            segments,
            ends,
            usable,
            kept,
        } = scanned;
        let end = verdict.cut.map_or(summary.end, |cut| cut.min(summary.end));
        let content = file::HEADER_BYTES as u64;
        let mut spans = Vec::new();
        let mut last = None;
        let mut bytes_cut = 0;
        for (at, (segment, offset)) in segments.iter().zip(ends).enumerate().take(usable) {
            let Some(header) = segment.header() else {
                continue;
            };
            if header.first_seq > end {
                bytes_cut += offset - content;
                continue;
            }
            last = Some((at, content));
            if offset > content {
                spans.push((at, offset));
            }
        }
        Self {
            segments,
            spans,
            reader: None,
            stage: Stage::default(),
            end,
            skip: verdict.skip,
            cut: (summary.end - end, bytes_cut),
            frames: 0,
            last,
            broken: summary.broken.is_some(),
            synced: summary.synced,
            unsure: Vec::new(),
            kept,
        }
    }

    /// The number of the frame that comes next in this log.
    pub(in super::super) fn next_seq(&self) -> u64 {
        self.end
    }

    /// The header of the last segment that is kept.
    pub(in super::super) fn last_header(&self) -> Option<&FileHeader> {
        self.last.and_then(|(at, _)| self.segments[at].header())
    }

    fn frames(&mut self, span: usize, target: &mut dyn Target) -> Result<(), Damage> {
        let (at, _) = self.spans[span];
        let segment = &self.segments[at];
        let file = &segment.file.file;
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        while reader.next_seq() < segment.limit {
            let found = match reader.next() {
                Step::Frame(found) => found,
                Step::NeedMore | Step::End { .. } => break,
                Step::Bad(bad) => {
                    let what = "it is not what it was a moment ago";
                    return Err(Damage::new(file, bad.offset, what.into()));
                }
            };
            let bytes = found.bytes.len() as u64;
            if found.seq >= self.end {
                self.cut.1 += bytes;
                continue;
            }
            if apply(found.payload, &self.skip, &mut self.stage, target).is_err() {
                let what = "it cannot be applied";
                return Err(Damage::new(file, found.offset, what.into()));
            }
            self.frames += 1;
            let end = found.offset + bytes;
            if found.seq >= self.synced {
                match self.unsure.last_mut() {
                    Some(unsure) if unsure.0 == at => unsure.2 = end,
                    _ => self.unsure.push((at, found.offset, end)),
                }
            }
            if let Some(last) = &mut self.last
                && last.0 == at
            {
                last.1 = end;
            }
        }
        Ok(())
    }

    /// A segment's header was written with its first frame.
    fn write_again(&self, at: usize, from: u64, end: u64) -> Change {
        let segment = &self.segments[at];
        let file = segment.file.file.clone();
        let header = segment
            .header()
            .filter(|_| from <= file::HEADER_BYTES as u64);
        let start = if header.is_some() { 0 } else { from };
        let Some(mut bytes) = self.kept.stretch(at, from, end) else {
            return Change::Rewrite(file, start, end);
        };
        if let Some(header) = header {
            bytes.splice(..0, header.encode());
        }
        Change::Write(file, start, bytes)
    }

    /// What is to be done to the files, in order, after the pass: each step
    /// leaves a log of which the same would be loaded.
    pub(in super::super) fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let first_gone = self.last.map_or(0, |(at, _)| at + 1);
        // From the end on: a gap would be taken for damage.
        for (at, segment) in self.segments.iter().enumerate().skip(first_gone).rev() {
            let file = segment.file.file.clone();
            // A log that holds nothing is there all the same; none at all is missing.
            let stays = at == 0 && !matches!(segment.state, SegmentState::Foreign(_));
            changes.push(match stays {
                true => Change::Empty(file, segment.file.bytes),
                false => Change::Remove(file),
            });
        }
        // What another number of workers began is in nobody's way, but must not stay.
        for segment in &self.segments[..first_gone] {
            if matches!(segment.state, SegmentState::Foreign(_)) {
                changes.push(Change::Remove(segment.file.file.clone()));
            }
        }
        if let Some((at, end)) = self.last
            && (self.broken || self.cut.0 > 0)
        {
            let file = self.segments[at].file.file.clone();
            changes.push(Change::Truncate(file, end));
        }
        for (at, from, end) in &self.unsure {
            changes.push(self.write_again(*at, *from, *end));
        }
        for segment in &self.segments[..first_gone] {
            if segment.header().is_some() {
                changes.push(Change::Sync(segment.file.file.clone()));
            }
        }
        changes
    }
}

/// A change of files; it lasts before the next one is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Change {
    Remove(FileName),
    /// Of so many bytes, that do not count.
    Empty(FileName, u64),
    Truncate(FileName, u64),
    /// Written again as it is, from and up to these places: what a sync that
    /// failed was to write is read again, but not written by the next sync.
    Rewrite(FileName, u64, u64),
    /// Likewise, where it is known what was read.
    Write(FileName, u64, Vec<u8>),
    Sync(FileName),
}

/// Hands on the effects of a frame.
fn apply(
    payload: &[u8],
    skip: &HashSet<TxnId>,
    stage: &mut Stage,
    target: &mut dyn Target,
) -> Result<(), NotAnEffect> {
    let mut rest = payload;
    while !rest.is_empty() {
        let start = rest;
        match Entry::decode(&mut rest)? {
            Entry::Effect(_) => stage.push(&start[..start.len() - rest.len()], target)?,
            Entry::Piece { txn, .. } if skip.contains(&txn) => {}
            Entry::Piece { effects, .. } => {
                let mut rest = effects.bytes();
                while !rest.is_empty() {
                    let start = rest;
                    Effect::decode(&mut rest)?;
                    stage.push(&start[..start.len() - rest.len()], target)?;
                }
            }
            Entry::Done { .. } | Entry::CleanEnd => {}
            Entry::SnapshotEnd { .. } => return Err(NotAnEffect),
        }
    }
    Ok(())
}

impl Pass for ApplyPass {
    fn spans(&self) -> Vec<Span> {
        let spans = self.spans.iter().map(|(at, end)| Span {
            file: self.segments[*at].file.file.clone(),
            from: file::HEADER_BYTES as u64,
            to: *end,
        });
        spans.collect()
    }

    fn feed(&mut self, span: usize, bytes: &[u8], target: &mut dyn Target) -> Result<(), Damage> {
        let (at, end) = self.spans[span];
        if self.reader.is_none() {
            let header = self.segments[at].header();
            self.reader = header.map(|header| FrameReader::new(header, end));
        }
        if let Some(reader) = &mut self.reader {
            let restored = self.kept.restored(at, reader.fed(), bytes);
            reader.feed(restored.as_deref().unwrap_or(bytes));
        }
        self.frames(span, target)
    }

    fn end(&mut self, span: usize, target: &mut dyn Target) -> Result<(), Damage> {
        self.reader = None;
        self.stage.flush(target).map_err(|_| {
            let (at, _) = self.spans[span];
            let file = &self.segments[at].file.file;
            Damage::new(file, None, "it cannot be applied".into())
        })
    }
}
