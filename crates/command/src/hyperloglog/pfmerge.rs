//! PFMERGE: joins HyperLogLogs.

use super::Change;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hll::{self, Editor, Encoding, Registers, Sketch};

command! {
    /// Adds to a HyperLogLog what others have observed, creating the destination where it is
    /// missing.
    PFMERGE = run: "pfmerge", syntax "destkey [sourcekey [sourcekey ...]]", arity -2,
    group HyperLogLog, since "2.8.9", flags WRITE | DENYOOM | SLOW,
    complexity "O(N) with N sources, with a large constant", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let mut union = Registers::default();
    let mut dense = false;
    for key in args.iter_from(1) {
        let key = ctx.key(key);
        if let Some(value) = super::get(ctx, key)? {
            let sketch = Sketch::parse(value)?;
            dense |= sketch.encoding() == Encoding::Dense;
            sketch.merge_into(&mut union)?;
        }
    }
    let key = ctx.first_key(args.get(1));
    let merged = ctx.shard.merge_sketches(ctx.db, key, &union, ctx.now);
    if merged.is_some() {
        reply.ok();
        return Ok(());
    }
    let sparse_max_bytes = ctx.shard.tuning().hll_sparse_max_bytes;
    let old = super::peek(ctx, key)?;
    let value = old.map_or_else(hll::empty, <[u8]>::to_vec);
    let mut editor = Editor::new(value, sparse_max_bytes)?;
    if dense {
        editor.make_dense();
    }
    for seen in union.observations() {
        editor.raise(seen);
    }
    // Even where nothing changed: so does Redis, and values are to be equal bytes.
    editor.mark_stale();
    let new = editor.into_value();
    Change::between(old, &new).write(ctx, key, new);
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn adds_sources_to_the_destination() {
        let mut rig = Rig::new();
        rig.check("PFADD a a b c", ":1\r\n");
        rig.check("PFADD b b c d", ":1\r\n");
        rig.check("PFADD c c d e", ":1\r\n");
        rig.check("PFMERGE r a b none c", "+OK\r\n");
        rig.check("PFCOUNT r", ":5\r\n");
        rig.check("PFDEBUG ENCODING r", "+sparse\r\n");
        rig.check("PFMERGE b a", "+OK\r\n");
        rig.check("PFCOUNT b", ":4\r\n");
        rig.check("PFMERGE new", "+OK\r\n");
        rig.check("PFCOUNT new", ":0\r\n");
    }

    #[test]
    fn dense_where_any_source_is() {
        let mut rig = Rig::new();
        rig.check("PFADD a a b c", ":1\r\n");
        rig.check("PFADD b c d", ":1\r\n");
        rig.check("PFDEBUG TODENSE b", ":1\r\n");
        rig.check("PEXPIRE a 10", ":1\r\n");
        rig.check("PFMERGE a b", "+OK\r\n");
        rig.check("PFDEBUG ENCODING a", "+dense\r\n");
        rig.check("PFCOUNT a", ":4\r\n");
        rig.check("PTTL a", ":10\r\n");
    }

    #[test]
    fn other_strings_are_refused_and_nothing_changed() {
        let mut rig = Rig::new();
        let wrong = "-WRONGTYPE Key is not a valid HyperLogLog string value.\r\n";
        rig.check("SET s bar", "+OK\r\n");
        rig.check("PFMERGE r s", wrong);
        rig.check("PFMERGE s r", wrong);
        rig.check("EXISTS r", ":0\r\n");
        rig.check("PFADD k a", ":1\r\n");
        rig.check("APPEND k x", ":22\r\n");
        rig.check(
            "PFMERGE r k",
            "-INVALIDOBJ Corrupted HLL object detected\r\n",
        );
    }
}
