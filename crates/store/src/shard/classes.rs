//! Size classes: steps of 8 bytes to 256, of 16 to 512, of 32 to 1 KiB, and of 64 up to the largest record, so that
//! no more than a sixteenth is wasted.

use super::record::MAX_RECORD;

/// Longer records are packed collections or values of varying length, which nearly fill their slots only if steps are
/// small.
const LONG: usize = 1024;
const STEP: usize = 64;
const LONG_CLASSES: usize = (MAX_RECORD - LONG) / STEP;
pub(super) const CLASSES: usize = 32 + 16 * 2 + LONG_CLASSES;

/// The class for records of `size` bytes.
#[inline]
pub(super) fn class_of(size: usize) -> usize {
    debug_assert!(size <= MAX_RECORD);
    if size <= 256 {
        return size.max(1).div_ceil(8) - 1;
    }
    if size > LONG {
        return 64 + (size - LONG).div_ceil(STEP) - 1;
    }
    // 16 steps for each power of two: the four bits below the highest one.
    let last = size - 1;
    let doubling = last.ilog2() as usize;
    32 + (doubling - 8) * 16 + ((last >> (doubling - 4)) & 15)
}

/// The slot size of a class.
pub(super) fn class_size(class: usize) -> usize {
    if class < 32 {
        return (class + 1) * 8;
    }
    if class >= 64 {
        return LONG + (class - 63) * STEP;
    }
    let (doubling, step) = ((class - 32) / 16 + 8, (class - 32) % 16);
    (16 + step + 1) << (doubling - 4)
}

/// Slot size for a record of `size` bytes.
#[inline]
pub(super) fn slot_size(size: usize) -> usize {
    class_size(class_of(size))
}

/// The size to request if a record of `size` bytes is expected to grow or shrink.
#[inline]
pub(super) fn roomy(size: usize) -> usize {
    (size + size / 6).min(MAX_RECORD)
}

/// Whether a record of `size` bytes may stay in a slot of `slot` bytes; a record that grows and shrinks may leave a
/// quarter of it unused.
#[inline]
pub(super) fn suits(slot: usize, size: usize, keeps_room: bool) -> bool {
    size <= slot
        && (slot == slot_size(size)
            || keeps_room && slot <= slot_size((size + size / 3).min(MAX_RECORD)))
}

const _: () = assert!(MAX_RECORD == 4096, "the last class's size");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_little() {
        for size in 1..=MAX_RECORD {
            let slot = slot_size(size);
            assert!(
                slot >= size && slot - size < 8.max(size / 16 + 1),
                "{size} in {slot}"
            );
            assert!(class_of(size) < CLASSES);
            assert_eq!(class_of(slot), class_of(size));
        }
        assert_eq!(slot_size(MAX_RECORD), MAX_RECORD);
        assert_eq!(slot_size(78), 80);
    }
}
