//! PFDEBUG: looks into a HyperLogLog.

use super::Change;
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hll::{Editor, Sketch};
use rufous_kernel::shard::Key;

command! {
    /// Shows the registers, the runs or the encoding of a HyperLogLog, or makes it dense.
    PFDEBUG = run: "pfdebug", syntax "GETREG | DECODE | ENCODING | TODENSE key", arity 3,
    group HyperLogLog, since "2.8.9", flags WRITE | DENYOOM | ADMIN,
    complexity "O(1), with a large constant", keys Keys::SECOND,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(2));
    let Some(value) = super::peek(ctx, key)? else {
        return Err("ERR The specified key does not exist".into());
    };
    let sketch = Sketch::parse(value)?;
    match args.get(1) {
        word if is(word, "GETREG") => {
            let registers = sketch.registers()?;
            // In Redis, reading the registers makes them dense.
            make_dense(ctx, key)?;
            reply.array(registers.ranks().len());
            for rank in registers.ranks() {
                reply.integer(i64::from(*rank));
            }
        }
        word if is(word, "DECODE") => match sketch.describe_runs()? {
            Some(runs) => reply.bulk(runs.as_bytes()),
            None => return Err("ERR HLL encoding is not sparse".into()),
        },
        word if is(word, "ENCODING") => reply.simple(sketch.encoding().name()),
        word if is(word, "TODENSE") => {
            let changed = make_dense(ctx, key)?;
            reply.integer(changed.into());
        }
        word => {
            let word = String::from_utf8_lossy(word).into_owned();
            return Err(format!("ERR Unknown PFDEBUG subcommand '{word}'").into());
        }
    }
    Ok(())
}

/// Returns whether the value was sparse.
fn make_dense(ctx: &mut Ctx<'_>, key: Key<'_>) -> Result<bool, Failure> {
    let sparse_max_bytes = ctx.shard.tuning().hll_sparse_max_bytes;
    let Some(old) = super::peek(ctx, key)? else {
        return Ok(false);
    };
    let mut editor = Editor::new(old.to_vec(), sparse_max_bytes)?;
    let changed = editor.make_dense();
    if changed {
        Change::Whole.write(ctx, key, editor.into_value());
    }
    Ok(changed)
}

#[cfg(test)]
crate::testing::transcripts! {
    refusals: "
        PFDEBUG ENCODING k => -ERR The specified key does not exist
        PFADD k a => :1
        PFDEBUG x k => -ERR Unknown PFDEBUG subcommand 'x'
        APPEND k x => :22
        PFDEBUG TODENSE k => -INVALIDOBJ Corrupted HLL object detected
        SET k x => +OK
        PFDEBUG TODENSE k => -WRONGTYPE Key is not a valid HyperLogLog string value.
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn shows_what_a_sketch_consists_of() {
        let mut rig = Rig::new();
        rig.check("PFADD k a b c", ":1");
        rig.check("PFDEBUG encoding k", "+sparse");
        rig.check(
            "PFDEBUG DECODE k",
            "'Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603'",
        );
        let registers = rig.run(&[b"PFDEBUG", b"GETREG", b"k"]);
        assert!(registers.starts_with(b"*16384\r\n:0\r\n"));
        let ones = registers.windows(4).filter(|w| w == b":1\r\n").count();
        let twos = registers.windows(4).filter(|w| w == b":2\r\n").count();
        assert_eq!((ones, twos), (2, 1));
        rig.check("PFDEBUG ENCODING k", "+dense");
        rig.check("PFDEBUG DECODE k", "-ERR HLL encoding is not sparse");
        rig.check("PFDEBUG TODENSE k", ":0");
        rig.check("PFCOUNT k", ":3");
    }
}
