//! MurmurHash64A with Redis's seed, over little-endian words on every machine: sketches made by
//! different nodes, and by Redis, must agree on the register of an element.

const SEED: u64 = 0xadc8_3b19;
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut state = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        state ^= (word ^ word >> SHIFT).wrapping_mul(MULTIPLIER);
        state = state.wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    state = (state ^ state >> SHIFT).wrapping_mul(MULTIPLIER);
    state ^ state >> SHIFT
}
