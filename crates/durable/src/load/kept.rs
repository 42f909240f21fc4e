//! Frames that may not have been synced, as they were first read.
//!
//! The operating system may drop data that it could not write, even between two reads of a file.
//! Such a frame is valid as it was first read, and is written again with that content
//! ([`super::apply::Change::Write`]).

use super::super::scan::Frame;
use std::collections::VecDeque;

/// The limit of bytes kept of one log, the newest ones; the rest is read again.
const MOST_BYTES: usize = 16 << 20;
/// The number of buffers kept for reuse.
const SPARE: usize = 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// In the order of the log.
    frames: VecDeque<KeptFrame>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct KeptFrame {
    seq: u64,
    /// The index of its segment in the log.
    segment: usize,
    offset: u64,
    bytes: Vec<u8>,
}

impl Kept {
    pub(super) fn push(&mut self, segment: usize, frame: &Frame<'_>) {
        if frame.bytes.len() > MOST_BYTES {
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(frame.bytes);
        self.bytes += bytes.len();
        self.frames.push_back(KeptFrame {
            seq: frame.seq,
            segment,
            offset: frame.offset,
            bytes,
        });
        while self.bytes > MOST_BYTES {
            self.pop();
        }
    }

    /// Frames below this number are known to be synced.
    pub(super) fn forget_below(&mut self, seq: u64) {
        while self.frames.front().is_some_and(|frame| frame.seq < seq) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(KeptFrame { mut bytes, .. }) = self.frames.pop_front() {
            self.bytes -= bytes.len();
            bytes.clear();
            if self.spare.len() < SPARE {
                self.spare.push(bytes);
            }
        }
    }

    /// Frames of a segment that end behind `from`.
    fn behind(&self, segment: usize, from: u64) -> impl Iterator<Item = &KeptFrame> {
        let before = |frame: &KeptFrame| {
            (frame.segment, frame.offset + frame.bytes.len() as u64) <= (segment, from)
        };
        let first = self.frames.partition_point(before);
        let rest = self.frames.range(first..);
        rest.take_while(move |frame| frame.segment == segment)
    }

    /// The bytes of a segment from `at` on, as they were first read; `None` where none of them are
    /// kept.
    pub(super) fn restored(&self, segment: usize, at: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        let end = at + bytes.len() as u64;
        let mut restored = None;
        for frame in self.behind(segment, at).take_while(|f| f.offset < end) {
            let bytes = restored.get_or_insert_with(|| bytes.to_vec());
            let (from, skip) = match frame.offset.checked_sub(at) {
                Some(from) => (from as usize, 0),
                None => (0, (at - frame.offset) as usize),
            };
            let kept = &frame.bytes[skip..];
            let len = kept.len().min(bytes.len() - from);
            bytes[from..from + len].copy_from_slice(&kept[..len]);
        }
        restored
    }

    /// The frames of a segment from one that starts at `from` up to one that
    /// ends at `end`, if all are kept.
    pub(super) fn stretch(&self, segment: usize, from: u64, end: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for frame in self.behind(segment, from).take_while(|f| f.offset < end) {
            if frame.offset != from + bytes.len() as u64 {
                return None;
            }
            bytes.extend_from_slice(&frame.bytes);
        }
        (from + bytes.len() as u64 == end).then_some(bytes)
    }
}
