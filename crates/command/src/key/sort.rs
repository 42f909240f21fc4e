//! SORT: the elements of a list, a set or a sorted set in another order.
//!
//! With patterns it reads other keys, whose names follow from the elements. So they cannot be held before the
//! elements are known: the kernel asks for them once it holds the named keys (`Program::others`).

mod pattern;
mod request;

use crate::{Ctx, Failure, Keys, Reply, command};
use request::{Get, Request};
use rufous_base::{Args, Now};
use rufous_datatype::algebra::Algebra;
use rufous_datatype::float::parse_f64;
use rufous_datatype::list::{List, Op, State};
use rufous_datatype::object::Registered;
use rufous_datatype::set::Set;
use rufous_datatype::sorted_set::SortedSet;
use rufous_kernel::lock::KeyName;
use rufous_kernel::shard::{Any, Entry, OwnedValue, Shard};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

command! {
    /// Returns or stores the elements of a list, a set or a sorted set in the order of their
    /// numbers or bytes.
    SORT = run: "sort",
    syntax "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]",
    arity -2, group Generic, since "1.0.0", flags WRITE | DENYOOM | MOVABLE_KEYS | SLOW | DANGEROUS,
    complexity "O(N log N) with N elements", keys Keys::Open {
        find,
        shown: (1, 1, 1),
        is_open,
        others: |shard, db, args, now| others(shard, db, args, now, true),
    },
}

command! {
    /// Returns the elements of a list, a set or a sorted set in the order of their numbers or
    /// bytes.
    SORT_RO = run_ro: "sort_ro",
    syntax "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]",
    arity -2, group Generic, since "7.0.0", flags READONLY | MOVABLE_KEYS | SLOW,
    complexity "O(N log N) with N elements", keys Keys::Open {
        find: |_, db, keys| keys.push((db, 1)),
        shown: (1, 1, 1),
        is_open,
        others: |shard, db, args, now| others(shard, db, args, now, false),
    },
}

/// The last destination that is named counts. Of a request that cannot run, any keys will do.
fn find(args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
    keys.push((db, 1));
    if let Ok(Request {
        store: Some(at), ..
    }) = Request::parse(args, true)
    {
        keys.push((db, at as u32));
    }
}

/// Whether a pattern names other keys, as far as a quick look shows.
fn is_open(args: &Args<'_>) -> bool {
    args.iter_from(2).any(|arg| arg.contains(&b'*'))
}

/// The keys that patterns name. None where the request will be refused.
fn others(
    shard: &mut Shard,
    db: u8,
    args: &Args<'_>,
    now: Now,
    may_store: bool,
) -> BTreeSet<KeyName> {
    let mut keys = BTreeSet::new();
    let key = shard.key(args.get(1));
    let value = shard.look(usize::from(db), key, now);
    let Ok(request) = Request::parse(args, may_store) else {
        return keys;
    };
    let Ok((elements, as_they_are)) = elements(value, &request) else {
        return keys;
    };
    if request.check(elements.len()).is_err() {
        return keys;
    }
    let rows = match request.by() {
        Some(by) => {
            keys.extend(elements.iter().map(|element| by.key(db, element)));
            // Which ones are within the limit is not known before the weights are.
            (0..elements.len()).collect()
        }
        None => match order(&elements, &Weights::Own, &request, as_they_are) {
            Ok(order) => order[request.limit(elements.len())].to_vec(),
            Err(_) => return keys,
        },
    };
    for pattern in request.got() {
        keys.extend(rows.iter().map(|&at| pattern.key(db, elements[at])));
    }
    keys
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    sort(ctx, &args, &Request::parse(&args, true)?, reply)
}

fn run_ro(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    sort(ctx, &args, &Request::parse(&args, false)?, reply)
}

fn sort(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    // The access counts; what is worked on is a copy (of a large value, a reference), so that other keys can be read.
    let _ = ctx.shard.read(ctx.db, key, ctx.now);
    let source = ctx.shard.clone_entry(ctx.db, key, ctx.now);
    let value = source.as_ref().map(|entry| entry.value.any());
    let (elements, as_they_are) = elements(value, request)?;
    request.check(elements.len())?;
    let weights = match request.by() {
        Some(_) => weights(ctx, &elements, request)?,
        None => Weights::Own,
    };
    let order = order(&elements, &weights, request, as_they_are)?;
    let sorted = &order[request.limit(elements.len())];
    let count = sorted.len() * request.columns();
    let Some(store) = request.store else {
        reply.array(count);
        for &at in sorted {
            row(ctx, elements[at], request, |cell| match cell {
                Some(bytes) => reply.bulk(bytes),
                None => reply.null(),
            });
        }
        return Ok(());
    };
    let (mut state, tuning) = (List::empty(), *ctx.shard.tuning());
    for &at in sorted {
        row(ctx, elements[at], request, |cell| {
            let element = cell.unwrap_or_default();
            List::commit(&mut state, &Op::PushBack { element }, &tuning);
        });
    }
    put(ctx, args.get(store), state, count);
    reply.count(count);
    Ok(())
}

/// Puts so many elements in place of what the key has.
fn put(ctx: &mut Ctx<'_>, target: &[u8], state: State, count: usize) {
    let target = ctx.key(target);
    if count == 0 {
        ctx.shard.remove(ctx.db, target, ctx.now);
        return;
    }
    let entry = Entry {
        value: OwnedValue::Object(List::wrap(state)),
        expire_at: None,
        access: ctx.shard.policy().first_stamp(ctx.now),
    };
    ctx.shard.insert_entry(ctx.db, target, entry, ctx.now);
}

/// What is returned for an element: itself, or what each GET gives.
fn row(
    ctx: &mut Ctx<'_>,
    element: &[u8],
    request: &Request<'_>,
    mut cell: impl FnMut(Option<&[u8]>),
) {
    if request.gets.is_empty() {
        return cell(Some(element));
    }
    let mut name = Vec::new();
    for get in &request.gets {
        match get {
            Get::Element => cell(Some(element)),
            Get::Nothing => cell(None),
            Get::Value(pattern) => cell(pattern.value(ctx, element, &mut name)),
        }
    }
}

/// What elements are sorted by.
enum Weights {
    /// Themselves.
    Own,
    Numbers(Vec<f64>),
    Bytes(Vec<Option<Box<[u8]>>>),
}

/// The values of the keys that BY names.
fn weights(
    ctx: &mut Ctx<'_>,
    elements: &[&[u8]],
    request: &Request<'_>,
) -> Result<Weights, Failure> {
    let Some(by) = request.by() else {
        return Ok(Weights::Own);
    };
    let mut name = Vec::new();
    if request.alpha {
        let bytes = elements
            .iter()
            .map(|element| by.value(ctx, element, &mut name).map(Box::from));
        return Ok(Weights::Bytes(bytes.collect()));
    }
    let numbers = elements
        .iter()
        .map(|element| by.value(ctx, element, &mut name).map_or(Some(0.0), number));
    let numbers: Option<Vec<f64>> = numbers.collect();
    numbers.map(Weights::Numbers).ok_or(NOT_A_NUMBER)
}

/// All elements, and whether they stay in the order that they are in.
fn elements<'a>(
    value: Option<Any<'a>>,
    request: &Request<'_>,
) -> Result<(Vec<&'a [u8]>, bool), Failure> {
    let Some(value) = value else {
        return Ok((Vec::new(), true));
    };
    let backwards = !request.sorts && request.descending;
    if let Ok(list) = value.of::<List>() {
        let elements = match backwards {
            true => list.iter_back().collect(),
            false => list.iter().collect(),
        };
        return Ok((elements, !request.sorts));
    }
    if let Ok(set) = value.of::<Set>() {
        // What is stored must not depend on the order that the members happen to have.
        let kept = !request.sorts && request.store.is_none();
        return Ok((set.iter().map(|(member, _)| member).collect(), kept));
    }
    let view = value.of::<SortedSet>()?;
    let mut all = Vec::with_capacity(view.len());
    view.each(0..view.len(), backwards, |member, _| all.push(member));
    Ok((all, !request.sorts))
}

/// The numbers of the elements in the order asked for, as far as the limit needs them.
fn order(
    elements: &[&[u8]],
    weights: &Weights,
    request: &Request<'_>,
    as_they_are: bool,
) -> Result<Vec<usize>, Failure> {
    let mut order: Vec<usize> = (0..elements.len()).collect();
    if as_they_are {
        return Ok(order);
    }
    let own: Vec<f64>;
    let numbers = match weights {
        Weights::Numbers(numbers) => Some(numbers),
        Weights::Own if !request.alpha && request.sorts => {
            let numbers: Option<_> = elements.iter().map(|element| number(element)).collect();
            own = numbers.ok_or(NOT_A_NUMBER)?;
            Some(&own)
        }
        Weights::Own | Weights::Bytes(_) => None,
    };
    let compare = |&a: &usize, &b: &usize| {
        let by_weight = match (weights, numbers) {
            (_, Some(numbers)) => numbers[a].partial_cmp(&numbers[b]),
            // Those that have none come first.
            (Weights::Bytes(bytes), None) => Some(bytes[a].cmp(&bytes[b])),
            (_, None) => None,
        };
        // Equal numbers may be written differently; the order must be the same each time.
        let by_bytes = || elements[a].cmp(elements[b]);
        let order = by_weight.unwrap_or(Ordering::Equal).then_with(by_bytes);
        match request.descending {
            true => order.reverse(),
            false => order,
        }
    };
    let end = request.limit(elements.len()).end;
    if end < order.len() {
        order.select_nth_unstable_by(end, compare);
        order.truncate(end);
    }
    // Elements that are equal here are the same bytes.
    order.sort_unstable_by(compare);
    Ok(order)
}

const NOT_A_NUMBER: Failure = Failure(Cow::Borrowed(
    "ERR One or more scores can't be converted into double",
));

/// As C reads it: white space before it, up to a zero byte, and nothing at all, which is 0.
fn number(element: &[u8]) -> Option<f64> {
    let text = element.split(|&byte| byte == 0).next().unwrap_or_default();
    match text.trim_ascii_start() {
        b"" if text.is_empty() => Some(0.0),
        digits => parse_f64(digits).filter(|number| !number.is_nan()),
    }
}

#[cfg(test)]
mod tests;
