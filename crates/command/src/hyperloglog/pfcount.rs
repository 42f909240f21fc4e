//! PFCOUNT: estimates how many elements HyperLogLogs observed.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hll::{self, HEADER_LEN, Registers, Sketch};

command! {
    /// Estimates how many different elements were added to a HyperLogLog, or to any of several.
    PFCOUNT = run: "pfcount", syntax "key [key ...]", arity -2, group HyperLogLog, since "2.8.9",
    flags READONLY,
    complexity "O(1) for one key; O(N) with N keys otherwise, with a much larger constant",
    keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let count = match args.len() {
        2 => count_one(ctx, args.get(1))?,
        _ => count_union(ctx, &args)?,
    };
    reply.integer(count as i64);
    Ok(())
}

/// The estimate is kept in the value until a register changes. That is a change of the value's
/// bytes, which must be logged and replicated like any other.
fn count_one(ctx: &mut Ctx<'_>, key: &[u8]) -> Result<u64, Failure> {
    let key = ctx.first_key(key);
    let Some(value) = super::get(ctx, key)? else {
        return Ok(0);
    };
    let sketch = Sketch::parse(value)?;
    if let Some(count) = sketch.cached() {
        return Ok(count);
    }
    let count = sketch.count()?;
    // A replicated value holds no estimate: it would be sent to all replicas.
    if ctx.shard.at(ctx.db, key, ctx.now).is_replica() {
        return Ok(count);
    }
    let range = hll::cardinality_range();
    let changed = Some(range.clone());
    ctx.shard
        .edit((ctx.db, key), HEADER_LEN, changed, ctx.now, |value| {
            value[range].copy_from_slice(&hll::cardinality_bytes(count));
        });
    Ok(count)
}

fn count_union(ctx: &mut Ctx<'_>, args: &Args<'_>) -> Result<u64, Failure> {
    let mut union = Registers::default();
    for key in args.iter_from(1) {
        let key = ctx.key(key);
        if let Some(value) = super::get(ctx, key)? {
            Sketch::parse(value)?.merge_into(&mut union)?;
        }
    }
    Ok(union.count())
}

#[cfg(test)]
crate::testing::transcripts! {
    of_one_key_and_of_a_union: "
        PFCOUNT none => :0
        PFADD a 1 2 3 4 5 => :1
        PFADD b 4 5 6 => :1
        PFCOUNT a => :5
        PFCOUNT a none b => :6
        PFDEBUG TODENSE a => :1
        PFCOUNT a => :5
        PFCOUNT a b a => :6
    "

    other_strings_are_refused: "
        SET s bar => +OK
        PFADD k a b c => :1
        PFCOUNT s => -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFCOUNT k s => -WRONGTYPE Key is not a valid HyperLogLog string value.
        APPEND k hello => :32
        PFCOUNT k => -INVALIDOBJ Corrupted HLL object detected
        PFCOUNT none k => -INVALIDOBJ Corrupted HLL object detected
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_estimate_is_kept_until_a_register_changes() {
        let mut rig = Rig::new();
        rig.check("PFADD k a b c", ":1");
        assert_eq!(
            rig.run(&[b"GETRANGE", b"k", b"15", b"15"]),
            b"$1\r\n\x80\r\n"
        );
        rig.check("PFCOUNT k", ":3");
        rig.check("GETRANGE k 8 15", "'\x03\0\0\0\0\0\0\0'");
        rig.check("PFADD k a b c", ":0");
        rig.check("GETRANGE k 15 15", "'\0'");
        rig.check("SETRANGE k 8 \x04", ":27");
        rig.check("PFCOUNT k", ":4");
        rig.check("PFADD k 1 2 3", ":1");
        rig.check("PFCOUNT k", ":6");
    }
}
