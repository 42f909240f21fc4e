//! ZMPOP: takes members from the first of several sorted sets that has any.

use super::pop::{Pop, pop};
use crate::options::{integer, is};
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;
use std::ops::Range;

command! {
    /// Removes the members with the lowest or highest scores from the first sorted set that is not
    /// empty, and returns them.
    ZMPOP = run: "zmpop", syntax "numkeys key [key ...] MIN | MAX [COUNT count]", arity -4,
    group SortedSet, since "7.0.0", flags WRITE | MOVABLE_KEYS | OF_EACH,
    complexity "O(K) + O(log(N) + M) with K keys, N members in the set and M taken",
    keys super::numbered::KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let plan = Plan::parse(&args, 1)?;
    if !plan.run(ctx, &args, reply)? {
        reply.null_array();
    }
    Ok(())
}

/// The arguments of ZMPOP and its blocking form, from the number of keys on.
#[derive(Clone, Debug)]
pub struct Plan {
    pub keys: Range<usize>,
    from_top: bool,
    most: usize,
}

impl Plan {
    /// `number` is the argument that says how many keys there are.
    pub fn parse(args: &Args<'_>, number: usize) -> Result<Plan, Failure> {
        let count = |at: usize, what: &'static str| -> Result<usize, Failure> {
            let count = integer(args.get(at))
                .ok()
                .and_then(|n| usize::try_from(n).ok());
            count.filter(|n| *n > 0).ok_or(Failure::from(what))
        };
        let keys = count(number, "ERR numkeys should be greater than 0")?;
        let first = number + 1;
        // Where the end is named.
        let end = first.checked_add(keys).filter(|end| *end < args.len());
        let end = end.ok_or(Failure::SYNTAX)?;
        let from_top = match args.get(end) {
            word if is(word, "MIN") => false,
            word if is(word, "MAX") => true,
            _ => return Err(Failure::SYNTAX),
        };
        let most = match args.len() - end {
            1 => 1,
            3.. if is(args.get(end + 1), "COUNT") => {
                count(end + 2, "ERR count should be greater than 0")?
            }
            _ => return Err(Failure::SYNTAX),
        };
        if args.len() - end > 3 {
            return Err(Failure::SYNTAX);
        }
        Ok(Plan {
            keys: first..end,
            from_top,
            most,
        })
    }

    /// Takes from the first set that has elements; false, and no reply, if
    /// there is none.
    pub fn run(
        &self,
        ctx: &mut Ctx<'_>,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Failure> {
        let what = Pop {
            from_top: self.from_top,
            most: self.most,
            nested: true,
        };
        for at in self.keys.clone() {
            let name = args.get(at);
            let key = ctx.key(name);
            let taken = pop(ctx, key, what, reply, |reply, count| {
                reply.array(2);
                reply.bulk(name);
                reply.array(count);
            })?;
            if taken > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
crate::testing::transcripts! {
    takes_from_the_first_that_has_any: "
        ZMPOP 1 z MIN => *-1
        ZADD z 1 a 2 b 3 c => :3
        ZMPOP 2 none z MAX COUNT 2 => *2 'z' *2 *2 'c' '3' *2 'b' '2'
        ZMPOP 2 z none min => *2 'z' *1 *2 'a' '1'
    "

    refusals: "
        ZMPOP 0 z MIN => -ERR numkeys should be greater than 0
        ZMPOP 2 z MIN => -ERR syntax error
        ZMPOP 1 z MID => -ERR syntax error
        ZMPOP 1 z MIN COUNT 0 => -ERR count should be greater than 0
        ZMPOP 1 z MIN COUNT => -ERR syntax error
        ZMPOP 9223372036854775807 z MIN => -ERR syntax error
        SET s x => +OK
        ZMPOP 2 s z MIN => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
