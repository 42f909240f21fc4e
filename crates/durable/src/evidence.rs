//! Evidence: readable frames behind a damaged place of a log.
//!
//! A bad frame is a torn tail, to be cut off, unless a frame written later says that it had been
//! synced: then durable data was lost. The finder looks for such frames at every byte, in one pass:
//! the checksum of any range follows from the checksums of the file up to both of its ends, so that
//! many overlapping candidates cost no more than their headers.

use super::file::FileHeader;
use super::frame::{FrameHeader, HEADER_BYTES};
use crc32fast::Hasher;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The limit of undecided candidates. Only forged bytes have so many.
const MOST_PENDING: usize = 1 << 16;
/// The offset at which the payload's checksum starts in a frame: behind the fields that it covers.
const FIELDS: usize = 20;

/// Whole frames of the same log behind a bad place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    pub frames: u64,
    /// The offset of the first of them.
    pub first_offset: Option<u64>,
    /// The highest number among them.
    pub last_seq: u64,
    /// All frames before this one had been synced, according to one of them.
    pub synced: u64,
}

impl Evidence {
    /// Whether the frame of this number had been synced.
    pub fn proves(&self, seq: u64) -> bool {
        self.synced > seq
    }
}

/// Looks for whole frames in the bytes from a bad place to the file's end.
#[derive(Debug)]
pub struct EvidenceFinder {
    seed: u32,
    /// Only frames with numbers above this one are accepted.
    after: u64,
    file_bytes: u64,
    /// The last bytes, at most one fewer than a header.
    tail: Vec<u8>,
    /// The offset of the next byte, and the checksum of all bytes from the start up to it.
    offset: u64,
    crc: u32,
    pending: BinaryHeap<Reverse<Candidate>>,
    found: Evidence,
    /// Frames do not overlap: none starts before the end of an accepted one.
    found_end: u64,
}

/// A possible header; decided when the checksum up to `end` is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    end: u64,
    start: u64,
    seq: u64,
    synced: u64,
    payload_bytes: u64,
    /// Checksum of the file up to the payload, and that of the frame's fields.
    before: u32,
    fields: u32,
    crc: u32,
}

impl EvidenceFinder {
    /// The frame numbered `seq` is bad, at `offset` of the file with this header.
    pub fn new(header: &FileHeader, file_bytes: u64, offset: u64, seq: u64) -> Self {
        Self::with_seed(header.frame_seed(), file_bytes, offset, seq)
    }

    /// As [`EvidenceFinder::new`], for an unreadable header ([`super::file::frame_seed`]).
    pub fn with_seed(seed: u32, file_bytes: u64, offset: u64, seq: u64) -> Self {
        Self {
            seed,
            after: seq,
            file_bytes,
            tail: Vec::new(),
            offset,
            crc: 0,
            pending: BinaryHeap::new(),
            found: Evidence::default(),
            found_end: 0,
        }
    }

    /// Takes the next bytes of the file, beginning at the bad place.
    pub fn feed(&mut self, bytes: &[u8]) {
        let base = self.offset - self.tail.len() as u64;
        let mut window = std::mem::take(&mut self.tail);
        let known = window.len();
        window.extend_from_slice(bytes);
        // The checksum is known up to this offset in the window.
        let mut at = known;
        for start in 0..(window.len() + 1).saturating_sub(HEADER_BYTES) {
            let Some(head) = window[start..].first_chunk::<HEADER_BYTES>() else {
                break;
            };
            let header = FrameHeader::decode(head);
            let payload = start + HEADER_BYTES;
            if !self.plausible(&header, base + payload as u64) {
                continue;
            }
            at = self.advance(&window, base, at, payload);
            if base + (start as u64) < self.found_end || self.pending.len() >= MOST_PENDING {
                continue;
            }
            let mut fields = Hasher::new_with_initial(self.seed);
            fields.update(&head[..FIELDS]);
            self.pending.push(Reverse(Candidate {
                end: base + payload as u64 + header.len,
                start: base + start as u64,
                seq: header.seq,
                synced: header.synced(),
                payload_bytes: header.len,
                before: self.crc,
                fields: fields.finalize(),
                crc: header.crc,
            }));
        }
        let all = window.len();
        self.advance(&window, base, at, all);
        self.offset = base + all as u64;
        window.drain(..all.saturating_sub(HEADER_BYTES - 1));
        self.tail = window;
    }

    /// The evidence in the bytes so far.
    pub fn found(&self) -> Evidence {
        self.found
    }

    /// Whether a frame with this header can be in the rest of the file.
    fn plausible(&self, header: &FrameHeader, payload_at: u64) -> bool {
        let left = self.file_bytes.saturating_sub(payload_at);
        // Each frame in between needs its header and one byte.
        let most = self.after.saturating_add(self.file_bytes);
        (1..=left).contains(&header.len) && header.seq > self.after && header.seq <= most
    }

    /// Continues the checksum from `from` to `to`, and decides the candidates that end in between.
    fn advance(&mut self, window: &[u8], base: u64, mut from: usize, to: usize) -> usize {
        while let Some(&Reverse(next)) = self.pending.peek() {
            if next.end > base + to as u64 {
                break;
            }
            self.pending.pop();
            // It ends after `from`: candidates before it have been decided.
            let end = (next.end.saturating_sub(base) as usize).max(from);
            self.extend(&window[from..end]);
            from = end;
            self.decide(&next);
        }
        if from < to {
            self.extend(&window[from..to]);
        }
        from.max(to)
    }

    fn extend(&mut self, bytes: &[u8]) {
        let mut hasher = Hasher::new_with_initial(self.crc);
        hasher.update(bytes);
        self.crc = hasher.finalize();
    }

    fn decide(&mut self, candidate: &Candidate) {
        // With M the matrix that carries a checksum over the payload:
        // up to its end = M·before ^ payload, and the frame's = M·fields ^ payload.
        let mut frame = Hasher::new_with_initial(candidate.fields ^ candidate.before);
        frame.combine(&Hasher::new_with_initial_len(
            self.crc,
            candidate.payload_bytes,
        ));
        if frame.finalize() != candidate.crc || candidate.start < self.found_end {
            return;
        }
        self.found_end = candidate.end;
        self.found.frames += 1;
        self.found.first_offset.get_or_insert(candidate.start);
        self.found.last_seq = self.found.last_seq.max(candidate.seq);
        self.found.synced = self.found.synced.max(candidate.synced);
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::FileKind;
    use super::super::frame;
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            kind: FileKind::Log,
            generation: 1,
            worker: 0,
            workers: 1,
            index: 0,
            run: 1,
            first_seq: 0,
            salt: 77,
            reserved: 0,
        }
    }

    fn find(bytes: &[u8], piece: usize, seq: u64) -> Evidence {
        let offset = 1000;
        let mut finder = EvidenceFinder::new(&header(), offset + bytes.len() as u64, offset, seq);
        for piece in bytes.chunks(piece) {
            finder.feed(piece);
        }
        finder.found()
    }

    #[test]
    fn frames_are_found_wherever_they_are_and_however_they_come() {
        let mut bytes = b"half a frame, and then rubbish".to_vec();
        let first = bytes.len() as u64;
        frame::encode(&mut bytes, header().frame_seed(), 8, 6, &[1; 70]);
        bytes.extend_from_slice(&[9; 33]);
        frame::encode(&mut bytes, header().frame_seed(), 11, 9, b"x");
        bytes.extend_from_slice(&[0; 50]);
        for piece in 1..bytes.len() {
            let found = find(&bytes, piece, 7);
            let expected = Evidence {
                frames: 2,
                first_offset: Some(1000 + first),
                last_seq: 11,
                synced: 9,
            };
            assert_eq!(found, expected);
            assert!(found.proves(7) && !found.proves(9));
        }
        // Earlier frames are no evidence for this one.
        assert_eq!(find(&bytes, 20, 11), Evidence::default());
    }

    #[test]
    fn damaged_and_foreign_frames_are_not_found() {
        let mut frame = Vec::new();
        frame::encode(&mut frame, header().frame_seed(), 8, 8, b"a payload");
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(find(&flipped, 100, 7), Evidence::default(), "bit {bit}");
        }
        for cut in 0..frame.len() {
            assert_eq!(find(&frame[..cut], 5, 7), Evidence::default());
        }
        let mut foreign = Vec::new();
        frame::encode(&mut foreign, header().frame_seed() ^ 1, 8, 8, b"a payload");
        assert_eq!(find(&foreign, 100, 7), Evidence::default());
    }

    #[test]
    fn many_candidates_that_overlap_cost_little() {
        let mut bytes = Vec::new();
        for n in 0..200_000u64 {
            let header = FrameHeader {
                len: 1_000_000 + n,
                seq: 8 + n,
                lag: 0,
                crc: 3,
            };
            bytes.extend_from_slice(&header.checked_bytes());
            bytes.extend_from_slice(&header.crc.to_le_bytes());
        }
        frame::encode(&mut bytes, header().frame_seed(), 9, 8, b"real");
        let finder = find(&bytes, 1 << 16, 7);
        assert_eq!(finder.frames, 1);
    }
}
