//! Any bytes as operations and elements of collections of every type, on one shard with a small
//! key space: what is refused is refused, what is applied keeps every invariant, and writing all
//! elements out and reading them gives the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_base::Now;
use rufous_datatype::algebra::Tuning;
use rufous_datatype::object::Tag;
use rufous_kernel::durable::Effect;
use rufous_kernel::shard::{OwnedValue, Shard};

fuzz_target!(|data: &[u8]| {
    let mut shard = Shard::new(1);
    let mut rest = data;
    while let Some((&[kind, place, len], tail)) = rest.split_first_chunk::<3>() {
        let len = usize::from(len).min(tail.len());
        let (bytes, tail) = tail.split_at(len);
        rest = tail;
        let key = std::slice::from_ref(if place & 1 == 0 { &b'a' } else { &b'b' });
        let tag = Tag::ALL[usize::from(place >> 1) % Tag::ALL.len()];
        let db = 0;
        let effect = match kind % 3 {
            0 => Effect::Update {
                db,
                key,
                tag,
                ops: bytes,
            },
            1 => Effect::Put {
                db,
                key,
                tag,
                chunk: bytes,
                expire_at: None,
            },
            _ => Effect::More {
                db,
                key,
                tag,
                chunk: bytes,
            },
        };
        let _ = shard.apply(&effect);
    }
    shard.check();
    for name in [&b"a"[..], b"b"] {
        let key = shard.key(name);
        let Some(entry) = shard.clone_entry(0, key, Now::default()) else {
            continue;
        };
        let OwnedValue::Object(object) = entry.value else {
            panic!("only collections were made");
        };
        let mut again = object.tag().empty();
        let mut at = Some(0);
        while let Some(from) = at {
            let mut chunk = Vec::new();
            at = object.chunk(from, 100, &mut chunk);
            again
                .extend(&chunk, &Tuning::default())
                .expect("its own elements");
        }
        assert!(again == object, "written out and read");
    }
});
