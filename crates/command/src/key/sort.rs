//! SORT: the elements of a list, a set or a sorted set in another order.
//!
//! `BY` and `GET` of other keys are refused, as in Redis Cluster: which keys they are follows from what the elements
//! are, so that they cannot be held before the command runs.

mod request;

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use request::Request;
use rufous_base::Args;
use rufous_datatype::algebra::{Algebra, Tuning};
use rufous_datatype::float::parse_f64;
use rufous_datatype::list::{List, Op, State};
use rufous_datatype::object::Registered;
use rufous_datatype::set::Set;
use rufous_datatype::sorted_set::SortedSet;
use rufous_kernel::shard::{Any, Entry, OwnedValue};
use std::cmp::Ordering;

pub static SORT: Command = Command {
    spec: Spec {
        name: "sort",
        summary: "Returns or stores the elements of a list, a set or a sorted set in the order of their numbers or bytes.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(N log N) with N elements",
        arity: -2,
        flags: Flags::WRITE
            .or(Flags::DENYOOM)
            .or(Flags::MOVABLE_KEYS)
            .or(Flags::SLOW),
        keys: Keys::Custom {
            find,
            shown: (1, 1, 1),
        },
        syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]",
    },
    run,
};

pub static SORT_RO: Command = Command {
    spec: Spec {
        name: "sort_ro",
        summary: "Returns the elements of a list, a set or a sorted set in the order of their numbers or bytes.",
        since: "7.0.0",
        group: Group::Generic,
        complexity: "O(N log N) with N elements",
        arity: -2,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS).or(Flags::SLOW),
        keys: Keys::FIRST,
        syntax: "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]",
    },
    run: run_ro,
};

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

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    sort(ctx, &args, &Request::parse(&args, true)?, reply)
}

fn run_ro(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    sort(ctx, &args, &Request::parse(&args, false)?, reply)
}

fn sort(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    request: &Request,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let (key, tuning) = (ctx.first_key(args.get(1)), *ctx.shard.tuning());
    let value = ctx.shard.read(ctx.db, key, ctx.now);
    let (elements, as_they_are) = elements(value, request)?;
    let order = order(&elements, request, as_they_are)?;
    let range = request.limit(elements.len());
    let sorted = order[range].iter().map(|&at| elements[at]);
    let Some(store) = request.store else {
        reply.array(sorted.len() * request.columns());
        sorted.for_each(|element| {
            row(element, request, |cell| match cell {
                Some(bytes) => reply.bulk(bytes),
                None => reply.null(),
            })
        });
        return Ok(());
    };
    let count = sorted.len() * request.columns();
    let state = stored(sorted, request, &tuning);
    let target = ctx.key(args.get(store));
    if count == 0 {
        ctx.shard.remove(ctx.db, target, ctx.now);
    } else {
        let entry = Entry {
            value: OwnedValue::Object(List::wrap(state)),
            expire_at: None,
            access: ctx.shard.policy().first_stamp(ctx.now),
        };
        ctx.shard.insert_entry(ctx.db, target, entry, ctx.now);
    }
    reply.count(count);
    Ok(())
}

fn stored<'a>(sorted: impl Iterator<Item = &'a [u8]>, request: &Request, tuning: &Tuning) -> State {
    let mut state = List::empty();
    for element in sorted {
        row(element, request, |cell| {
            let element = cell.unwrap_or_default();
            List::commit(&mut state, &Op::PushBack { element }, tuning);
        });
    }
    state
}

/// What is returned for an element: itself, or what each GET gives.
fn row<'a>(element: &'a [u8], request: &Request, mut cell: impl FnMut(Option<&'a [u8]>)) {
    if request.gets.is_empty() {
        return cell(Some(element));
    }
    for &is_element in &request.gets {
        cell(is_element.then_some(element));
    }
}

/// All elements, and whether they stay in the order that they are in.
fn elements<'a>(
    value: Option<Any<'a>>,
    request: &Request,
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

/// The numbers of the elements in the order asked for.
fn order(elements: &[&[u8]], request: &Request, as_they_are: bool) -> Result<Vec<usize>, Failure> {
    let mut order: Vec<usize> = (0..elements.len()).collect();
    if as_they_are {
        return Ok(order);
    }
    let turned = |order: Ordering| match request.descending {
        true => order.reverse(),
        false => order,
    };
    if request.alpha || !request.sorts {
        order.sort_by(|&a, &b| turned(elements[a].cmp(elements[b])));
        return Ok(order);
    }
    let numbers: Option<Vec<f64>> = elements.iter().map(|element| number(element)).collect();
    let numbers = numbers.ok_or("ERR One or more scores can't be converted into double")?;
    order.sort_by(|&a, &b| {
        let by_number = numbers[a].partial_cmp(&numbers[b]);
        // Equal numbers may be written differently; the order must be the same each time.
        let by_bytes = || elements[a].cmp(elements[b]);
        turned(by_number.unwrap_or(Ordering::Equal).then_with(by_bytes))
    });
    Ok(order)
}

/// As C reads it: white space before it, and nothing at all, which is 0.
fn number(element: &[u8]) -> Option<f64> {
    match element.trim_ascii_start() {
        b"" if element.is_empty() => Some(0.0),
        digits => parse_f64(digits).filter(|number| !number.is_nan()),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;
    use rufous_datatype::object::Registered;
    use rufous_datatype::sorted_set::{Builder, SortedSet};
    use rufous_kernel::shard::{Entry, OwnedValue};

    #[test]
    fn by_number_or_bytes_in_either_direction() {
        let mut rig = Rig::new();
        rig.check("SORT k", "*0\r\n");
        rig.check("RPUSH k 10 9 -1.5 1e1", ":4\r\n");
        let ascending = "*4\r\n$4\r\n-1.5\r\n$1\r\n9\r\n$2\r\n10\r\n$3\r\n1e1\r\n";
        rig.check("SORT k", ascending);
        rig.check("SORT_RO k asc", ascending);
        rig.check("SORT k DESC LIMIT 0 2", "*2\r\n$3\r\n1e1\r\n$2\r\n10\r\n");
        rig.check("SORT k ALPHA LIMIT 1 2", "*2\r\n$2\r\n10\r\n$3\r\n1e1\r\n");
        rig.check("SORT k LIMIT 4 2", "*0\r\n");
        rig.check("SORT k LIMIT -5 1", "*1\r\n$4\r\n-1.5\r\n");
        rig.check("SORT k LIMIT 3 -1", "*1\r\n$3\r\n1e1\r\n");
        rig.check("RPUSH k x", ":5\r\n");
        rig.check(
            "SORT k",
            "-ERR One or more scores can't be converted into double\r\n",
        );
    }

    #[test]
    fn as_it_is_or_elements_again() {
        let mut rig = Rig::new();
        rig.check("RPUSH k 2 1", ":2\r\n");
        rig.check("SORT k BY nosort", "*2\r\n$1\r\n2\r\n$1\r\n1\r\n");
        rig.check("SORT k BY nosort DESC LIMIT 0 1", "*1\r\n$1\r\n1\r\n");
        rig.check(
            "SORT k GET # GET x",
            "*4\r\n$1\r\n1\r\n$-1\r\n$1\r\n2\r\n$-1\r\n",
        );
        let mut scores = Builder::new(rig.shard.tuning());
        scores.set(b"a", 2.0);
        scores.set(b"b", 1.0);
        let entry = Entry {
            value: OwnedValue::Object(SortedSet::wrap(scores.finish(rig.shard.tuning()))),
            expire_at: None,
            access: 0,
        };
        let key = rig.shard.key(b"z");
        rig.shard.insert_entry(0, key, entry, rig.now);
        rig.check("SORT z BY nosort", "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
        rig.check("SORT z BY nosort DESC LIMIT 0 1", "*1\r\n$1\r\na\r\n");
        rig.check("SORT z ALPHA", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    }

    #[test]
    fn stores_a_list_in_place_of_anything() {
        let mut rig = Rig::new();
        rig.check("SADD s 3 1 2", ":3\r\n");
        rig.check("SET d old PX 10", "+OK\r\n");
        rig.check("SORT s STORE d", ":3\r\n");
        rig.check("LRANGE d 0 -1", "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n");
        rig.check("PTTL d", ":-1\r\n");
        rig.check("SORT s GET # GET x STORE s", ":6\r\n");
        rig.check("LRANGE s 0 1", "*2\r\n$1\r\n1\r\n$0\r\n\r\n");
        rig.check("SORT none STORE d", ":0\r\n");
        rig.check("EXISTS d", ":0\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new();
        let syntax = "-ERR syntax error\r\n";
        rig.check("SET v 1", "+OK\r\n");
        rig.check(
            "SORT v",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
        rig.check("SORT k LIMIT 1", syntax);
        rig.check("SORT k STORE", syntax);
        rig.check("SORT k UP", syntax);
        rig.check("SORT_RO k STORE d", syntax);
        rig.check(
            "SORT k LIMIT x 1",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check(
            "SORT k BY weight_*",
            "-ERR BY and GET of other keys are not supported\r\n",
        );
    }
}
