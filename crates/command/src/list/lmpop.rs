//! LMPOP: takes elements off the first of several lists that is there.

use super::{End, pop_many};
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::integer::parse_i64;
use rufous_datatype::list::List;

command! {
    /// Takes elements off an end of the first list that is there, and returns its key and them.
    LMPOP = run: "lmpop", syntax "numkeys key [key ...] LEFT | RIGHT [COUNT count]", arity -4,
    group List, since "7.0.0", flags WRITE | MOVABLE_KEYS | OF_EACH,
    complexity "O(N + M) with N keys and M elements returned", keys Keys::Custom {
        find,
        shown: (0, 0, 0),
    },
}

fn find(args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
    if let Ok(request) = Request::parse(args, 1) {
        keys.extend((request.first..request.end).map(|at| (db, at as u32)));
    }
}

/// What a request of this shape asks for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The arguments that are keys.
    pub(crate) first: usize,
    pub(crate) end: usize,
    pub(crate) from: End,
    pub(crate) count: u64,
}

impl Request {
    /// `at`: the argument that says how many keys there are.
    pub(crate) fn parse(args: &Args<'_>, at: usize) -> Result<Self, Failure> {
        let positive = |arg: &[u8]| {
            parse_i64(arg)
                .and_then(|n| u64::try_from(n).ok())
                .filter(|&n| n > 0)
        };
        let keys = positive(args.get(at)).ok_or("ERR numkeys should be greater than 0")?;
        let first = at + 1;
        let end = usize::try_from(keys)
            .ok()
            .and_then(|keys| keys.checked_add(first));
        let end = end.filter(|&end| end < args.len()).ok_or(Failure::SYNTAX)?;
        let from = End::parse(args.get(end))?;
        let left = args.len() - end - 1;
        let count = match left {
            0 => 1,
            2.. if is(args.get(end + 1), "COUNT") => {
                positive(args.get(end + 2)).ok_or("ERR count should be greater than 0")?
            }
            _ => return Err(Failure::SYNTAX),
        };
        if left > 2 {
            return Err(Failure::SYNTAX);
        }
        Ok(Self {
            first,
            end,
            from,
            count,
        })
    }

    /// Takes off the first list that is there. False, and no reply, where none is.
    pub(crate) fn take(
        &self,
        ctx: &mut Ctx<'_>,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Failure> {
        for at in self.first..self.end {
            let name = args.get(at);
            let key = ctx.key(name);
            let Some(value) = ctx.shard.look(ctx.db, key, ctx.now) else {
                continue;
            };
            value.of::<List>()?;
            reply.array(2);
            reply.bulk(name);
            return pop_many(ctx, key, self.from, self.count, reply);
        }
        Ok(false)
    }
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let request = Request::parse(&args, 1)?;
    if !request.take(ctx, &args, reply)? {
        reply.null_array();
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    of_the_first_list_that_is_there: "
        LMPOP 2 a b LEFT => *-1
        RPUSH b 1 2 3 => :3
        LMPOP 2 a b LEFT => *2 'b' *1 '1'
        LMPOP 2 a b right count 5 => *2 'b' *2 '3' '2'
        EXISTS b => :0
    "

    refusals: "
        LMPOP 0 a LEFT => -ERR numkeys should be greater than 0
        LMPOP x a LEFT => -ERR numkeys should be greater than 0
        LMPOP 3 a b LEFT => -ERR syntax error
        LMPOP 9223372036854775807 a LEFT => -ERR syntax error
        LMPOP 1 a UP => -ERR syntax error
        LMPOP 1 a LEFT COUNT => -ERR syntax error
        LMPOP 1 a LEFT COUNT 0 => -ERR count should be greater than 0
        LMPOP 1 a LEFT COUNT -1 => -ERR count should be greater than 0
        LMPOP 1 a LEFT COUNT 1 COUNT 1 => -ERR syntax error
        SET s v => +OK
        RPUSH b 1 => :1
        LMPOP 2 s b LEFT => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
