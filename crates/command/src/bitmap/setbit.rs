//! SETBIT: sets or clears one bit.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::bits;

command! {
    /// Sets or clears the bit at an offset of the string at a key, making the string long enough,
    /// and returns the old bit.
    SETBIT = run: "setbit", syntax "key offset value", arity 4, group Bitmap, since "2.2.0",
    flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let offset = bits::parse_bit_offset(args.get(2), None, MAX_BULK)?;
    let bit = bits::parse_bit(args.get(3))?;
    let key = ctx.first_key(args.get(1));
    let len = bits::bytes_to_hold(offset) as usize;
    let same = ctx.shard.peek(ctx.db, key, ctx.now)?.is_some_and(|value| {
        let bytes = value.bytes();
        bytes.len() >= len && bits::getbit(bytes, offset) == bit
    });
    // A bit that keeps its value counts as no change, and a large value
    // that a reply still refers to need not be copied.
    let old = if same {
        bit
    } else {
        ctx.shard
            .edit((ctx.db, key), len, Some(len - 1..len), ctx.now, |value| {
                bits::setbit(value, offset, bit)
            })
    };
    reply.integer(old.into());
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    sets_and_returns_what_was: "
        SETBIT k 1 1 => :0
        SETBIT k 9 1 => :0
        GET k => '@@'
        SETBIT k 1 1 => :1
        SETBIT k 9 0 => :1
        GET k => '@\0'
        SETBIT new 16 0 => :0
        GET new => '\0\0\0'
    "

    keeps_the_expiry: "
        SET k a PX 10 => +OK
        SETBIT k 100 1 => :0
        after 10 ms: GET k => $-1
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn offsets_and_bits_have_limits() {
        let mut rig = Rig::new();
        rig.check("SETBIT k 4294967295 1", ":0");
        rig.check("STRLEN k", ":536870912");
        for bad in ["4294967296", "-1", "x", "1.0", "#1", ""] {
            rig.check(
                &format!("SETBIT k {} 1", if bad.is_empty() { "\"\"" } else { bad }),
                "-ERR bit offset is not an integer or out of range",
            );
        }
        for bad in ["2", "-1", "x", "01"] {
            rig.check(
                &format!("SETBIT k 0 {bad}"),
                "-ERR bit is not an integer or out of range",
            );
        }
    }
}
