//! UID.NEXT: takes identifiers.

use crate::{Ctx, Failure, Keys, Reply, command, options};
use rufous_base::Args;
use rufous_datatype::uid::{Op, Uid, free};

command! {
    /// Takes one identifier, or COUNT of them, that nobody else was given or will be. They come in
    /// no promised order.
    NEXT = run: "uid.next", syntax "key [COUNT count]", arity -2, group Claret, since "7.2.0",
    flags WRITE | DENYOOM | FAST, complexity "O(N) where N is COUNT", keys Keys::FIRST,
}

/// The most identifiers that one command takes.
const MOST: i64 = 100_000;

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let count = match args.len() {
        2 => None,
        4 if options::is(args.get(2), "COUNT") => Some(options::integer(args.get(3))?),
        _ => return Err(Failure::SYNTAX),
    };
    let many = count.unwrap_or(1);
    if !(1..=MOST).contains(&many) {
        return Err(format!("ERR COUNT must be between 1 and {MOST}").into());
    }
    let first = ctx.shard.update::<Uid, _>(ctx.db, key, ctx.now, |editor| {
        let first = i64::try_from(free(&[], editor.apply(&Op::Peek))).ok()?;
        // Taking the last of a row leaves what taking each of them leaves.
        let last = first.checked_add(many - 1)?;
        last.checked_add(1)?;
        editor.apply(&Op::Next { id: last as u64 });
        Some(first)
    })?;
    let first = first.ok_or(Failure::from("ERR no identifiers are left"))?;
    if count.is_some() {
        reply.array(many as usize);
    }
    (first..first + many).for_each(|id| reply.integer(id));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    no_identifier_comes_twice: "
        UID.NEXT k => :0
        UID.NEXT k => :1
        UID.NEXT k COUNT 3 => *3 :2 :3 :4
        UID.NEXT k count 1 => *1 :5
        UID.PEEK k => :6
        TYPE k => +uid
        object|encoding encoding k => 'int'
    "

    wrong_arguments_and_types: "
        UID.NEXT k COUNT 0 => -ERR COUNT must be between 1 and 100000
        UID.NEXT k COUNT 100001 => -ERR COUNT must be between 1 and 100000
        UID.NEXT k COUNT => -ERR syntax error
        UID.NEXT k MANY 2 => -ERR syntax error
        EXISTS k => :0
        SET s v => +OK
        UID.NEXT s => -WRONGTYPE Operation against a key holding the wrong kind of value
        UID.PEEK s => -WRONGTYPE Operation against a key holding the wrong kind of value
        UID.NEXT k => :0
        GET k => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
