//! What ZRANGE, its older kin and ZRANGESTORE have in common.

use super::bounds::{Bounds, By, Limit};
use super::reply::{element, elements, head};
use crate::options::{self, is};
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;
use rufous_datatype::object::Registered;
use rufous_datatype::sorted_set::{Builder, SortedSet};
use rufous_kernel::shard::{Entry, Key, OwnedValue};

/// What a command fixes, where it does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fixed {
    pub(super) by: Option<By>,
    pub(super) back: Option<bool>,
    /// The arguments begin with a key to store to.
    pub(super) store: bool,
}

struct Plan {
    bounds: Bounds,
    back: bool,
    limit: Limit,
    scores: bool,
}

impl Plan {
    fn parse(args: &Args<'_>, fixed: Fixed) -> Result<Plan, Failure> {
        let first = 2 + usize::from(fixed.store);
        let (mut by, mut back) = (fixed.by, fixed.back);
        let (mut limit, mut scores) = (Limit::NONE, false);
        let mut at = first + 2;
        while at < args.len() {
            let word = args.get(at);
            if is(word, "WITHSCORES") && !fixed.store {
                scores = true;
            } else if is(word, "LIMIT") && at + 2 < args.len() {
                limit.offset = options::integer(args.get(at + 1))?;
                limit.count = options::integer(args.get(at + 2))?;
                at += 2;
            } else if fixed.back.is_none() && is(word, "REV") {
                back = Some(true);
            } else if fixed.by.is_none() && is(word, "BYLEX") {
                by = Some(By::Lex);
            } else if fixed.by.is_none() && is(word, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 1;
        }
        let (by, back) = (by.unwrap_or(By::Rank), back.unwrap_or(false));
        if by == By::Rank && limit.count != -1 {
            return Err(Failure::from(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if by == By::Lex && scores {
            return Err(Failure::from(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (mut min, mut max) = (args.get(first), args.get(first + 1));
        if back && by != By::Rank {
            (min, max) = (max, min);
        }
        if by == By::Rank {
            // A limit of all that remains is let pass, and means nothing.
            limit = Limit::NONE;
        }
        let bounds = Bounds::parse(by, min, max)?;
        Ok(Plan {
            bounds,
            back,
            limit,
            scores,
        })
    }
}

pub(super) fn run(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    fixed: Fixed,
) -> Result<(), Failure> {
    let plan = Plan::parse(args, fixed)?;
    let key = ctx.first_key(args.get(1));
    let Some(view) = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)? else {
        reply.array(0);
        return Ok(());
    };
    let selection = plan.bounds.select(view, plan.back, plan.limit);
    if let super::bounds::Selection::Span(span) = selection {
        elements(reply, view, span, plan.back, plan.scores);
    } else {
        head(reply, selection.len(), plan.scores);
        selection.each(view, plan.back, |member, score| {
            element(reply, member, score, plan.scores)
        });
    }
    Ok(())
}

pub(super) fn store(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    fixed: Fixed,
) -> Result<(), Failure> {
    let plan = Plan::parse(args, fixed)?;
    let tuning = *ctx.shard.tuning();
    let mut builder = Builder::new(&tuning);
    let source = ctx.key(args.get(2));
    if let Some(view) = ctx.shard.collection::<SortedSet>(ctx.db, source, ctx.now)? {
        let selection = plan.bounds.select(view, plan.back, plan.limit);
        selection.each(view, plan.back, |member, score| builder.set(member, score));
    }
    let target = ctx.first_key(args.get(1));
    reply.count(put(ctx, target, builder));
    Ok(())
}

/// Puts a set in place of whatever a key holds; an empty one removes the key.
/// Answers how many elements there are.
pub(crate) fn put(ctx: &mut Ctx<'_>, target: Key<'_>, builder: Builder) -> usize {
    let len = builder.len();
    if len == 0 {
        ctx.shard.remove(ctx.db, target, ctx.now);
        return 0;
    }
    let state = builder.finish(ctx.shard.tuning());
    let entry = Entry {
        value: OwnedValue::Object(SortedSet::wrap(state)),
        expire_at: None,
        access: ctx.shard.policy().first_stamp(ctx.now),
    };
    ctx.shard.insert_entry(ctx.db, target, entry, ctx.now);
    len
}
