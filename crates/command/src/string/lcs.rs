//! LCS: what two values have in common, in order.

use super::owned::{bytes, owned};
use crate::options::{integer, is};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::lcs;

command! {
    /// Finds a longest common subsequence of the strings at two keys: the bytes, their number, or
    /// where they stand.
    LCS = run: "lcs", syntax "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
    arity -3, group String, since "7.0.0", flags READONLY | SLOW,
    complexity "O(N*M) with strings of N and M bytes", keys Keys::FIRST_TWO,
}

/// Redis has a text of its own for this command.
const NOT_STRINGS: Failure = Failure(std::borrow::Cow::Borrowed(
    "ERR The specified keys must contain string values",
));

#[derive(Default)]
struct Options {
    len: bool,
    index: bool,
    with_match_len: bool,
    min_match_len: i64,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    // Redis looks at the keys before the options.
    let a = ctx.first_key(args.get(1));
    let b = ctx.key(args.get(2));
    let a = owned(ctx.shard.get(ctx.db, a, ctx.now).map_err(|_| NOT_STRINGS)?);
    let b = owned(ctx.shard.get(ctx.db, b, ctx.now).map_err(|_| NOT_STRINGS)?);
    let options = parse(&args)?;
    let (a, b) = (bytes(&a), bytes(&b));
    if options.index {
        let found = lcs::lcs_index(a, b, options.min_match_len, MAX_BULK)?;
        write_index(&found, options.with_match_len, reply);
    } else if options.len {
        reply.count(lcs::lcs_len(a, b, MAX_BULK)?);
    } else {
        reply.bulk(&lcs::lcs(a, b, MAX_BULK)?);
    }
    Ok(())
}

fn parse(args: &Args<'_>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut at = 3;
    while at < args.len() {
        match args.get(at) {
            word if is(word, "LEN") => options.len = true,
            word if is(word, "IDX") => options.index = true,
            word if is(word, "WITHMATCHLEN") => options.with_match_len = true,
            word if is(word, "MINMATCHLEN") && at + 1 < args.len() => {
                at += 1;
                options.min_match_len = integer(args.get(at))?;
            }
            _ => return Err(Failure::SYNTAX),
        }
        at += 1;
    }
    if options.len && options.index {
        return Err("ERR If you want both the length and indexes, please just use IDX.".into());
    }
    Ok(options)
}

fn write_index(found: &lcs::LcsIndex, with_match_len: bool, reply: &mut Reply<'_>) {
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(found.matches.len());
    for one in &found.matches {
        reply.array(2 + usize::from(with_match_len));
        for (first, last) in [one.a, one.b] {
            reply.array(2);
            reply.count(first);
            reply.count(last);
        }
        if with_match_len {
            reply.count(one.match_len());
        }
    }
    reply.bulk(b"len");
    reply.count(found.len);
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    fn rig() -> Rig {
        let mut rig = Rig::new();
        rig.check("MSET a ohmytext b mynewtext", "+OK");
        rig
    }

    #[test]
    fn bytes_or_their_number() {
        let mut rig = rig();
        rig.check("LCS a b", "'mytext'");
        rig.check("LCS a b LEN", ":6");
        rig.check("LCS a none", "''");
        rig.check("LCS none a len", ":0");
        rig.check("LCS a a WITHMATCHLEN", "'ohmytext'");
    }

    #[test]
    fn places() {
        let mut rig = rig();
        let text = "*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n";
        let my = "*2\r\n*2\r\n:2\r\n:3\r\n*2\r\n:0\r\n:1\r\n";
        let reply = |matches: &str| format!("*4\r\n$7\r\nmatches\r\n{matches}$3\r\nlen\r\n:6\r\n");
        rig.check("LCS a b IDX", &reply(&format!("*2\r\n{text}{my}")));
        rig.check(
            "LCS a b IDX MINMATCHLEN 4",
            &reply(&format!("*1\r\n{text}")),
        );
        rig.check(
            "LCS a b IDX MINMATCHLEN -9",
            &reply(&format!("*2\r\n{text}{my}")),
        );
        rig.check("LCS a b IDX MINMATCHLEN 5", &reply("*0\r\n"));
        let with_len = text.replacen("*2", "*3", 1) + ":4\r\n";
        rig.check(
            "LCS a b minmatchlen 4 idx withmatchlen",
            &reply(&format!("*1\r\n{with_len}")),
        );
        rig.resp3()
            .check("LCS a none IDX", "%2 'matches' *0 'len' :0");
    }

    #[test]
    fn refusals() {
        let mut rig = rig();
        rig.check(
            "LCS a b LEN IDX",
            "-ERR If you want both the length and indexes, please just use IDX.",
        );
        rig.check("LCS a b MINMATCHLEN", "-ERR syntax error");
        rig.check(
            "LCS a b MINMATCHLEN x",
            "-ERR value is not an integer or out of range",
        );
        rig.check("LCS a b x", "-ERR syntax error");
        rig.check("RPUSH list 1", ":1");
        let keys = "-ERR The specified keys must contain string values\r\n";
        rig.check("LCS a list x", keys);
        rig.check("SETRANGE a 20000 x", ":20001");
        rig.check("SETRANGE b 20000 x", ":20001");
        rig.check(
            "LCS a b LEN",
            "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        );
    }
}
