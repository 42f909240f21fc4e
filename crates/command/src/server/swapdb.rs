//! SWAPDB: makes two databases change places.

use crate::options;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Swaps two databases, for all clients at once.
    SWAPDB = run: "swapdb", syntax "index1 index2", arity 3, group Server, since "4.0.0",
    flags WRITE | FAST | DANGEROUS, complexity "O(1)", keys Keys::None,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (a, b) = databases(&args)?;
    ctx.shard.swap(usize::from(a), usize::from(b));
    reply.ok();
    Ok(())
}

/// The two databases named. Both must be numbers before either is looked at.
pub fn databases(args: &Args<'_>) -> Result<(u8, u8), Failure> {
    let number = |at: usize, text: &'static str| {
        let value = options::integer(args.get(at))
            .ok()
            .and_then(|n| i32::try_from(n).ok());
        value.ok_or(Failure::from(text))
    };
    number(1, "ERR invalid first DB index")?;
    number(2, "ERR invalid second DB index")?;
    Ok((
        options::database(args.get(1))?,
        options::database(args.get(2))?,
    ))
}

#[cfg(test)]
crate::testing::transcripts! {
    keys_change_places: "
        SET k zero => +OK
        database 5: SET k five PX 100 => +OK
        SWAPDB 0 5 => +OK
        GET k => 'zero'
        PTTL k => :-1
        database 0: GET k => 'five'
        PTTL k => :100
        SWAPDB 0 0 => +OK
        GET k => 'five'
    "

    refused: "
        SWAPDB x 1 => -ERR invalid first DB index
        SWAPDB 99 x => -ERR invalid second DB index
        SWAPDB 0 99999999999 => -ERR invalid second DB index
        SWAPDB 0 16 => -ERR DB index is out of range
        SWAPDB -1 0 => -ERR DB index is out of range
    "
}
