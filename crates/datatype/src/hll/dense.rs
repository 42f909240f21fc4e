//! Registers of 6 bits one after the other, lowest bits first. Slices are those of a dense value
//! without its header, so that every register lies within.

use super::{Observation, REGISTERS};

const WIDTH: usize = 6;
const MASK: u16 = (1 << WIDTH) - 1;

pub(super) fn get(body: &[u8], index: usize) -> u8 {
    let (at, shift) = place(index);
    let low = u16::from(body[at]);
    // The last register ends with the last byte.
    let high = body.get(at + 1).copied().map_or(0, u16::from);
    ((low | high << 8) >> shift & MASK) as u8
}

/// Returns whether the register was lower.
pub(super) fn raise(body: &mut [u8], seen: Observation) -> bool {
    if get(body, seen.index) >= seen.rank {
        return false;
    }
    let (at, shift) = place(seen.index);
    let rank = u16::from(seen.rank) & MASK;
    let [mask_low, mask_high] = (MASK << shift).to_le_bytes();
    let [rank_low, rank_high] = (rank << shift).to_le_bytes();
    body[at] = body[at] & !mask_low | rank_low;
    if let Some(high) = body.get_mut(at + 1) {
        *high = *high & !mask_high | rank_high;
    }
    true
}

/// All registers in order: four at a time lie in three bytes.
pub(super) fn ranks(body: &[u8]) -> impl Iterator<Item = u8> {
    debug_assert_eq!(body.len(), REGISTERS * WIDTH / 8);
    body.as_chunks::<3>().0.iter().flat_map(|&[a, b, c]| {
        [
            a & 63,
            (a >> 6 | b << 2) & 63,
            (b >> 4 | c << 4) & 63,
            c >> 2,
        ]
    })
}

fn place(index: usize) -> (usize, usize) {
    (index * WIDTH / 8, index * WIDTH % 8)
}
