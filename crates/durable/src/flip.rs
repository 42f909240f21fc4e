//! A frame that is whole but for one bit.
//!
//! A write that a loss of power interrupts leaves blocks of a file as they were before, which is
//! zeros in a log; it changes no single bit. So where one bit, changed back, makes the checksum of
//! a frame right, the frame had been written whole, and something else has damaged it. By
//! chance a torn frame of a megabyte looks like that once in 500 torn ones, and a frame of a
//! kilobyte once in 500,000: then a start stops that could have cut the log.

use super::frame::{FrameHeader, HEADER_BYTES};

/// The bytes of a frame that its checksum covers, before the payload.
const CHECKED: usize = 20;

/// What a disk may write in part. It is smaller than a sector, so that more is taken for torn.
const BLOCK: u64 = 64;

/// The polynomial of CRC-32, reflected.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// What eight zero bits make of each low byte of a checksum.
const STEP: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte as u32, 0);
        while bit < 8 {
            value = (value >> 1) ^ (POLYNOMIAL * (value & 1));
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// Whether `bytes`, which begin with frame `seq` at `offset` of a file, hold that frame whole but
/// for one bit, which no torn write explains. The rest of the file may follow.
pub(super) fn is_whole_but_for_a_bit(seed: u32, seq: u64, offset: u64, bytes: &[u8]) -> bool {
    let Some((head, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return false;
    };
    let header = FrameHeader::decode(head);
    let frame_of = |len: u64| {
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        Some(&bytes[..HEADER_BYTES + rest.get(..len)?.len()])
    };
    if let Some(frame) = frame_of(header.len)
        && let Some(flip) = flipped_bit(seed, header, &frame[HEADER_BYTES..])
    {
        // Of the fields, only the number is known.
        let flips_number = (64..128).contains(&flip) && header.seq ^ 1 << (flip - 64) == seq;
        let is_right = header.seq == seq && !(64..128).contains(&flip);
        return (is_right || flips_number) && !may_be_torn(frame, flip, offset);
    }
    // Where the bit is in the length, the frame ends elsewhere.
    (0..64).any(|bit| {
        let fixed = FrameHeader {
            len: header.len ^ 1 << bit,
            ..header
        };
        let frame = frame_of(fixed.len).filter(|_| header.seq == seq);
        frame.is_some_and(|frame| {
            fixed.matches(seed, &frame[HEADER_BYTES..]) && !may_be_torn(frame, bit, offset)
        })
    })
}

/// The bit of a frame that, changed, makes its checksum right; bits count from the first byte on.
fn flipped_bit(seed: u32, header: FrameHeader, payload: &[u8]) -> Option<usize> {
    let wrong = header.crc ^ header.checksum(seed, payload);
    if wrong.is_power_of_two() {
        return Some(8 * CHECKED + wrong.trailing_zeros() as usize);
    }
    // A changed bit changes the checksum by a number that depends on the bytes behind it alone.
    let mut changes = [0; 8];
    for (bit, change) in changes.iter_mut().enumerate() {
        *change = STEP[1 << bit];
    }
    let checked = CHECKED + payload.len();
    for at in (0..checked).rev() {
        if let Some(bit) = changes.iter().position(|change| *change == wrong) {
            // The checksum stands between what it covers.
            let byte = if at < CHECKED {
                at
            } else {
                at - CHECKED + HEADER_BYTES
            };
            return Some(8 * byte + bit);
        }
        for change in &mut changes {
            *change = (*change >> 8) ^ STEP[(*change & 0xFF) as usize];
        }
    }
    None
}

/// Whether the bit may be missing because the end of a block was not written.
fn may_be_torn(frame: &[u8], bit: usize, offset: u64) -> bool {
    let at = bit / 8;
    if frame[at] >> (bit % 8) & 1 == 1 {
        // A torn write sets no bit.
        return false;
    }
    let block_end = (offset + at as u64) / BLOCK * BLOCK + BLOCK - offset;
    let end = frame.len().min(block_end as usize);
    frame[at..end].iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::*;

    const SEED: u32 = 0x1234_5678;
    const SEQ: u64 = 77;

    fn frame_of(payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame::encode(&mut bytes, SEED, SEQ, 70, payload);
        bytes
    }

    fn finds(bytes: &[u8]) -> bool {
        is_whole_but_for_a_bit(SEED, SEQ, 64, bytes)
    }

    #[test]
    fn every_flipped_bit_is_found_but_where_zeros_follow() {
        for payload in [&b"x"[..], &[0xA5; 300], b"a value, and its \xFFend"] {
            let whole = frame_of(payload);
            let mut bytes = whole.clone();
            bytes.resize(bytes.len() + 2000, 0);
            assert!(!finds(&bytes), "nothing is wrong with it");
            let mut missed = 0;
            for bit in 0..whole.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let was_set = whole[bit / 8] >> (bit % 8) & 1 == 1;
                let found = finds(&bytes);
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(found || was_set, "bit {bit} was set");
                missed += usize::from(!found);
            }
            assert!(missed <= 8, "{missed}: what a torn write may leave, too");
        }
    }

    #[test]
    fn other_damage_is_not_taken_for_a_bit() {
        let whole = frame_of(&[0xA5; 300]);
        for byte in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[byte] ^= 0b101;
            assert!(!finds(&bytes), "two bits of byte {byte}");
        }
        // Torn: what is not written are zeros.
        for from in 1..whole.len() {
            for len in [1, 17, 64, 400] {
                let mut bytes = whole.clone();
                let to = bytes.len().min(from + len);
                bytes[from..to].fill(0);
                // A single bit that is lost among other bytes is damage all the same.
                let lost: u32 = whole[from..to].iter().map(|byte| byte.count_ones()).sum();
                assert!(!finds(&bytes) || lost == 1, "{from} to {to}");
            }
            assert!(!finds(&whole[..from]), "its end is not there");
        }
        // Frames of others, and of other numbers.
        let mut bytes = whole.clone();
        bytes[100] ^= 1;
        assert!(!is_whole_but_for_a_bit(SEED ^ 1, SEQ, 64, &bytes));
        assert!(!is_whole_but_for_a_bit(SEED, SEQ + 1, 64, &bytes));
        assert!(!finds(&[0; 500]) && !finds(&[0xFF; 500]) && !finds(&[]));
    }

    /// A loss of power that leaves the end of a block, or of the frame, unwritten.
    #[test]
    fn a_last_bit_that_is_missing_may_be_torn() {
        let mut payload = [0x55; 200];
        payload[199] = 4;
        let mut bytes = frame_of(&payload);
        let last = bytes.len() - 1;
        bytes[last] = 0;
        assert!(!finds(&bytes));
        // At the end of a block: the frame begins at byte 64 of the file.
        payload[128 - HEADER_BYTES - 1] = 4;
        let mut bytes = frame_of(&payload);
        bytes[127] = 0;
        assert!(!finds(&bytes));
    }
}
