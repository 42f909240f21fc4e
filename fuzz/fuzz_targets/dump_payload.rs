//! Any bytes as a payload of DUMP, as they are and with a footer that is right: what is decoded is
//! within the limit, and written in our form it is read as the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_datatype::rdb::{self, RdbError, RdbValue};

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    check(data);
    check(&rdb::seal(data.to_vec()));
});

fn check(payload: &[u8]) {
    let value = match rdb::read(payload, LIMIT) {
        Ok(value) => value,
        Err(RdbError::TooLarge) => return,
        Err(_) => {
            // No limit makes a difference to what is malformed, nor may it take memory.
            assert!(rdb::read(payload, usize::MAX).is_err());
            return;
        }
    };
    assert!(decoded_len(&value) <= LIMIT);
    let written = rdb::write(&value);
    let Ok(again) = rdb::read(&written, LIMIT) else {
        panic!("what was written is not read");
    };
    // Compared as bytes, since two zeroes are equal as scores.
    assert_eq!(rdb::write(&again), written);
}

fn decoded_len(value: &RdbValue) -> usize {
    match value {
        RdbValue::String(bytes) => bytes.len(),
        RdbValue::List(items)
        | RdbValue::Set(items)
        | RdbValue::Hash(items)
        | RdbValue::SortedSet(items, _) => items.iter().map(<[u8]>::len).sum(),
    }
}
