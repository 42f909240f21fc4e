//! A frame: entries that are on disk all together or not at all.
//!
//! ```text
//! 0        8        16     20    24
//! | len u64 | seq u64 | lag  | crc | payload (len bytes, at least one)
//! ```
//! Little endian. `seq` is the number of the frame in a worker's log, counted from its first
//! segment on over segments and generations; in a snapshot, in its file. `lag` is the number of
//! frames before this one that were not known to be synced when it was written ([`UNKNOWN_LAG`]:
//! perhaps all). The checksum is CRC-32 over the 20 bytes before it and the payload; its initial
//! value is derived from the file's header ([`super::FileHeader::frame_seed`]), so that bytes
//! chosen by a client, or left on the device by another file, are not mistaken for frames.
//!
//! No frame has an empty payload, so that zeros are never a frame.

use crc32fast::Hasher;
use rufous_store::planted::{self, Planted};

/// Bytes of a frame before its payload.
pub const HEADER_BYTES: usize = 24;
const CHECKED: usize = 20;

/// No frame is known to be synced.
pub const UNKNOWN_LAG: u32 = u32::MAX;

/// The fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub len: u64,
    pub seq: u64,
    pub lag: u32,
    pub crc: u32,
}

impl FrameHeader {
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let tail = word(16);
        Self {
            len: word(0),
            seq: word(8),
            lag: tail as u32,
            crc: (tail >> 32) as u32,
        }
    }

    /// All frames before this one were known to be synced when it was written.
    pub fn synced(&self) -> u64 {
        if self.lag == UNKNOWN_LAG {
            return 0;
        }
        self.seq.saturating_sub(u64::from(self.lag))
    }

    /// Its first 20 bytes, which the checksum covers.
    pub(super) fn checked_bytes(&self) -> [u8; CHECKED] {
        let mut bytes = [0; CHECKED];
        bytes[..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seq.to_le_bytes());
        bytes[16..].copy_from_slice(&self.lag.to_le_bytes());
        bytes
    }

    /// The checksum that a frame with this header and payload has in a file with this seed.
    pub(super) fn checksum(&self, seed: u32, payload: &[u8]) -> u32 {
        checksum(seed, self, payload)
    }

    /// Whether the checksum is right for this frame in a file with this seed.
    pub fn matches(&self, seed: u32, payload: &[u8]) -> bool {
        payload.len() as u64 == self.len
            && (self.crc == checksum(seed, self, payload) || planted::is(Planted::SkippedChecksum))
    }
}

fn checksum(seed: u32, header: &FrameHeader, payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(seed);
    hasher.update(&header.checked_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// Appends a frame to `out`; `synced` frames of this log are known to be synced.
pub fn encode(out: &mut Vec<u8>, seed: u32, seq: u64, synced: u64, payload: &[u8]) {
    debug_assert!(!payload.is_empty() && synced <= seq);
    let mut header = FrameHeader {
        len: payload.len() as u64,
        seq,
        lag: u32::try_from(seq.saturating_sub(synced)).unwrap_or(UNKNOWN_LAG),
        crc: 0,
    };
    header.crc = checksum(seed, &header, payload);
    out.reserve(HEADER_BYTES + payload.len());
    out.extend_from_slice(&header.checked_bytes());
    out.extend_from_slice(&header.crc.to_le_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&mut bytes, 0x1234_5678, 7, 5, b"payload");
        bytes
    }

    fn header(bytes: &[u8]) -> FrameHeader {
        FrameHeader::decode(bytes[..HEADER_BYTES].try_into().unwrap())
    }

    #[test]
    fn what_is_encoded_decodes() {
        let bytes = frame();
        let header = header(&bytes);
        assert_eq!((header.len, header.seq, header.synced()), (7, 7, 5));
        assert!(header.matches(0x1234_5678, &bytes[HEADER_BYTES..]));
        assert!(!header.matches(0x1234_5679, &bytes[HEADER_BYTES..]));
    }

    #[test]
    fn a_lag_that_has_no_room_claims_nothing() {
        let mut bytes = Vec::new();
        encode(&mut bytes, 0, u64::from(u32::MAX) + 9, 9, b"x");
        assert_eq!(header(&bytes).synced(), 0);
    }

    #[test]
    fn the_bytes_stay_as_they_are() {
        let hex: String = frame().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            concat!(
                "0700000000000000",
                "0700000000000000",
                "02000000",
                "25628363",
                "7061796c6f6164"
            )
        );
    }
}
