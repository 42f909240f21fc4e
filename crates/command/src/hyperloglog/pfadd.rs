//! PFADD: lets a HyperLogLog observe elements.

use super::Change;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hll::{self, DENSE_LEN, Editor, Encoding, HEADER_LEN, Observation, Sketch};
use rufous_kernel::shard::Key;
use rufous_kernel::shard::strings;

/// Above this many changed registers, the whole value is logged rather than each of them.
const SINGLE_REGISTERS: usize = 256;

command! {
    /// Adds elements to the HyperLogLog at a key, creating the key where it is missing, and returns
    /// whether its estimate may have changed.
    PFADD = run: "pfadd", syntax "key [element [element ...]]", arity -2, group HyperLogLog,
    since "2.8.9", flags WRITE | DENYOOM | FAST, complexity "O(1) for each element",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    if ctx.shard.lattice().writes(key)
        && let Some(bytes) = super::peek(ctx, key)?
    {
        Sketch::parse(bytes)?;
    }
    let elements = args.iter_from(2);
    if let Some(changed) = strings::add_to_sketch(&mut ctx.shard.at(ctx.db, key, ctx.now), elements)
    {
        reply.integer(changed.into());
        return Ok(());
    }
    let sparse_max_bytes = ctx.shard.tuning().hll_sparse_max_bytes;
    let old = super::peek(ctx, key)?;
    if let Some(bytes) = old {
        let sketch = Sketch::parse(bytes)?;
        if sketch.encoding() == Encoding::Dense {
            let seen = args.iter_from(2).map(Observation::of);
            let raising: Vec<_> = seen.filter(|s| sketch.is_raised_by(*s)).collect();
            reply.integer((!raising.is_empty()).into());
            raise_dense(ctx, key, &raising);
            return Ok(());
        }
    }
    let value = old.map_or_else(hll::empty, <[u8]>::to_vec);
    let mut editor = Editor::new(value, sparse_max_bytes)?;
    let mut changed = old.is_none();
    for element in args.iter_from(2) {
        changed |= editor.raise(Observation::of(element));
    }
    if changed {
        editor.mark_stale();
        let new = editor.into_value();
        Change::between(old, &new).write(ctx, key, new);
    }
    reply.integer(changed.into());
    Ok(())
}

/// Raises registers of a dense sketch in place.
fn raise_dense(ctx: &mut Ctx<'_>, key: Key<'_>, raising: &[Observation]) {
    if raising.is_empty() {
        return;
    }
    let mut ranges: Vec<_> = match raising.len() > SINGLE_REGISTERS {
        true => std::iter::once(HEADER_LEN..DENSE_LEN).collect(),
        false => raising.iter().map(|seen| seen.dense_range()).collect(),
    };
    ranges.push(hll::STALE_AT..hll::STALE_AT + 1);
    ctx.shard
        .edit((ctx.db, key), DENSE_LEN, ranges, ctx.now, |value| {
            for seen in raising {
                hll::raise_dense(value, *seen);
            }
            hll::mark_stale(value);
        });
}

#[cfg(test)]
crate::testing::transcripts! {
    says_whether_a_register_was_raised: "
        PFADD k => :1
        PFADD k => :0
        PFADD k a b c => :1
        PFADD k a b c => :0
        PFADD k '' => :1
        PFADD new x x => :1
        PFCOUNT new => :1
    "

    keeps_the_expiry_in_both_encodings: "
        PFADD k a => :1
        PEXPIRE k 10 => :1
        PFADD k b => :1
        PFDEBUG TODENSE k => :1
        PFADD k c => :1
        PTTL k => :10
        after 10 ms: GET k => $-1
    "

    other_strings_are_refused: "
        SET k bar => +OK
        PFADD k a => -WRONGTYPE Key is not a valid HyperLogLog string value.
        GET k => 'bar'
        PFADD l a => :1
        SETRANGE l 4 x => :21
        PFADD l b => -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFADD m a => :1
        APPEND m hello => :26
        PFADD m b => -INVALIDOBJ Corrupted HLL object detected
        STRLEN m => :26
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;
    use rufous_datatype::algebra::Tuning;

    #[test]
    fn values_are_the_bytes_of_redis() {
        let mut rig = Rig::new();
        rig.check("PFADD k a", ":1");
        rig.check("PFADD k b c", ":1");
        assert_eq!(
            rig.run(&[b"GET", b"k"]),
            b"$27\r\nHYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x60\xf3\x80\x50\xb1\x84\x4b\xfb\x80\x42\x5a\r\n"
        );
    }

    #[test]
    fn one_by_one_or_together_and_dense_in_the_end() {
        let mut rig = Rig::new();
        let elements: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
        for chunk in elements.chunks(700) {
            let mut words = vec![b"PFADD".as_slice(), b"together"];
            words.extend(chunk.iter().map(String::as_bytes));
            rig.run(&words);
        }
        for element in &elements {
            rig.run(&[b"PFADD", b"single", element.as_bytes()]);
        }
        rig.check("PFDEBUG ENCODING single", "+dense");
        assert_eq!(
            rig.run(&[b"GET", b"single"]),
            rig.run(&[b"GET", b"together"])
        );
        rig.check("PFCOUNT single", ":4985");
        rig.check("STRLEN single", ":12304");
    }

    #[test]
    fn dense_beyond_the_length_set() {
        let mut rig = Rig::new();
        let tuning = Tuning {
            hll_sparse_max_bytes: 20,
            ..Tuning::default()
        };
        rig.shard.set_tuning(tuning);
        rig.check("PFADD k", ":1");
        rig.check("PFDEBUG ENCODING k", "+sparse");
        rig.check("PFADD k a", ":1");
        rig.check("PFDEBUG ENCODING k", "+dense");
        rig.check("PFADD k a", ":0");
    }
}
