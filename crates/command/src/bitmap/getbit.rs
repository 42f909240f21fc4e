//! GETBIT: one bit of a value.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::bits;

command! {
    /// Returns the bit at an offset of the string at a key; beyond its end, and of a missing key,
    /// it is 0.
    GETBIT = run: "getbit", syntax "key offset", arity 3, group Bitmap, since "2.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let offset = bits::parse_bit_offset(args.get(2), None, MAX_BULK)?;
    let key = ctx.first_key(args.get(1));
    let value = ctx.shard.get(ctx.db, key, ctx.now)?;
    let bit = value.is_some_and(|value| bits::getbit(value.bytes(), offset));
    reply.integer(bit.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_first_bit_is_the_highest() {
        let mut rig = Rig::new();
        rig.check("SET k a", "+OK");
        for (offset, bit) in [0, 1, 1, 0, 0, 0, 0, 1, 0, 0].into_iter().enumerate() {
            rig.check(&format!("GETBIT k {offset}"), &format!(":{bit}\r\n"));
        }
        rig.check("GETBIT k 4294967295", ":0");
        rig.check("GETBIT none 0", ":0");
        rig.check(
            "GETBIT none 4294967296",
            "-ERR bit offset is not an integer or out of range",
        );
    }
}
