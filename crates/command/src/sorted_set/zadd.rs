//! ZADD: adds members with their scores.

use super::reply::score;
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::float;
use rufous_datatype::sorted_set::{Only, Op, Outcome, Reply as Answer, SortedSet};
use std::borrow::Cow;

command! {
    /// Adds members to a sorted set, or gives those that are there another score.
    ZADD = run: "zadd",
    syntax "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]", arity -4,
    group SortedSet, since "1.2.0", flags WRITE | DENYOOM | FAST,
    complexity "O(log(N)) for each member, with N members in the set", keys Keys::FIRST,
}

pub(super) const NOT_A_NUMBER: Failure =
    Failure(Cow::Borrowed("ERR resulting score is not a number (NaN)"));

#[derive(Default)]
struct Options {
    only: Only,
    changed: bool,
    increment: bool,
    /// Where pairs begin.
    pairs: usize,
}

fn parse(args: &Args<'_>) -> Result<Options, Failure> {
    let mut options = Options {
        pairs: 2,
        ..Options::default()
    };
    loop {
        let only = &mut options.only;
        match args.get(options.pairs) {
            // What begins like a number is none of these words.
            [b'0'..=b'9' | b'-' | b'+' | b'.', ..] => break,
            word if is(word, "NX") => only.new = true,
            word if is(word, "XX") => only.known = true,
            word if is(word, "GT") => only.greater = true,
            word if is(word, "LT") => only.less = true,
            word if is(word, "CH") => options.changed = true,
            word if is(word, "INCR") => options.increment = true,
            _ => break,
        }
        options.pairs += 1;
    }
    let rest = args.len().saturating_sub(options.pairs);
    if rest == 0 || !rest.is_multiple_of(2) {
        return Err(Failure::SYNTAX);
    }
    let Only {
        new,
        known,
        greater,
        less,
    } = options.only;
    if new && known {
        return Err(Failure::from(
            "ERR XX and NX options at the same time are not compatible",
        ));
    }
    if new && (greater || less) || greater && less {
        return Err(Failure::from(
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ));
    }
    if options.increment && rest > 2 {
        return Err(Failure::from(
            "ERR INCR option supports a single increment-element pair",
        ));
    }
    Ok(options)
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let options = parse(&args)?;
    if options.increment {
        let by = score_of(args.get(options.pairs))?;
        let member = args.get(options.pairs + 1);
        return increment(ctx, args.get(1), (member, by, options.only), reply);
    }
    // Nothing is added unless all scores are numbers.
    let mut scores = Scores::default();
    for at in (options.pairs..args.len()).step_by(2) {
        scores.push(score_of(args.get(at))?);
    }
    let pair = |index: usize| args.get(options.pairs + 2 * index + 1);
    let count = add(
        ctx,
        args.get(1),
        (scores.all(), pair),
        (options.only, options.changed),
    )?;
    reply.integer(count);
    Ok(())
}

/// Adds a member for each score; answers how many are new, or how many changed
/// at all.
pub(crate) fn add<'a>(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    (scores, member): (&[f64], impl Fn(usize) -> &'a [u8]),
    (only, changed): (Only, bool),
) -> Result<i64, Failure> {
    let key = ctx.first_key(key);
    let count = ctx
        .shard
        .update::<SortedSet, _>(ctx.db, key, ctx.now, |editor| {
            let (mut added, mut updated) = (0, 0);
            for (index, &score) in scores.iter().enumerate() {
                let op = Op::Add {
                    member: member(index),
                    score,
                    only,
                };
                match editor.apply(&op) {
                    Answer::Add(Outcome::Added) => added += 1,
                    Answer::Add(Outcome::Updated) => updated += 1,
                    _ => {}
                }
            }
            added + if changed { updated } else { 0 }
        })?;
    Ok(count)
}

/// A score as an argument: mostly a short whole number.
pub(super) fn score_of(text: &[u8]) -> Result<f64, Failure> {
    let (digits, sign) = match text {
        [b'-', digits @ ..] => (digits, -1.0),
        digits => (digits, 1.0),
    };
    // 15 digits fit a double exactly.
    if matches!(digits.len(), 1..=15) && digits.iter().all(u8::is_ascii_digit) {
        let digit = |number: u64, digit: &u8| number * 10 + u64::from(digit - b'0');
        return Ok(digits.iter().fold(0, digit) as f64 * sign);
    }
    float::parse_f64(text).ok_or(Failure::NOT_A_FLOAT)
}

/// The scores of a request, most of which have few.
#[derive(Default)]
struct Scores {
    few: [f64; 4],
    len: usize,
    many: Vec<f64>,
}

impl Scores {
    fn push(&mut self, score: f64) {
        if let Some(slot) = self.few.get_mut(self.len) {
            *slot = score;
        } else {
            if self.many.is_empty() {
                self.many.extend_from_slice(&self.few);
            }
            self.many.push(score);
        }
        self.len += 1;
    }

    fn all(&self) -> &[f64] {
        if self.many.is_empty() {
            &self.few[..self.len]
        } else {
            &self.many
        }
    }
}

/// Adds to one score, and replies with the new one, or null where the
/// conditions forbid it.
pub(super) fn increment(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    (member, by, only): (&[u8], f64, Only),
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let key = ctx.first_key(key);
    let op = Op::Increment { member, by, only };
    let answer = ctx
        .shard
        .update::<SortedSet, _>(ctx.db, key, ctx.now, |editor| editor.apply(&op))?;
    match answer {
        Answer::Score(Some(new)) => score(reply, new),
        Answer::NotANumber => return Err(NOT_A_NUMBER),
        _ => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    adds_and_updates: "
        ZADD z 1 a 2 b 3 c => :3
        ZADD z CH 1 a 5 b 4 d => :2
        ZADD z 9 a => :0
        ZSCORE z a => '9'
        TYPE z => +zset
        object|encoding ENCODING z => 'listpack'
    "

    a_member_that_is_named_twice_keeps_the_last_score: "
        ZADD z CH 1 a 2 a 3 a 4 a 5 a => :5
        ZSCORE z a => '5'
        ZCARD z => :1
    "

    conditions: "
        ZADD z XX 1 a => :0
        EXISTS z => :0
        ZADD z NX 1 a 2 a => :1
        ZADD z gt ch 0 a 5 b => :1
        ZADD z GT CH 2 a => :1
        ZADD z LT CH 7 a 1 b => :1
        ZADD z XX CH 8 c 8 b => :1
        ZRANGE z 0 -1 WITHSCORES => *4 'a' '2' 'b' '8'
    "

    increments: "
        ZADD z INCR 1.5 a => '1.5'
        ZADD z NX INCR 1 a => $-1
        ZADD z XX INCR 1 b => $-1
        ZADD z GT INCR -1 a => $-1
        resp3: ZADD z INCR inf a => ,inf
        ZADD z INCR -inf a => -ERR resulting score is not a number (NaN)
    "

    refusals: "
        ZADD z 1 a x b => -ERR value is not a valid float
        ZADD z nan a => -ERR value is not a valid float
        ZADD z 1 a 2 => -ERR syntax error
        ZADD z NX CH INCR => -ERR syntax error
        EXISTS z => :0
        ZADD z NX XX 1 a => -ERR XX and NX options at the same time are not compatible
        ZADD z GT LT 1 a => -ERR GT, LT, and/or NX options at the same time are not compatible
        ZADD z INCR 1 a 2 b => -ERR INCR option supports a single increment-element pair
        SET s x => +OK
        ZADD s 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s => 'x'
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn short_numbers_are_read_like_all_others() {
        for text in [
            "0",
            "-0",
            "7",
            "-7",
            "0007",
            "999999999999999",
            "123456789012345678",
        ] {
            let expected = rufous_datatype::float::parse_f64(text.as_bytes());
            assert_eq!(super::score_of(text.as_bytes()).ok(), expected, "{text}");
        }
        for text in ["", "-", "--1", "1-", "0x", " 1"] {
            assert!(super::score_of(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn many_members_make_it_large() {
        let mut rig = Rig::new();
        for n in 0..300 {
            rig.check(&format!("ZADD z {} m{n}", n * 7 % 300), ":1");
        }
        rig.check("object|encoding ENCODING z", "'skiplist'");
        rig.check("ZRANGE z 298 -1", "*2 'm214' 'm257'");
        rig.check("ZCARD z", ":300");
    }
}
