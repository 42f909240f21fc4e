//! PFMERGE: joins HyperLogLogs.

use super::Change;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hll::{self, Editor, Encoding, Registers, Sketch};
use rufous_kernel::shard::strings;

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
    let merged = strings::merge_sketches(&mut ctx.shard.at(ctx.db, key, ctx.now), &union);
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
crate::testing::transcripts! {
    adds_sources_to_the_destination: "
        PFADD a a b c => :1
        PFADD b b c d => :1
        PFADD c c d e => :1
        PFMERGE r a b none c => +OK
        PFCOUNT r => :5
        PFDEBUG ENCODING r => +sparse
        PFMERGE b a => +OK
        PFCOUNT b => :4
        PFMERGE new => +OK
        PFCOUNT new => :0
    "

    dense_where_any_source_is: "
        PFADD a a b c => :1
        PFADD b c d => :1
        PFDEBUG TODENSE b => :1
        PEXPIRE a 10 => :1
        PFMERGE a b => +OK
        PFDEBUG ENCODING a => +dense
        PFCOUNT a => :4
        PTTL a => :10
    "

    other_strings_are_refused_and_nothing_changed: "
        SET s bar => +OK
        PFMERGE r s => -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFMERGE s r => -WRONGTYPE Key is not a valid HyperLogLog string value.
        EXISTS r => :0
        PFADD k a => :1
        APPEND k x => :22
        PFMERGE r k => -INVALIDOBJ Corrupted HLL object detected
    "
}
