//! What an element of a collection takes at one replica, beside the same at a
//! strict key: by the shard's account, key and index included.
//!
//! Names have 14 bytes, values of fields 16. Elements were written once, by one
//! replica.
//!
//! `cargo run --release -p rufous-store --example replica_memory`

use rufous_base::Now;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::object::{Registered, Tag};
use rufous_datatype::replicated::Writer;
use rufous_datatype::set::{self, Set};
use rufous_datatype::sorted_set::{self, Only, SortedSet};
use rufous_lattice::Clock;
use rufous_store::shard::{Keyed, Keying, Shard, WrongType};
use std::sync::Arc;

/// Elements of one command.
const BATCH: usize = 1000;

const NOW: Now = Now {
    mono_us: 1_000_000,
    unix_us: 1_000_000,
};

/// Every key has a replica here, and others elsewhere.
#[derive(Debug)]
struct All;

impl Keying for All {
    fn of(&self, _: &[u8]) -> Option<Keyed> {
        Some(Keyed {
            strings: Tag::Register,
            is_shared: true,
        })
    }
}

/// Elements by number.
type Put<T> = for<'a> fn(&'a [u8], u64) -> <T as rufous_datatype::algebra::Algebra>::Op<'a>;

/// Bytes per element of `keys` collections of `len` elements each.
fn measure<T: Registered>(
    is_replicated: bool,
    (keys, len): (usize, usize),
    put: Put<T>,
) -> Result<f64, WrongType> {
    let mut shard = Shard::new(1);
    let mut clock = Clock::new(1);
    if is_replicated {
        shard.lattice_mut().set_keying(Some(Arc::new(All)));
    }
    for number in 0..keys {
        let name = format!("key:{number:08}");
        for start in (0..len).step_by(BATCH) {
            let key = shard.key(name.as_bytes());
            if is_replicated {
                let stamp = clock.tick(NOW.unix_us);
                shard.begin_lattice(Writer { stamp });
            }
            shard.update::<T, _>(0, key, NOW, |editor| {
                for element in start..len.min(start + BATCH) {
                    let name = format!("element{element:07}");
                    editor.apply(&put(name.as_bytes(), element as u64));
                }
            })?;
            if let Some(ended) = shard.end_lattice() {
                clock.observe(ended.next);
            }
            shard.changeset().clear();
        }
    }
    Ok(shard.memory().total() as f64 / (keys * len) as f64)
}

fn show<T: Registered>(what: &str, put: Put<T>) -> Result<(), WrongType> {
    for (keys, len) in [(20_000, 10), (2_000, 100), (1, 1_000_000)] {
        let strict = measure::<T>(false, (keys, len), put)?;
        let replica = measure::<T>(true, (keys, len), put)?;
        let times = replica / strict;
        println!("| {what} of {len} | {strict:.1} | {replica:.1} | {times:.2} |");
    }
    Ok(())
}

fn main() -> Result<(), WrongType> {
    println!("| collection | strict, B/element | replica, B/element | times |\n|---|---|---|---|");
    show::<Set>("set", |member, _| set::Op::Add { member })?;
    show::<Hash>("hash", |field, _| hash::Op::Set {
        field,
        value: b"sixteen bytes...",
    })?;
    show::<SortedSet>("sorted set", |member, number| sorted_set::Op::Add {
        member,
        score: number as f64,
        only: Only::default(),
    })
}
