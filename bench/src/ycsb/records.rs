//! Records: their keys, their bytes, and which of them exist.

use std::collections::BTreeSet;

use crate::loadgen::keys::{DIGITS, digits};
use crate::loadgen::zipf::fnv64;

pub const FIELDS: u64 = 10;
pub const FIELD_BYTES: usize = 100;
pub const RECORD_BYTES: usize = FIELDS as usize * FIELD_BYTES;

/// `user` and the hash of the record's number, as YCSB has it; the hash loses its sign there.
pub fn key(number: u64, into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(b"user");
    into.extend_from_slice((fnv64(number) as i64).unsigned_abs().to_string().as_bytes());
}

/// What a record's value begins with, so that a read can tell whose it is.
pub fn first_bytes(number: u64) -> [u8; DIGITS] {
    digits(number)
}

/// One field: the first of a record begins with the record's number, the rest is `filler`.
pub fn field(number: u64, index: u64, filler: u8, into: &mut [u8; FIELD_BYTES]) {
    into.fill(filler);
    if index == 0 {
        into[..DIGITS].copy_from_slice(&first_bytes(number));
    }
}

/// Record numbers handed out to inserts, and how far from the first on all of them exist: a record
/// may be read only when its insert has been answered.
#[derive(Clone, Debug)]
pub struct Inserted {
    next: u64,
    complete: u64,
    /// Answered inserts beyond a gap.
    early: BTreeSet<u64>,
}

impl Inserted {
    pub fn with(records: u64) -> Self {
        Self {
            next: records,
            complete: records,
            early: BTreeSet::new(),
        }
    }

    pub fn hand_out(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub fn answered(&mut self, number: u64) {
        self.early.insert(number);
        while self.early.remove(&self.complete) {
            self.complete += 1;
        }
    }

    /// Records `0..existing()` exist.
    pub fn existing(&self) -> u64 {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_unique_and_scattered() {
        let mut buffer = Vec::new();
        let mut seen = HashSet::new();
        for number in 0..300_000 {
            key(number, &mut buffer);
            assert!(buffer.starts_with(b"user"));
            assert!(seen.insert(buffer.clone()), "{number}");
        }
    }

    #[test]
    fn only_answered_records_exist() {
        let mut inserted = Inserted::with(10);
        let numbers: Vec<u64> = (0..3).map(|_| inserted.hand_out()).collect();
        assert_eq!(numbers, [10, 11, 12]);
        inserted.answered(12);
        inserted.answered(11);
        assert_eq!(inserted.existing(), 10);
        inserted.answered(10);
        assert_eq!(inserted.existing(), 13);
    }

    #[test]
    fn the_first_field_names_the_record() {
        let mut bytes = [0; FIELD_BYTES];
        field(42, 0, b'x', &mut bytes);
        assert!(bytes.starts_with(b"00000042xxx"));
        field(42, 3, b'y', &mut bytes);
        assert!(bytes.iter().all(|b| *b == b'y'));
    }
}
