//! Reads frames from the bytes of a file, whatever its state.
//!
//! The bytes arrive in pieces of any size; frames larger than a piece are assembled, each byte
//! being moved a bounded number of times. Memory grows with the bytes that have arrived, never with
//! the value of a length field.

use super::file::{self, FileHeader};
use super::frame::{FrameHeader, HEADER_BYTES};

/// A larger buffer is freed once the frame that needed it was read.
const KEEP_BUFFER: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its offset in the file.
    pub offset: u64,
    pub seq: u64,
    /// All frames before this one were known to be synced when it was written.
    pub synced: u64,
    pub payload: &'a [u8],
    /// All of its bytes, including the header.
    pub bytes: &'a [u8],
}

/// The place from which a file is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    pub offset: u64,
    /// The number of the expected frame.
    pub seq: u64,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The frame extends past the end of the file.
    Cut,
    Checksum,
    /// A whole frame, but not the next one.
    Sequence {
        found: u64,
    },
    /// Zeros, as after the last frame, but other bytes behind them.
    NotZeros,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::Cut => f.write_str("a frame runs past the end of the file"),
            Why::Checksum => f.write_str("the checksum of a frame is wrong"),
            Why::Sequence { found } => write!(f, "a frame is numbered {found}"),
            Why::NotZeros => f.write_str("unexpected data after the last frame"),
        }
    }
}

/// The reader's result for the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Frame(Frame<'a>),
    /// More bytes must be fed.
    NeedMore,
    /// Only zeros, or nothing, follow the last frame. `seq` would be next.
    End {
        offset: u64,
        seq: u64,
    },
    Bad(Bad),
}

/// Reads the frames of one file, beginning behind its header.
#[derive(Debug)]
pub struct FrameReader {
    seed: u32,
    next_seq: u64,
    file_bytes: u64,
    /// Bytes of the file not read yet; `buffer[start..]` is at `offset`.
    buffer: Vec<u8>,
    start: usize,
    offset: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Frames,
    /// The frames end at `end`: only zeros may follow.
    Zeros {
        end: u64,
    },
    Ended {
        end: u64,
    },
    Failed(Bad),
}

impl FrameReader {
    /// A reader for a file of that many bytes. It is fed the bytes behind the header.
    pub fn new(header: &FileHeader, file_bytes: u64) -> Self {
        Self {
            seed: header.frame_seed(),
            next_seq: header.first_seq,
            file_bytes,
            buffer: Vec::new(),
            start: 0,
            offset: file::HEADER_BYTES as u64,
            state: State::Frames,
        }
    }

    /// Takes the next bytes of the file; bytes beyond its size are ignored.
    pub fn feed(&mut self, bytes: &[u8]) {
        // The rest behind a frame is moved once; an incomplete frame stays in place.
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BUFFER.max(4 * bytes.len()) {
            self.buffer = Vec::new();
        }
        let room = self.file_bytes.saturating_sub(self.fed());
        let take = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        self.buffer.extend_from_slice(&bytes[..take]);
    }

    /// The offset in the file of the next byte to feed.
    pub fn fed(&self) -> u64 {
        self.offset + (self.buffer.len() - self.start) as u64
    }

    /// The seed of the checksums.
    pub(super) fn seed(&self) -> u32 {
        self.seed
    }

    /// The next frame's number.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Reads the next frame. After `End` and `Bad` the result stays the same.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Step<'_> {
        if let State::Frames = self.state {
            match self.frame() {
                Ok(Some(header)) => {
                    let start = self.start;
                    let payload_start = start + HEADER_BYTES;
                    // The whole frame was checked to be in the buffer.
                    let end = payload_start + header.len as usize;
                    let offset = self.offset;
                    self.offset += (end - self.start) as u64;
                    self.start = end;
                    self.next_seq += 1;
                    return Step::Frame(Frame {
                        offset,
                        seq: header.seq,
                        synced: header.synced(),
                        payload: &self.buffer[payload_start..end],
                        bytes: &self.buffer[start..end],
                    });
                }
                Ok(None) if matches!(self.state, State::Frames) => return Step::NeedMore,
                Ok(None) => {}
                Err(why) => self.state = State::Failed(self.bad(self.offset, why)),
            }
        }
        if let State::Zeros { end } = self.state {
            self.zeros(end);
        }
        match self.state {
            State::Frames | State::Zeros { .. } => Step::NeedMore,
            State::Ended { end: offset } => Step::End {
                offset,
                seq: self.next_seq,
            },
            State::Failed(bad) => Step::Bad(bad),
        }
    }

    /// The bytes from the bad place on that were already fed, for [`super::EvidenceFinder`]; the
    /// rest of the file follows them.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// The header of a frame that is in the buffer and valid.
    fn frame(&mut self) -> Result<Option<FrameHeader>, Why> {
        let left = self.file_bytes.saturating_sub(self.offset);
        let bytes = &self.buffer[self.start..];
        let Some((head, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            if (bytes.len() as u64) < left {
                return Ok(None);
            }
            // There is no space for another frame.
            if bytes.iter().any(|&byte| byte != 0) {
                return Err(Why::Cut);
            }
            self.state = State::Zeros { end: self.offset };
            return Ok(None);
        };
        if head.iter().all(|&byte| byte == 0) {
            self.state = State::Zeros { end: self.offset };
            return Ok(None);
        }
        let header = FrameHeader::decode(head);
        if header.len == 0 {
            return Err(Why::Checksum);
        }
        if header.len > left - HEADER_BYTES as u64 {
            return Err(Why::Cut);
        }
        if (rest.len() as u64) < header.len {
            return Ok(None);
        }
        if !header.matches(self.seed, &rest[..header.len as usize]) {
            return Err(Why::Checksum);
        }
        if header.seq != self.next_seq {
            return Err(Why::Sequence { found: header.seq });
        }
        Ok(Some(header))
    }

    fn zeros(&mut self, end: u64) {
        if self.buffer[self.start..].iter().any(|&byte| byte != 0) {
            // `rest` begins where evidence may be: not in the zeros before it.
            self.state = State::Failed(self.bad(end, Why::NotZeros));
            return;
        }
        self.offset = self.fed();
        self.start = self.buffer.len();
        if self.offset >= self.file_bytes {
            self.state = State::Ended { end };
        }
    }

    fn bad(&self, offset: u64, why: Why) -> Bad {
        Bad {
            offset,
            seq: self.next_seq,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::FileKind;
    use super::super::frame;
    use super::*;

    pub(crate) fn header() -> FileHeader {
        FileHeader {
            kind: FileKind::Log,
            generation: 1,
            worker: 0,
            workers: 1,
            index: 0,
            run: 1,
            first_seq: 100,
            salt: 77,
            reserved: 0,
        }
    }

    /// A file with these payloads, and zeros behind.
    fn file(payloads: &[&[u8]], zeros: usize) -> Vec<u8> {
        let mut bytes = header().encode().to_vec();
        for (n, payload) in payloads.iter().enumerate() {
            let seq = 100 + n as u64;
            frame::encode(&mut bytes, header().frame_seed(), seq, seq - 1, payload);
        }
        bytes.resize(bytes.len() + zeros, 0);
        bytes
    }

    /// The payloads, and how the file ends.
    fn scan(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<Bad>, u64) {
        let mut reader = FrameReader::new(&header(), bytes.len() as u64);
        let mut payloads = Vec::new();
        let mut rest = bytes.get(file::HEADER_BYTES..).unwrap_or(&[]).chunks(piece);
        loop {
            match reader.next() {
                Step::Frame(frame) => payloads.push(frame.payload.to_vec()),
                Step::NeedMore => reader.feed(rest.next().expect("more than the file has")),
                Step::End { offset, seq } => {
                    assert_eq!(seq, 100 + payloads.len() as u64);
                    return (payloads, None, offset);
                }
                Step::Bad(bad) => {
                    assert_eq!(bad.seq, 100 + payloads.len() as u64);
                    return (payloads, Some(bad), bad.offset);
                }
            }
        }
    }

    const PAYLOADS: [&[u8]; 3] = [b"a", &[0; 40], b"the last one"];

    #[test]
    fn pieces_of_any_size_give_the_same_frames() {
        for zeros in [0, 1, 23, 24, 100] {
            let bytes = file(&PAYLOADS, zeros);
            for piece in 1..bytes.len() {
                let (payloads, bad, end) = scan(&bytes, piece);
                assert_eq!(payloads, PAYLOADS);
                assert_eq!((bad, end), (None, (bytes.len() - zeros) as u64));
            }
        }
        assert_eq!(scan(&file(&[], 0), 10), (vec![], None, 64));
    }

    #[test]
    fn every_cut_is_seen_unless_between_frames() {
        let bytes = file(&PAYLOADS, 0);
        let (mut ends, mut at) = (vec![64], 64);
        for payload in PAYLOADS {
            at += HEADER_BYTES + payload.len();
            ends.push(at);
        }
        for cut in 64..bytes.len() {
            let (payloads, bad, offset) = scan(&bytes[..cut], 50);
            let whole = ends.iter().rposition(|&end| end <= cut).unwrap();
            assert_eq!(payloads, PAYLOADS[..whole]);
            assert_eq!(offset, ends[whole] as u64);
            assert_eq!(bad.is_none(), ends.contains(&cut), "cut at {cut}");
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let bytes = file(&PAYLOADS, 60);
        for bit in 64 * 8..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            for piece in [7, bytes.len()] {
                let (payloads, bad, offset) = scan(&flipped, piece);
                assert!(bad.is_some(), "bit {bit}");
                assert!(offset as usize <= bit / 8);
                assert_eq!(payloads, PAYLOADS[..payloads.len()]);
            }
        }
    }

    #[test]
    fn frames_of_other_files_and_in_another_order_are_refused() {
        let mut bytes = file(&PAYLOADS[..1], 0);
        let end = bytes.len();
        let seed = header().frame_seed();
        frame::encode(&mut bytes, seed, 102, 0, b"skipped one");
        let (payloads, bad, offset) = scan(&bytes, 30);
        assert_eq!((payloads.len(), offset), (1, end as u64));
        assert_eq!(bad.map(|bad| bad.why), Some(Why::Sequence { found: 102 }));

        bytes.truncate(end);
        frame::encode(&mut bytes, seed ^ 1, 101, 0, b"from elsewhere");
        let (payloads, bad, _) = scan(&bytes, 30);
        assert_eq!(payloads.len(), 1);
        assert_eq!(bad.map(|bad| bad.why), Some(Why::Checksum));
    }

    #[test]
    fn a_length_reserves_nothing() {
        let mut bytes = file(&PAYLOADS[..1], 0);
        let at = bytes.len();
        bytes.resize(at + 100, 7);
        for len in [77, 1 << 40, u64::MAX] {
            bytes[at..at + 8].copy_from_slice(&len.to_le_bytes());
            let (_, bad, _) = scan(&bytes, bytes.len());
            assert_eq!(bad.map(|bad| bad.why), Some(Why::Cut));
        }
        // As long as the file says it is; but nothing arrives.
        let mut reader = FrameReader::new(&header(), 1 << 60);
        let mut head = [1; HEADER_BYTES];
        head[..8].copy_from_slice(&(1u64 << 50).to_le_bytes());
        reader.feed(&head);
        assert_eq!(reader.next(), Step::NeedMore);
        assert!(reader.buffer.capacity() < 1000);
    }

    #[test]
    fn a_large_frame_leaves_no_large_buffer() {
        let large = vec![5; 8 << 20];
        let bytes = file(&[&large, b"small"], 0);
        let mut reader = FrameReader::new(&header(), bytes.len() as u64);
        for piece in bytes[64..].chunks(1 << 16) {
            reader.feed(piece);
            while let Step::Frame(_) = reader.next() {}
        }
        assert!(matches!(reader.next(), Step::End { .. }));
        reader.feed(&[]);
        assert!(reader.buffer.capacity() <= KEEP_BUFFER);
    }
}
