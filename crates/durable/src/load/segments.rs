//! The segments of one log, as described by their headers.
//!
//! A segment was made, and its name synced, before the previous one was full; its header was
//! written with its first frames. So after a loss of power a segment may consist of zeros, or its
//! header may be incomplete; but if a header belongs to another file, or a segment is missing, that
//! is damage.

use super::super::file::{self, DataFile, FileHeader, HeaderError};
use super::Damage;
use super::pass::{Pass, Span, Target};
use super::plan::{Plan, SegmentFile};

/// A segment and the facts known of it before its frames are read.
#[derive(Clone, Debug)]
pub(in super::super) struct Segment {
    pub(in super::super) file: SegmentFile,
    pub(in super::super) state: SegmentState,
    /// Frames from this number on are void: a later segment has them.
    pub(super) limit: u64,
}

#[derive(Clone, Debug)]
pub(in super::super) enum SegmentState {
    Good(FileHeader),
    /// Zeros in place of the header.
    Unused,
    /// The header is not whole: written in part, or damaged.
    Torn,
    /// Why the segment cannot be trusted.
    Damaged(String),
    /// Written by a start with another number of workers that never served.
    Foreign(FileHeader),
}

impl Segment {
    /// How the file is shorter than it was made, if it is.
    pub(super) fn shortened(&self) -> Option<String> {
        let header = self.header()?;
        let is_short = self.file.bytes < header.reserved;
        is_short.then(|| {
            format!(
                "the file ends at byte {} and was made with {} bytes",
                self.file.bytes, header.reserved
            )
        })
    }

    pub(in super::super) fn header(&self) -> Option<&FileHeader> {
        match &self.state {
            SegmentState::Good(header) => Some(header),
            _ => None,
        }
    }
}

/// Reads the header of each segment.
#[derive(Debug)]
pub(in super::super) struct HeadersPass {
    plan: Plan,
    heads: Vec<Vec<u8>>,
}

impl HeadersPass {
    pub(in super::super) fn new(plan: &Plan) -> Self {
        Self {
            heads: vec![Vec::new(); plan.segments.len()],
            plan: plan.clone(),
        }
    }

    /// Ends the pass.
    pub(in super::super) fn segments(self) -> Result<Vec<Segment>, Damage> {
        let mut segments = Vec::new();
        for (file, head) in self.plan.segments.iter().zip(&self.heads) {
            segments.push(Segment {
                file: file.clone(),
                state: state(&self.plan, file, head)?,
                limit: u64::MAX,
            });
        }
        let mut limit = u64::MAX;
        for segment in segments.iter_mut().rev() {
            segment.limit = limit;
            if let Some(header) = segment.header() {
                limit = limit.min(header.first_seq);
            }
        }
        Ok(segments)
    }
}

fn state(plan: &Plan, segment: &SegmentFile, head: &[u8]) -> Result<SegmentState, Damage> {
    let header = match FileHeader::decode(head) {
        Ok(header) => header,
        Err(HeaderError::Unused) => return Ok(SegmentState::Unused),
        Err(error @ HeaderError::Newer(_)) => return Err(Damage::newer(&segment.file, error)),
        Err(HeaderError::Damaged) if segment.bytes < file::HEADER_BYTES as u64 => {
            return Ok(SegmentState::Damaged("it ends within its header".into()));
        }
        Err(HeaderError::Damaged) => return Ok(SegmentState::Torn),
    };
    if DataFile::parse(&segment.file) != Some(header.file()) {
        let what = format!("its header is that of {}", header.file().name());
        return Ok(SegmentState::Damaged(what));
    }
    if header.workers != plan.workers {
        return Ok(SegmentState::Foreign(header));
    }
    Ok(SegmentState::Good(header))
}

impl Pass for HeadersPass {
    fn spans(&self) -> Vec<Span> {
        let segments = self.plan.segments.iter();
        let head = |segment: &SegmentFile| Span {
            file: segment.file.clone(),
            from: 0,
            to: segment.bytes.min(file::HEADER_BYTES as u64),
        };
        segments.map(head).collect()
    }

    fn feed(&mut self, span: usize, bytes: &[u8], _: &mut dyn Target) -> Result<(), Damage> {
        self.heads[span].extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self, _: usize, _: &mut dyn Target) -> Result<(), Damage> {
        Ok(())
    }
}
