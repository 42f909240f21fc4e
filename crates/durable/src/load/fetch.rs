//! Reading spans of files ahead of their use.

use super::Damage;
use super::pass::Span;
use rufous_base::disk::{DiskDone, DiskOp, DiskReply, DiskRequest, Lane};
use std::collections::VecDeque;

pub(super) const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks that were requested and not yet taken.
const AHEAD: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Fetch {
    spans: Vec<Span>,
    /// The span and the offset in it of the next request.
    span: usize,
    offset: Option<u64>,
    chunks: VecDeque<Chunk>,
}

#[derive(Debug)]
struct Chunk {
    id: u64,
    span: usize,
    at: u64,
    len: u64,
    is_last: bool,
    bytes: Option<Vec<u8>>,
}

/// Bytes of a span, in order.
pub(super) struct Piece {
    pub(super) span: usize,
    pub(super) bytes: Vec<u8>,
    pub(super) is_last: bool,
}

impl Fetch {
    pub(super) fn new(spans: Vec<Span>) -> Self {
        Self {
            spans,
            ..Self::default()
        }
    }

    /// Makes further requests, with ids from `next_id` on.
    pub(super) fn poll(&mut self, next_id: &mut u64, out: &mut Vec<DiskRequest>) {
        while self.chunks.len() < AHEAD {
            let Some(span) = self.spans.get(self.span) else {
                return;
            };
            let at = self.offset.unwrap_or(span.from);
            let len = span.to.saturating_sub(at).min(CHUNK_BYTES);
            let is_last = at + len >= span.to;
            let id = *next_id;
            *next_id += 1;
            // No bytes are read of an empty span.
            let bytes = (len == 0).then(Vec::new);
            if bytes.is_none() {
                out.push(DiskRequest {
                    id,
                    lane: Lane::Bulk,
                    op: DiskOp::Read {
                        file: span.file.clone(),
                        at,
                        bytes: len as usize,
                    },
                });
            }
            self.chunks.push_back(Chunk {
                id,
                span: self.span,
                at,
                len,
                is_last,
                bytes,
            });
            self.offset = Some(at + len);
            if is_last {
                self.span += 1;
                self.offset = None;
            }
        }
    }

    pub(super) fn arrived(&mut self, done: DiskDone) -> Result<(), Damage> {
        let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.id == done.id) else {
            return Ok(());
        };
        let file = &self.spans[chunk.span].file;
        let bytes = match done.result {
            Ok(DiskReply::Read(bytes)) => bytes,
            Ok(_) => Vec::new(),
            Err(error) => return Err(Damage::disk(file, "read it", &error)),
        };
        if bytes.len() as u64 != chunk.len {
            let what = format!("it ends at byte {}", chunk.at + bytes.len() as u64);
            return Err(Damage::new(file, chunk.at, what));
        }
        chunk.bytes = Some(bytes);
        Ok(())
    }

    /// The next piece, if it has arrived.
    pub(super) fn take(&mut self) -> Option<Piece> {
        let bytes = self.chunks.front_mut()?.bytes.take()?;
        let chunk = self.chunks.pop_front()?;
        Some(Piece {
            span: chunk.span,
            bytes,
            is_last: chunk.is_last,
        })
    }

    /// Whether a result must arrive before the pass can continue.
    pub(super) fn is_waiting(&self) -> bool {
        let front = self.chunks.front();
        front.is_some_and(|chunk| chunk.bytes.is_none())
    }

    pub(super) fn is_finished(&self) -> bool {
        self.chunks.is_empty() && self.span >= self.spans.len()
    }
}
