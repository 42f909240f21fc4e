//! Any bytes as a payload of DUMP, as they are and with a footer that is right: what is decoded is
//! within the limit, written in our form it is read as the same value, and what becomes a value of a
//! key comes back from its payload.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::rdb::{self, RdbError, RdbValue, Restored};

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
    if let Ok(Restored::Object(object)) = rdb::restore(value, &Tuning::default()) {
        let dumped = rdb::dump(object.tag(), object.len(), |at, budget, out| {
            object.chunk(at, budget, out)
        });
        let back = rdb::read(&dumped, usize::MAX).and_then(|v| rdb::restore(v, &Tuning::default()));
        let Ok(Restored::Object(again)) = back else {
            panic!("what was dumped is not restored");
        };
        assert_eq!(again, object);
    }
}

fn decoded_len(value: &RdbValue) -> usize {
    match value {
        RdbValue::String(bytes) => bytes.len(),
        RdbValue::List(items)
        | RdbValue::Set(items)
        | RdbValue::Hash(items)
        | RdbValue::SortedSet(items, _)
        | RdbValue::Own(_, items) => items.iter().map(<[u8]>::len).sum(),
    }
}
