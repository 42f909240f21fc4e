//! LPOS: where in a list an element is.

use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::integer::parse_i64;
use rufous_datatype::list::Search;

command! {
    /// Returns the index of the first element of a list that is equal to the one given, or the
    /// indices of several.
    LPOS = run: "lpos", syntax "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
    arity -3, group List, since "6.0.6", flags READONLY | SLOW,
    complexity "O(N) with N elements looked at", keys Keys::FIRST,
}

/// The search, and whether an array is asked for.
fn parse<'a>(args: &'a Args<'_>) -> Result<(Search<'a>, bool), Failure> {
    let mut search = Search {
        element: args.get(2),
        rank: 1,
        count: 1,
        most: 0,
    };
    let mut several = false;
    let mut at = 3;
    while at < args.len() {
        let (word, value) = (args.get(at), args.get(at + 1));
        if at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        if is(word, "RANK") {
            search.rank = rank(value)?;
        } else if is(word, "COUNT") {
            several = true;
            search.count = unsigned(value, "ERR COUNT can't be negative")?;
        } else if is(word, "MAXLEN") {
            search.most = unsigned(value, "ERR MAXLEN can't be negative")?;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    Ok((search, several))
}

fn rank(value: &[u8]) -> Result<i64, Failure> {
    match parse_i64(value) {
        None => Err(Failure::NOT_AN_INTEGER),
        Some(i64::MIN) => Err(Failure::from(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        )),
        Some(0) => Err(Failure::from(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        )),
        Some(rank) => Ok(rank),
    }
}

fn unsigned(value: &[u8], refusal: &'static str) -> Result<u64, Failure> {
    let number = parse_i64(value).and_then(|n| u64::try_from(n).ok());
    number.ok_or(Failure::from(refusal))
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (search, several) = parse(&args)?;
    let view = super::read(ctx, args.get(1))?;
    let places = view.map_or_else(Vec::new, |view| view.positions(&search));
    if several {
        reply.array(places.len());
        places.iter().for_each(|&place| reply.integer(place as i64));
    } else {
        match places.first() {
            Some(&place) => reply.integer(place as i64),
            None => reply.null(),
        }
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    the_first_or_several_from_either_end: "
        RPUSH k a b c 1 2 3 c c => :8
        LPOS k c => :2
        LPOS k none => $-1
        LPOS k c RANK 2 => :6
        LPOS k c RANK -1 => :7
        LPOS k c RANK 4 => $-1
        LPOS k c COUNT 0 => *3 :2 :6 :7
        LPOS k c COUNT 2 RANK -1 => *2 :7 :6
        LPOS k c COUNT 0 MAXLEN 3 => *1 :2
        LPOS k c COUNT 0 MAXLEN 2 => *0
        LPOS k c COUNT 0 MAXLEN 2 RANK -1 => *2 :7 :6
        LPOS none c => $-1
        LPOS none c COUNT 1 => *0
    "

    refusals: "
        LPOS k c COUNT -1 => -ERR COUNT can't be negative
        LPOS k c MAXLEN -1 => -ERR MAXLEN can't be negative
        LPOS k c RANK => -ERR syntax error
        LPOS k c WHAT 1 => -ERR syntax error
        LPOS k c RANK 0 => -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
    "
}
