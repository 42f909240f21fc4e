//! The valid part of one log: its frames up to the first that is not whole.
//!
//! Frames are numbered over all segments and generations, so every gap is detected. All frames from
//! the first missing or bad one on are given up, unless it is known that this frame had been
//! synced. Then durable data was lost, and the start stops for a person to decide. Proofs:
//! - a later frame says so (it records which frames are known to be synced when it is written);
//! - a later segment of a later run begins behind it: before a node serves, it syncs the data that
//!   it has loaded;
//! - a frame is whole but for one bit: see [`super::super::flip`];
//! - damage that a loss of power does not cause: see [`super::segments`], and frames that are whole
//!   but contain invalid entries.

use super::super::evidence::EvidenceFinder;
use super::super::file::{self, FileHeader, FileKind};
use super::super::flip::is_whole_but_for_a_bit;
use super::super::resolve::Parts;
use super::super::scan::{FrameReader, Step};
use super::Damage;
use super::entries::note;
use super::kept::Kept;
use super::pass::{Pass, Span, Target};
use super::plan::Plan;
use super::segments::{Segment, SegmentState};
use rufous_base::disk::FileName;
use rufous_store::planted::{self, Planted};

/// The first invalid frame, and the bytes behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    pub file: FileName,
    pub offset: u64,
    pub seq: u64,
    pub why: String,
    /// Whole frames behind it.
    pub frames: u64,
    /// Bytes behind it, except zeros at the ends of files.
    pub bytes: u64,
    /// Why it must have been on disk; `None`: power was lost before that.
    pub proof: Option<String>,
}

/// The result of one pass over a log.
#[derive(Clone, Debug, Default)]
pub struct LogSummary {
    /// Commands over several workers in the valid frames.
    pub parts: Parts,
    /// Frames from `start` up to `end` are valid.
    pub start: u64,
    pub end: u64,
    pub broken: Option<Break>,
    /// Frames before this one had been synced, according to valid frames.
    pub synced: u64,
    /// The highest run of a segment.
    pub run: u64,
    /// Whether the last frame records an orderly shutdown of the node.
    pub clean: bool,
    /// Whether there is a file of the log at all.
    pub present: bool,
}

impl Scanned {
    /// Segments, and the ends of their valid frames.
    pub(in super::super) fn ends(&self) -> impl Iterator<Item = (&Segment, u64)> {
        self.segments.iter().zip(self.ends.iter().copied())
    }
}

impl LogSummary {
    pub fn frames(&self) -> u64 {
        self.end - self.start
    }

    /// The damage that stops a start.
    pub fn corruption(&self) -> Option<Damage> {
        let broken = self.broken.as_ref()?;
        let proof = broken.proof.as_ref()?;
        let what = format!("{} (frame {}), and {proof}", broken.why, broken.seq);
        Some(Damage::new(&broken.file, broken.offset, what))
    }
}

/// One pass over all segments of a log.
#[derive(Debug)]
pub(in super::super) struct LogPass {
    segments: Vec<Segment>,
    /// The end of the valid frames in each segment.
    ends: Vec<u64>,
    /// The ends of all bytes but zeros in each segment.
    filled: Vec<u64>,
    model: FileHeader,
    mode: Mode,
    /// The number of the next frame.
    next: u64,
    usable: Option<usize>,
    kept: Kept,
    summary: LogSummary,
}

/// The data that a pass over a log leaves for the one that applies it.
#[derive(Clone, Debug)]
pub(in super::super) struct Scanned {
    pub(in super::super) summary: LogSummary,
    pub(in super::super) segments: Vec<Segment>,
    /// The end of the valid frames in each segment.
    pub(super) ends: Vec<u64>,
    /// The ends of all bytes but zeros in each segment.
    pub(super) filled: Vec<u64>,
    /// The number of segments, from the first on, that may be kept.
    pub(super) usable: usize,
    pub(super) kept: Kept,
}

#[derive(Debug)]
enum Mode {
    Frames(FrameReader),
    /// Void, or without any information.
    Ignore,
    /// Only zeros are expected, from this offset on.
    Zeros(u64),
    /// Behind a break: searched for proofs.
    Hunt {
        finder: EvidenceFinder,
        at: u64,
        written: u64,
        from: u64,
    },
}

impl LogPass {
    pub(in super::super) fn new(plan: &Plan, segments: Vec<Segment>) -> Self {
        let run = segments.iter().filter_map(Segment::header).map(|h| h.run);
        let start = plan.first_seq();
        Self {
            summary: LogSummary {
                start,
                run: run.max().unwrap_or(0),
                present: !segments.is_empty(),
                ..LogSummary::default()
            },
            ends: Vec::with_capacity(segments.len()),
            filled: Vec::with_capacity(segments.len()),
            segments,
            model: FileHeader {
                kind: FileKind::Log,
                generation: 0,
                worker: plan.partition,
                workers: plan.workers,
                index: 0,
                run: 0,
                first_seq: 0,
                salt: plan.salt,
                reserved: 0,
            },
            mode: Mode::Ignore,
            next: start,
            usable: None,
            kept: Kept::default(),
        }
    }

    /// Ends the pass.
    pub(in super::super) fn finish(mut self) -> Scanned {
        self.summary.end = self.next;
        // The entries of an invalid frame may have been recorded in part.
        self.summary.parts.cut(self.summary.end);
        Scanned {
            usable: self.usable.unwrap_or(self.segments.len()),
            summary: self.summary,
            segments: self.segments,
            ends: self.ends,
            filled: self.filled,
            kept: self.kept,
        }
    }

    fn start(&mut self, at: usize) {
        let content = file::HEADER_BYTES as u64;
        self.ends.push(content);
        if let Some(gap) = self.gap(at) {
            self.give_up(at, 0, &gap, Some("segments before it are never removed"));
        }
        let segment = &self.segments[at];
        let bytes = segment.file.bytes;
        if self.summary.broken.is_some() {
            self.mode = self.hunt(at, content.min(bytes));
            self.note_run(at);
            return;
        }
        let is_void = segment.limit <= self.next;
        match segment.state.clone() {
            SegmentState::Foreign(_) => self.mode = Mode::Zeros(content),
            // A later segment has all frames that this one could have: even an unreadable header
            // does not matter.
            _ if is_void => self.mode = Mode::Ignore,
            SegmentState::Good(header) => self.start_good(at, header),
            SegmentState::Unused => self.mode = Mode::Zeros(content),
            // It is written with the segment's first frames: if it was lost with the power, the log
            // ends here, unless those frames had been synced.
            SegmentState::Torn => {
                self.give_up(at, 0, "its header is not whole", None);
                self.mode = self.hunt(at, content.min(bytes));
            }
            SegmentState::Damaged(why) => {
                self.give_up(at, 0, &why, Some("that is not how power fails"));
                self.mode = self.hunt(at, content.min(bytes));
            }
        }
    }

    fn start_good(&mut self, at: usize, header: FileHeader) {
        if header.first_seq > self.next {
            let why = format!("frames before {} are missing", header.first_seq);
            self.give_up(at, 0, &why, None);
            self.mode = self.hunt(at, file::HEADER_BYTES as u64);
            self.note_run(at);
        } else if header.first_seq < self.next {
            let why = format!("it begins with frame {}", header.first_seq);
            self.give_up(at, 0, &why, Some("that is in the snapshot"));
            self.mode = self.hunt(at, file::HEADER_BYTES as u64);
        } else {
            self.mode = Mode::Frames(FrameReader::new(&header, self.segments[at].file.bytes));
        }
    }

    /// Whether a segment between this one and the one before is missing.
    fn gap(&self, at: usize) -> Option<String> {
        if self.summary.broken.is_some() || self.is_foreign(at) {
            return None;
        }
        let this = &self.segments[at].file;
        let before = (0..at).rev().find(|i| !self.is_foreign(*i));
        let before = before.map(|i| &self.segments[i].file);
        let expected = match before {
            Some(before) if before.generation == this.generation => before.index + 1,
            _ => 0,
        };
        (this.index != expected).then(|| {
            format!(
                "segment {expected} of generation {} is missing",
                this.generation
            )
        })
    }

    fn is_foreign(&self, at: usize) -> bool {
        matches!(self.segments[at].state, SegmentState::Foreign(_))
    }

    /// A header for the search for frames: that of the segment, or of another one with the same
    /// frame seed, or a constructed one.
    fn header_for(&self, at: usize) -> FileHeader {
        let this = &self.segments[at];
        if let Some(header) = this.header() {
            return *header;
        }
        let generation = this.file.generation;
        let alike = self.segments.iter().filter_map(Segment::header);
        let alike = alike.copied().find(|h| h.generation == generation);
        alike.unwrap_or(FileHeader {
            generation,
            ..self.model
        })
    }

    fn hunt(&self, at: usize, offset: u64) -> Mode {
        let segment = &self.segments[at];
        let seq = self.summary.broken.as_ref().map_or(0, |b| b.seq);
        let seq = segment
            .header()
            .map_or(seq, |h| seq.max(h.first_seq.saturating_sub(1)));
        let header = self.header_for(at);
        Mode::Hunt {
            finder: EvidenceFinder::new(&header, segment.file.bytes, offset, seq),
            at: offset,
            written: offset,
            from: offset,
        }
    }

    fn give_up(&mut self, at: usize, offset: u64, why: &str, proof: Option<&str>) {
        if self.summary.broken.is_none() {
            // A segment without its header, or out of its place, cannot be kept.
            self.usable = Some(if offset == 0 { at } else { at + 1 });
            self.summary.broken = Some(Break {
                file: self.segments[at].file.file.clone(),
                offset,
                seq: self.next,
                why: why.to_owned(),
                frames: 0,
                bytes: 0,
                proof: proof.map(str::to_owned),
            });
        }
    }

    /// A segment is shorter than it was made: no loss of power does that.
    fn note_length(&mut self, at: usize) {
        let Some(why) = self.segments[at].shortened() else {
            return;
        };
        const PROOF: &str = "files are never shortened by a loss of power";
        self.give_up(at, self.ends[at], &why, Some(PROOF));
        let here = &self.segments[at].file.file;
        let broken = self.summary.broken.as_ref();
        if broken.is_some_and(|broken| broken.file == *here) {
            self.prove(|| format!("{why}: {PROOF}"));
        }
    }

    fn prove(&mut self, proof: impl FnOnce() -> String) {
        if let Some(broken) = &mut self.summary.broken {
            broken.proof.get_or_insert_with(proof);
        }
    }

    /// The header of a later run is a proof for the frames before it, if the first segment of that
    /// run is known; this may be one that cannot be read.
    fn note_run(&mut self, at: usize) {
        let Some(header) = self.segments[at].header().copied() else {
            return;
        };
        let before = (0..at).rev().find(|i| !self.is_foreign(*i));
        let before = before.and_then(|i| self.segments[i].header());
        let run = before.map_or(header.run, |h| h.run);
        let seq = self.summary.broken.as_ref().map_or(u64::MAX, |b| b.seq);
        if header.run > run && header.first_seq > seq {
            let file = self.segments[at].file.file.clone();
            self.prove(|| format!("a later start of the node found it ({file})"));
        }
    }

    fn frames(&mut self, at: usize) {
        let limit = self.segments[at].limit;
        let Mode::Frames(reader) = &mut self.mode else {
            return;
        };
        let bad = loop {
            if reader.next_seq() >= limit {
                self.mode = Mode::Ignore;
                return;
            }
            match reader.next() {
                Step::Frame(found) => {
                    let clean = note(&mut self.summary.parts, found.seq, found.payload);
                    let Ok(clean) = clean else {
                        break (found.offset, "it holds what no log does".to_owned(), true);
                    };
                    self.summary.clean = clean;
                    self.ends[at] = found.offset + found.bytes.len() as u64;
                    self.next = found.seq + 1;
                    self.summary.synced = self.summary.synced.max(found.synced);
                    self.kept.push(at, &found);
                    self.kept.forget_below(self.summary.synced);
                }
                Step::NeedMore | Step::End { .. } => return,
                Step::Bad(bad) => break (bad.offset, bad.why.to_string(), false),
            }
        };
        let (offset, why, senseless) = bad;
        let rest = reader.rest().to_vec();
        let rest_at = reader.fed() - rest.len() as u64;
        let mut proof = senseless.then_some("its checksum is right");
        if rest_at == offset && !senseless {
            let seed = reader.seed();
            let flipped = is_whole_but_for_a_bit(seed, self.next, offset, &rest)
                && !planted::is(Planted::FlipTakenForTorn);
            proof =
                flipped.then_some("it is whole but for one bit, which no loss of power changes");
        }
        self.give_up(at, offset, &why, proof);
        self.mode = self.hunt(at, rest_at);
        if let Mode::Hunt { from, .. } = &mut self.mode {
            *from = offset;
        }
        self.look(&rest);
    }

    /// Searches the bytes behind a break for proofs.
    fn look(&mut self, bytes: &[u8]) {
        let Mode::Hunt {
            finder,
            at,
            written,
            ..
        } = &mut self.mode
        else {
            return;
        };
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            *written = *at + last as u64 + 1;
        }
        *at += bytes.len() as u64;
        finder.feed(bytes);
    }

    fn zeros(&mut self, at: usize, bytes: &[u8]) -> Result<(), Damage> {
        let Mode::Zeros(offset) = &mut self.mode else {
            return Ok(());
        };
        let here = *offset;
        *offset += bytes.len() as u64;
        let Some(first) = bytes.iter().position(|byte| *byte != 0) else {
            return Ok(());
        };
        if let SegmentState::Foreign(header) = &self.segments[at].state {
            let what = format!(
                "it was written by {} workers, and other files are not",
                header.workers
            );
            return Err(Damage::new(
                &self.segments[at].file.file,
                here + first as u64,
                what,
            ));
        }
        self.give_up(at, 0, "the header is missing", None);
        self.mode = self.hunt(at, here);
        self.look(bytes);
        Ok(())
    }
}

impl Pass for LogPass {
    fn spans(&self) -> Vec<Span> {
        let content = file::HEADER_BYTES as u64;
        let segments = self.segments.iter().map(|segment| Span {
            file: segment.file.file.clone(),
            from: content.min(segment.file.bytes),
            to: segment.file.bytes,
        });
        segments.collect()
    }

    fn feed(&mut self, at: usize, bytes: &[u8], _: &mut dyn Target) -> Result<(), Damage> {
        while self.ends.len() <= at {
            self.start(self.ends.len());
        }
        match &mut self.mode {
            Mode::Ignore => {}
            Mode::Zeros(_) => self.zeros(at, bytes)?,
            Mode::Hunt { .. } => self.look(bytes),
            Mode::Frames(reader) => {
                reader.feed(bytes);
                self.frames(at);
            }
        }
        Ok(())
    }

    fn end(&mut self, at: usize, target: &mut dyn Target) -> Result<(), Damage> {
        // A file without bytes behind its header is a break or an end, too.
        self.feed(at, &[], target)?;
        if !matches!(self.mode, Mode::Ignore) {
            self.note_length(at);
        }
        self.filled.push(match self.mode {
            Mode::Hunt { written, .. } => written.max(self.ends[at]),
            _ => self.ends[at],
        });
        let Mode::Hunt {
            finder,
            written,
            from,
            ..
        } = &self.mode
        else {
            return Ok(());
        };
        let found = finder.found();
        let bytes = written.saturating_sub(*from);
        if let Some(broken) = &mut self.summary.broken {
            broken.frames += found.frames;
            broken.bytes += bytes;
            let proven = found.proves(broken.seq);
            let file = self.segments[at].file.file.clone();
            if proven && let Some(offset) = found.first_offset {
                self.prove(|| {
                    format!(
                        "frames behind it say that it had been synced ({file}, from byte {offset})"
                    )
                });
            }
        }
        Ok(())
    }
}
