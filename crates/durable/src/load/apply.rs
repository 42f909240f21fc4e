//! Applying the valid part of a log, and removing the rest.

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
    /// The ends of all bytes but zeros in each segment.
    filled: Vec<u64>,
    /// The segments with valid frames, and the ends of these.
    spans: Vec<(usize, u64)>,
    reader: Option<FrameReader>,
    stage: Stage,
    /// The first invalid frame.
    end: u64,
    skip: HashSet<TxnId>,
    /// Frames and bytes behind a cut that incomplete commands require.
    pub(in super::super) cut: (u64, u64),
    pub(in super::super) frames: u64,
    /// The last segment that is kept, and its end.
    last: Option<(usize, u64)>,
    broken: bool,
    /// Frames before this one are known to be synced.
    synced: u64,
    /// The ranges that are not known to be synced, by segment.
    unsure: Vec<(usize, u64, u64)>,
    kept: Kept,
}

impl ApplyPass {
    pub(in super::super) fn new(scanned: Scanned, verdict: Verdict) -> Self {
        let Scanned {
            summary,
            segments,
            ends,
            filled,
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
            filled,
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

    /// The number of the next frame in this log.
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

    /// The changes of files after the pass, in order: after each step the log would be loaded with
    /// the same result.
    pub(in super::super) fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let first_gone = self.last.map_or(0, |(at, _)| at + 1);
        // Beginning at the end: a gap would be taken for damage.
        for (at, segment) in self.segments.iter().enumerate().skip(first_gone).rev() {
            let file = segment.file.file.clone();
            // An empty log still has a file; a log without files is missing.
            let stays = at == 0 && !matches!(segment.state, SegmentState::Foreign(_));
            changes.push(match stays {
                true => Change::Empty(file, segment.file.bytes),
                false => Change::Remove(file),
            });
        }
        // Files of a start with another number of workers do no harm, but must not stay.
        for segment in &self.segments[..first_gone] {
            if matches!(segment.state, SegmentState::Foreign(_)) {
                changes.push(Change::Remove(segment.file.file.clone()));
            }
        }
        if let Some((at, end)) = self.last
            && (self.broken || self.cut.0 > 0)
        {
            let file = self.segments[at].file.file.clone();
            let reserved = self.segments[at].header().map_or(0, |h| h.reserved);
            changes.push(match reserved {
                0 => Change::Truncate(file, end),
                // A file must not become shorter than its header says.
                _ => Change::Clear(file, (end, self.filled[at].max(end), reserved)),
            });
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

/// A change of files; it is durable before the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Change {
    Remove(FileName),
    /// Makes the file empty; it has this many bytes, none of them valid.
    Empty(FileName, u64),
    Truncate(FileName, u64),
    /// Fills a range with zeros; the file was made with the number of bytes that follows.
    Clear(FileName, (u64, u64, u64)),
    /// Writes the bytes of a range again as they are: after a failed sync, bytes can still be read,
    /// but the next sync does not write them.
    Rewrite(FileName, u64, u64),
    /// As `Rewrite`, where the bytes that were first read are known.
    Write(FileName, u64, Vec<u8>),
    Sync(FileName),
}

/// Applies the effects of a frame.
fn apply(
    payload: &[u8],
    skip: &HashSet<TxnId>,
    stage: &mut Stage,
    target: &mut dyn Target,
) -> Result<(), NotAnEffect> {
    let mut rest = payload;
    while !rest.is_empty() {
        let start = rest;
        match Entry::decode_in(payload, &mut rest)? {
            Entry::Repeated(effect) => {
                let mut whole = Vec::new();
                effect.encode(&mut whole);
                stage.push(&whole, target)?;
            }
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
