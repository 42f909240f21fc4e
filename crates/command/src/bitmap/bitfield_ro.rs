//! BITFIELD_RO: reads integers of any width within a value.

use super::bitfield::{parse, read};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bitfield::BitfieldOp;

command! {
    /// Reads integers of any width at any bit offset of the string at a key.
    BITFIELD_RO = run: "bitfield_ro", syntax "key [GET encoding offset [GET encoding offset ...]]",
    arity -2, group Bitmap, since "6.0.0", flags READONLY | FAST,
    complexity "O(1) for each operation", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let ops = parse(&args)?;
    if ops.iter().any(BitfieldOp::is_write) {
        return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
    }
    read(ctx, args.get(1), &ops, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    reads_and_only_reads: "
        SET k ab => +OK
        BITFIELD_RO k GET u8 #1 GET i4 0 GET u8 100 => *3 :98 :6 :0
        BITFIELD_RO none GET u8 0 => *1 :0
        BITFIELD_RO none => *0
        BITFIELD_RO k GET u8 0 SET u8 0 1 => -ERR BITFIELD_RO only supports the GET subcommand
        GET k => 'ab'
    "
}
