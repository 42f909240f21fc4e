//! Taking the first or the last elements, for all commands that do.

use super::reply::score;
use crate::elements::positive;
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;
use rufous_datatype::sorted_set::{Cut, Op, SortedSet, Zone};
use rufous_kernel::shard::Key;

/// Which end, how many, and how they are shown.
#[derive(Clone, Copy, Debug)]
pub struct Pop {
    /// The highest scores.
    pub from_top: bool,
    pub most: usize,
    /// Each element in an array of its own.
    pub nested: bool,
}

/// Takes elements out of the set at a key. If there are any, `head` is called with
/// their number and writes the start of the reply. Returns how many there were.
pub fn pop(
    ctx: &mut Ctx<'_>,
    key: Key<'_>,
    pop: Pop,
    reply: &mut Reply<'_>,
    head: impl FnOnce(&mut Reply<'_>, usize),
) -> Result<usize, Failure> {
    let taken = ctx
        .shard
        .update::<SortedSet, _>(ctx.db, key, ctx.now, |editor| {
            let view = editor.view();
            let len = view.len();
            let count = pop.most.min(len);
            let span = match pop.from_top {
                true => len - count..len,
                false => 0..count,
            };
            // The innermost of them: all from it to the end go.
            let edge = if pop.from_top {
                span.start
            } else {
                span.end.saturating_sub(1)
            };
            let Some((edge, edge_score)) = view.at(edge).filter(|_| count > 0) else {
                return 0;
            };
            let edge = edge.to_vec();
            head(reply, count);
            view.each(span, pop.from_top, |member, of| {
                if pop.nested {
                    reply.array(2);
                }
                reply.bulk(member);
                score(reply, of);
            });
            editor.apply(&match (count, pop.from_top) {
                (1, _) => Op::Remove { member: &edge },
                (_, false) => Op::RemoveRange {
                    zone: Zone {
                        low: Cut::START,
                        high: Cut::behind(edge_score, &edge),
                    },
                },
                (_, true) => Op::RemoveRange {
                    zone: Zone {
                        low: Cut::before(edge_score, &edge),
                        high: Cut::END,
                    },
                },
            });
            count
        })?;
    Ok(taken)
}

/// ZPOPMIN and ZPOPMAX.
pub(super) fn run(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    from_top: bool,
) -> Result<(), Failure> {
    let count = match args.len() {
        2 => None,
        3 => Some(positive(args.get(2))?),
        _ => return Err(Failure::SYNTAX),
    };
    let key = ctx.first_key(args.get(1));
    let nested = count.is_some() && reply.proto == rufous_resp::encode::Proto::Resp3;
    let what = Pop {
        from_top,
        most: count.unwrap_or(1),
        nested,
    };
    let head = |reply: &mut Reply<'_>, count: usize| {
        reply.array(if nested { count } else { 2 * count });
    };
    if pop(ctx, key, what, reply, head)? == 0 {
        reply.array(0);
    }
    Ok(())
}
