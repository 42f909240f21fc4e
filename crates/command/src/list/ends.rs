//! What commands do at the ends of lists: pushes, pops and moves.

use crate::options::is;
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;
use rufous_datatype::list::{List, Op};
use rufous_kernel::shard::{Editor, Key};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Left,
    Right,
}

impl End {
    pub(crate) fn parse(arg: &[u8]) -> Result<Self, Failure> {
        match arg {
            word if is(word, "LEFT") => Ok(End::Left),
            word if is(word, "RIGHT") => Ok(End::Right),
            _ => Err(Failure::SYNTAX),
        }
    }

    fn push(self, element: &[u8]) -> Op<'_> {
        match self {
            End::Left => Op::PushFront { element },
            End::Right => Op::PushBack { element },
        }
    }

    fn pop(self, count: u64) -> Op<'static> {
        match self {
            End::Left => Op::PopFront { count },
            End::Right => Op::PopBack { count },
        }
    }
}

/// LPUSH and RPUSH; `only_existing`: their forms with X.
pub(super) fn push(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    end: End,
    only_existing: bool,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let change = |editor: &mut Editor<'_, List>| {
        if only_existing && editor.view().is_empty() {
            return 0;
        }
        for element in args.iter_from(2) {
            editor.commit(&end.push(element));
        }
        editor.view().len()
    };
    let len = ctx.shard.update::<List, _>(ctx.db, key, ctx.now, change)?;
    reply.count(len);
    Ok(())
}

/// LPOP and RPOP.
pub(super) fn pop(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    end: End,
    name: &str,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    match args.len() {
        2 => {
            if !pop_one(ctx, key, end, reply)? {
                reply.null();
            }
        }
        3 => {
            let count = positive(args.get(2))?;
            if !pop_many(ctx, key, end, count, reply)? {
                reply.null_array();
            }
        }
        _ => return Err(Failure::wrong_arity(name)),
    }
    Ok(())
}

/// How many elements to pop.
fn positive(arg: &[u8]) -> Result<u64, Failure> {
    let number = rufous_datatype::integer::parse_i64(arg);
    number
        .and_then(|n| u64::try_from(n).ok())
        .ok_or(Failure::from("ERR value is out of range, must be positive"))
}

/// Takes an element off an end and replies with it. False, and no reply, where there is no list.
#[inline]
pub(crate) fn pop_one(
    ctx: &mut Ctx<'_>,
    key: Key<'_>,
    end: End,
    reply: &mut Reply<'_>,
) -> Result<bool, Failure> {
    let change = |editor: &mut Editor<'_, List>| take_one(editor, end, reply).is_some();
    Ok(ctx.shard.update::<List, _>(ctx.db, key, ctx.now, change)?)
}

/// Replies with the element that it takes; how many bytes that has.
#[inline]
fn take_one(editor: &mut Editor<'_, List>, end: End, reply: &mut Reply<'_>) -> Option<usize> {
    let view = editor.view();
    let element = match end {
        End::Left => view.get(0),
        End::Right => view.last(),
    }?;
    let bytes = element.len();
    reply.bulk(element);
    editor.commit(&end.pop(1));
    Some(bytes)
}

/// Takes up to a number of elements off an end and replies with an array of them. Returns false, without a reply, if
/// there is no list.
pub(crate) fn pop_many(
    ctx: &mut Ctx<'_>,
    key: Key<'_>,
    end: End,
    count: u64,
    reply: &mut Reply<'_>,
) -> Result<bool, Failure> {
    let change = |editor: &mut Editor<'_, List>| {
        let view = editor.view();
        if view.is_empty() {
            return false;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(view.len());
        reply.array(count);
        match end {
            End::Left => view
                .iter()
                .take(count)
                .for_each(|element| reply.bulk(element)),
            End::Right => view
                .iter_back()
                .take(count)
                .for_each(|element| reply.bulk(element)),
        }
        if count > 0 {
            editor.commit(&end.pop(count as u64));
        }
        true
    };
    Ok(ctx.shard.update::<List, _>(ctx.db, key, ctx.now, change)?)
}

/// Moves an element from an end of one list to an end of another, which may be the same, and replies with it. False,
/// and no reply, where there is no source.
pub(crate) fn transfer(
    ctx: &mut Ctx<'_>,
    (source, from): (Key<'_>, End),
    (target, to): (Key<'_>, End),
    reply: &mut Reply<'_>,
) -> Result<bool, Failure> {
    let (db, now) = (ctx.db, ctx.now);
    if source.bytes == target.bytes {
        let rotate = |editor: &mut Editor<'_, List>| {
            let Some(bytes) = take_one(editor, from, reply) else {
                return false;
            };
            editor.commit(&to.push(last_bulk(reply, bytes)));
            true
        };
        return Ok(ctx.shard.update::<List, _>(db, source, now, rotate)?);
    }
    // A target of another type must be refused before anything is taken, but a missing source before that.
    if let Some(value) = ctx.shard.look(db, target, now)
        && value.of::<List>().is_err()
    {
        return match ctx.shard.look(db, source, now) {
            None => Ok(false),
            Some(_) => Err(Failure::WRONG_TYPE),
        };
    }
    let take = |editor: &mut Editor<'_, List>| take_one(editor, from, reply);
    let Some(bytes) = ctx.shard.update::<List, _>(db, source, now, take)? else {
        return Ok(false);
    };
    let element = last_bulk(reply, bytes);
    let put = |editor: &mut Editor<'_, List>| editor.commit(&to.push(element));
    ctx.shard.update::<List, _>(db, target, now, put)?;
    Ok(true)
}

/// The element of so many bytes that the reply ends with: it is kept nowhere else once it is taken.
fn last_bulk<'r>(reply: &'r Reply<'_>, bytes: usize) -> &'r [u8] {
    let end = reply.out.bytes.len() - b"\r\n".len();
    &reply.out.bytes[end - bytes..end]
}
