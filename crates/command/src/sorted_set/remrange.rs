//! What the three ZREMRANGEBY… have in common.

use super::bounds::{Bounds, By, Limit, Selection};
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;
use rufous_datatype::sorted_set::{Cut, Op, SortedSet, Zone};

/// Removes a part and replies how many members that were. The part becomes one
/// operation, however many members it has.
pub(super) fn run(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    by: By,
) -> Result<(), Failure> {
    let bounds = Bounds::parse(by, args.get(2), args.get(3))?;
    let key = ctx.first_key(args.get(1));
    let removed = ctx
        .shard
        .update::<SortedSet, _>(ctx.db, key, ctx.now, |editor| {
            if let Bounds::Score(zone) = bounds {
                let count = editor.view().span(&zone).len();
                editor.apply(&Op::RemoveRange { zone });
                return count;
            }
            let selection = bounds.select(editor.view(), false, Limit::NONE);
            match &selection {
                Selection::Span(span) => {
                    let at = |index| editor.view().at(index);
                    let last = span.end.checked_sub(1).and_then(at);
                    let (Some((first, low)), Some((last, high))) = (at(span.start), last) else {
                        return 0;
                    };
                    let (first, last) = (first.to_vec(), last.to_vec());
                    let zone = Zone {
                        low: Cut::before(low, &first),
                        high: Cut::behind(high, &last),
                    };
                    if !span.is_empty() {
                        editor.apply(&Op::RemoveRange { zone });
                    }
                }
                Selection::Found(found) => {
                    for (member, _) in found {
                        editor.apply(&Op::Remove { member });
                    }
                }
            }
            selection.len()
        })?;
    reply.count(removed);
    Ok(())
}
