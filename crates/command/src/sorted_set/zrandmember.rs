//! ZRANDMEMBER: members chosen at random.

use super::reply::{element, elements, head};
use crate::elements::repeated;
use crate::made::{self, ScoredDraws};
use crate::options::{self, is};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::rng::Rng;
use rufous_datatype::sorted_set::{SortedSet, View};
use std::collections::HashSet;

command! {
    /// Returns one or more members of a sorted set, chosen at random.
    ZRANDMEMBER = run: "zrandmember", syntax "key [count [WITHSCORES]]", arity -2, group SortedSet,
    since "6.2.0", flags READONLY,
    complexity "O(M log(N)) with N members in the set and M asked for", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let count = match args.len() {
        2 => None,
        3 | 4 => Some(count(args.get(2))?),
        _ => return Err(Failure::SYNTAX),
    };
    let scores = args.len() == 4;
    if scores && !is(args.get(3), "WITHSCORES") {
        return Err(Failure::SYNTAX);
    }
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    let Some(count) = count else {
        match view.and_then(|view| view.random(ctx.rng)) {
            Some((member, _)) => reply.bulk(member),
            None => reply.null(),
        }
        return Ok(());
    };
    let Some(view) = view else {
        reply.array(0);
        return Ok(());
    };
    let most = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count < 0 {
        let left = repeated(count)?;
        head(reply, most, scores);
        let rng = Rng::new(ctx.rng.next_u64());
        made::write::<SortedSet>(view, ScoredDraws { scores, rng, left }, reply);
    } else if most >= view.len() {
        elements(reply, view, 0..view.len(), false, scores);
    } else {
        head(reply, most, scores);
        for index in distinct(view, most, ctx.rng) {
            if let Some((member, score)) = view.at(index) {
                element(reply, member, score, scores);
            }
        }
    }
    Ok(())
}

fn count(arg: &[u8]) -> Result<i64, Failure> {
    let count = options::integer(arg)?;
    if !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(Failure::OUT_OF_RANGE);
    }
    Ok(count)
}

/// Positions, fewer than there are elements, none of them twice: every choice
/// with the same chance, in random order.
fn distinct(view: View<'_>, most: usize, rng: &mut Rng) -> Vec<usize> {
    let len = view.len();
    let below = |bound: usize, rng: &mut Rng| rng.below(bound as u64) as usize;
    if most > len / 4 {
        let mut all: Vec<usize> = (0..len).collect();
        for at in 0..most {
            let other = at + below(len - at, rng);
            all.swap(at, other);
        }
        all.truncate(most);
        return all;
    }
    let (mut seen, mut chosen) = (HashSet::new(), Vec::new());
    while chosen.len() < most {
        let index = below(len, rng);
        if seen.insert(index) {
            chosen.push(index);
        }
    }
    chosen
}

#[cfg(test)]
crate::testing::transcripts! {
    one_or_none: "
        ZRANDMEMBER z => $-1
        ZRANDMEMBER z 3 => *0
        ZADD z 1 a => :1
        ZRANDMEMBER z => 'a'
        ZRANDMEMBER z -2 WITHSCORES => *4 'a' '1' 'a' '1'
        ZRANDMEMBER z 0 => *0
        resp3: ZRANDMEMBER z 2 WITHSCORES => *1 *2 'a' ,1
        ZRANDMEMBER z x => -ERR value is not an integer or out of range
        ZRANDMEMBER z 1 SCORES => -ERR syntax error
        ZRANDMEMBER z -9223372036854775808 => -ERR value is out of range
    "

    a_reply_without_end_is_refused: "
        ZADD z 1 a => :1
        ZRANDMEMBER z -4611686018427387903 => -ERR a reply has at most 178956970 elements that may repeat; ask for fewer, more often
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    use std::collections::BTreeSet;

    #[test]
    fn all_different_unless_the_count_is_negative() {
        for size in [40, 400] {
            let mut rig = Rig::new();
            for n in 0..size {
                rig.check(&format!("ZADD z {n} {}", 1000 + n), ":1");
            }
            for count in [1, 5, size / 2, size - 1, size, size + 7] {
                let reply = rig.run(&[b"ZRANDMEMBER", b"z", count.to_string().as_bytes()]);
                let text = String::from_utf8(reply).unwrap();
                let members: BTreeSet<&str> = text
                    .split("\r\n")
                    .filter(|line| line.starts_with('1'))
                    .collect();
                assert_eq!(members.len(), count.min(size), "{count} of {size}");
            }
        }
    }
}
