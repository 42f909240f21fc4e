//! Key to slot as in Redis Cluster, and the slots' spread over a node's workers.

use crate::ids::WorkerId;
use crate::limits::SLOTS;
use std::ops::Range;

/// CRC-16/XMODEM (polynomial 0x1021), four bits of state a step less than the
/// textbook loop: one table lookup per byte.
const CRC16: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = (i as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 {
                (crc << 1) ^ 0x1021
            } else {
                crc << 1
            };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &b| {
        (crc << 8) ^ CRC16[usize::from((crc >> 8) as u8 ^ b)]
    })
}

/// The part of a key that decides its slot: what stands between the first `{`
/// and the next `}`, where that is not empty; else the whole key.
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&b| b == b'{') else {
        return key;
    };
    let rest = &key[open + 1..];
    match rest.iter().position(|&b| b == b'}') {
        Some(0) | None => key,
        Some(close) => &rest[..close],
    }
}

/// The key's slot, in `0..SLOTS`.
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) & (SLOTS as u16 - 1)
}

/// The worker that owns a slot on a node with `workers` workers: contiguous
/// ranges of slots whose lengths differ by at most one.
pub fn worker_of_slot(slot: u16, workers: usize) -> WorkerId {
    WorkerId((usize::from(slot) * workers / SLOTS) as u16)
}

/// The slots of one of `workers` workers.
pub fn slots_of_worker(worker: usize, workers: usize) -> Range<u16> {
    let from = |worker: usize| (worker * SLOTS).div_ceil(workers).min(SLOTS) as u16;
    from(worker)..from(worker + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_the_slots_that_are_theirs() {
        for workers in [1, 2, 3, 7, 64, 255, 256] {
            let mut all = 0..0;
            for worker in 0..workers {
                let slots = slots_of_worker(worker, workers);
                assert_eq!(slots.start, all.end);
                all.end = slots.end;
                assert!(
                    slots
                        .into_iter()
                        .all(|slot| worker_of_slot(slot, workers).index() == worker)
                );
            }
            assert_eq!(usize::from(all.end), SLOTS);
        }
    }

    #[test]
    fn slots_are_those_of_redis_cluster() {
        let check = |key: &str, slot: u16| assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        check("123456789", 0x31C3);
        check("foo", 12182);
        check("{foo}bar", 12182);
        check("a{foo}{bar}", 12182);
        check("", 0);
        assert_eq!(slot_of(b"foo{}bar"), crc16(b"foo{}bar") & 0x3FFF);
        assert_eq!(slot_of(b"foo{bar"), crc16(b"foo{bar") & 0x3FFF);
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
    }

    #[test]
    fn every_worker_gets_its_share_of_slots() {
        for workers in [1, 2, 3, 7, 64, 256] {
            let mut count = vec![0usize; workers];
            for slot in 0..SLOTS as u16 {
                count[worker_of_slot(slot, workers).index()] += 1;
            }
            let (min, max) = (count.iter().min().unwrap(), count.iter().max().unwrap());
            assert!(max - min <= 1, "{workers} workers: {min}..{max}");
        }
    }
}
