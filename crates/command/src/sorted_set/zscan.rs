//! ZSCAN: all members, a few at a time.

use super::reply::bulk_score;
use crate::elements::{Elements, Scan};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;
use rufous_resp::encode::Proto;

command! {
    /// Goes through the members of a sorted set and their scores, a few with every call.
    ZSCAN = run: "zscan", syntax "key cursor [MATCH pattern] [COUNT count]", arity -3,
    group SortedSet, since "2.8.0", flags READONLY,
    complexity "O(1) for every call, O(N) for a whole pass over N members", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let cursor = Scan::cursor(args.get(2))?;
    let key = ctx.first_key(args.get(1));
    if ctx
        .shard
        .collection::<SortedSet>(ctx.db, key, ctx.now)?
        .is_none()
    {
        // As in Redis, the options of nothing are not looked at.
        Scan::reply(0, &Elements::default(), reply);
        return Ok(());
    }
    let scan = Scan::parse(&args)?;
    let view = ctx
        .shard
        .look(ctx.db, key, ctx.now)
        .map(|any| any.of::<SortedSet>())
        .transpose()?;
    // The head needs what is known at the end: the elements are written first,
    // elsewhere.
    let mut found = rufous_base::Output::default();
    let (mut next, mut len) = (0, 0);
    if let Some(view) = view {
        let mut part = Reply::new(&mut found, reply.proto == Proto::Resp3);
        next = view.scan(cursor, scan.count, &mut |member, score| {
            if scan.shows(member) {
                part.bulk(member);
                bulk_score(&mut part, score);
                len += 2;
            }
        });
    }
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.array(len);
    reply.out.bytes.extend_from_slice(&found.bytes);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    small_sets_come_at_once: "
        ZSCAN z 0 => *2 '0' *0
        ZADD z 1.5 a 2 b => :2
        ZSCAN z 0 COUNT 1 => *2 '0' *4 'a' '1.5' 'b' '2'
        resp3: ZSCAN z 0 MATCH b* => *2 '0' *2 'b' '2'
    "

    refusals: "
        ZSCAN z x => -ERR invalid cursor
        ZADD z 1 a => :1
        ZSCAN z 0 COUNT 0 => -ERR syntax error
        ZSCAN z 0 MATCH => -ERR syntax error
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    use std::collections::BTreeSet;

    #[test]
    fn large_sets_come_in_pieces() {
        let mut rig = Rig::new();
        for n in 0..1000 {
            rig.check(&format!("ZADD z {n} m{n}"), ":1");
        }
        let (mut cursor, mut seen) = ("0".to_owned(), BTreeSet::new());
        let mut calls = 0;
        loop {
            let reply = rig.run(&[b"ZSCAN", b"z", cursor.as_bytes(), b"COUNT", b"50"]);
            let text = String::from_utf8(reply).unwrap();
            let mut lines = text.split("\r\n").skip(2);
            cursor = lines.next().unwrap().to_owned();
            seen.extend(lines.filter(|l| l.starts_with('m')).map(str::to_owned));
            calls += 1;
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(seen.len(), 1000);
        assert!(calls > 5, "{calls} calls");
    }
}
