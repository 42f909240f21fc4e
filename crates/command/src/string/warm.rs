//! Fetching the records of several keys into the cache together, so that a
//! command on many keys waits for memory once per group and not once per key.

use crate::Ctx;
use rufous_base::Args;

/// Keys fetched together: about as many misses as a core keeps pending.
const GROUP: usize = 16;

/// Hashes of the next keys of a command.
pub(super) struct Group {
    hashes: [u32; GROUP],
    len: usize,
}

impl Group {
    pub(super) fn hashes(&self) -> &[u32] {
        &self.hashes[..self.len]
    }
}

/// Hashes up to [`GROUP`] keys, which stand at `from` and every `step`
/// arguments after it, and fetches what the shard has of them.
pub(super) fn group(ctx: &Ctx<'_>, args: &Args<'_>, from: usize, step: usize) -> Group {
    let mut group = Group {
        hashes: [0; GROUP],
        len: 0,
    };
    for at in (from..args.len()).step_by(step).take(GROUP) {
        group.hashes[group.len] = ctx.key(args.get(at)).hash;
        group.len += 1;
    }
    if group.len > 1 {
        let mut records = [None; GROUP];
        for (record, hash) in records.iter_mut().zip(group.hashes()) {
            *record = Some(ctx.shard.warm_index(ctx.db, *hash));
        }
        for record in records.into_iter().flatten() {
            ctx.shard.warm_record(ctx.db, record);
        }
    }
    group
}
