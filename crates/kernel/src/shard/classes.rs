//! Sizes of slots: steps of 8 bytes to 256, then eight steps for each doubling
//! up to the largest record, so that no more than an eighth is wasted.

use super::record::MAX_RECORD;

pub(super) const CLASSES: usize = 32 + 8 * 4;

/// The class for records of `size` bytes.
#[inline]
pub(super) fn class_of(size: usize) -> usize {
    debug_assert!(size <= MAX_RECORD);
    if size <= 256 {
        return size.max(1).div_ceil(8) - 1;
    }
    // Eight steps for each doubling: the three bits below the highest one.
    let last = size - 1;
    let doubling = last.ilog2() as usize;
    32 + (doubling - 8) * 8 + ((last >> (doubling - 3)) & 7)
}

/// The slot size of a class.
pub(super) fn class_size(class: usize) -> usize {
    if class < 32 {
        return (class + 1) * 8;
    }
    let (doubling, step) = ((class - 32) / 8 + 8, (class - 32) % 8);
    (8 + step + 1) << (doubling - 3)
}

/// Bytes that a record of `size` bytes takes.
#[inline]
pub(super) fn slot_size(size: usize) -> usize {
    class_size(class_of(size))
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
                slot >= size && slot - size < 8.max(size / 8 + 1),
                "{size} in {slot}"
            );
            assert!(class_of(size) < CLASSES);
            assert_eq!(class_of(slot), class_of(size));
        }
        assert_eq!(slot_size(MAX_RECORD), MAX_RECORD);
        assert_eq!(slot_size(78), 80);
    }
}
