//! BITPOS: where the first bit of a value is.

use super::unit;
use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bits::{self, BitUnit};

command! {
    /// Finds the first bit that is set, or clear, in the string at a key or between two offsets of
    /// it.
    BITPOS = run: "bitpos", syntax "key bit [start [end [BYTE | BIT]]]", arity -3, group Bitmap,
    since "2.8.7", flags READONLY | SLOW, complexity "O(N) with N bytes to read",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let bit = bits::parse_bitpos_bit(args.get(2))?;
    let key = ctx.first_key(args.get(1));
    // A missing key is answered before the other arguments are checked.
    let Some(value) = ctx.shard.get(ctx.db, key, ctx.now)? else {
        reply.integer(bits::bitpos_absent(bit));
        return Ok(());
    };
    if args.len() > 6 {
        return Err(Failure::SYNTAX);
    }
    let start = match args.len() {
        3 => 0,
        _ => integer(args.get(3))?,
    };
    let unit = match args.len() {
        6 => unit(args.get(5))?,
        _ => BitUnit::Byte,
    };
    let end = match args.len() {
        3 | 4 => None,
        _ => Some(integer(args.get(4))?),
    };
    reply.integer(bits::bitpos(value.bytes(), bit, start, end, unit));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    refusals: "
        SET k v => +OK
        BITPOS none 2 => -ERR The bit argument must be 1 or 0.
        BITPOS none x => -ERR value is not an integer or out of range
        BITPOS none 0 x y z => :0
        BITPOS k 0 0 x z => -ERR syntax error
        BITPOS k 0 x 0 z => -ERR value is not an integer or out of range
        BITPOS k 0 0 0 BIT z => -ERR syntax error
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn set_and_clear_bits() {
        let mut rig = Rig::new();
        rig.run(&[b"SET", b"k", b"\xff\xf0\x00"]);
        rig.check("BITPOS k 0", ":12");
        rig.check("BITPOS k 1", ":0");
        rig.check("BITPOS k 1 2", ":-1");
        rig.check("BITPOS k 1 7 -1 bit", ":7");
        rig.check("BITPOS k 0 -1 -1 BYTE", ":16");
    }

    #[test]
    fn beyond_the_end_are_zeros_unless_an_end_is_given() {
        let mut rig = Rig::new();
        rig.run(&[b"SET", b"k", b"\xff\xff"]);
        rig.check("BITPOS k 0", ":16");
        rig.check("BITPOS k 0 1", ":16");
        rig.check("BITPOS k 0 0 -1", ":-1");
        rig.check("BITPOS k 0 5", ":-1");
        rig.check("BITPOS none 0", ":0");
        rig.check("BITPOS none 1", ":-1");
    }
}
