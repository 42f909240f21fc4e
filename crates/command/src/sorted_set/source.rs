//! What several sorted sets, or sets, are read from at once: copies, which share
//! what is large with the originals.

use crate::{Ctx, Failure};
use rufous_base::Args;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::object::Tag;
use rufous_datatype::set::Set;
use rufous_datatype::sorted_set::{SortedSet, View};
use rufous_kernel::shard::{OwnedValue, WrongType};
use std::ops::Range;

/// The value of a key, which is a sorted set, a set, or not there.
pub(super) struct Source(Option<OwnedValue>);

impl Source {
    /// The values of the keys that these arguments name.
    pub(super) fn all(
        ctx: &mut Ctx<'_>,
        args: &Args<'_>,
        keys: Range<usize>,
    ) -> Result<Vec<Source>, Failure> {
        let mut all = Vec::with_capacity(keys.len());
        for at in keys {
            let key = ctx.key(args.get(at));
            let value = ctx.shard.read(ctx.db, key, ctx.now);
            let value = value.map(|value| value.to_owned());
            let source = Source(value);
            source.checked()?;
            all.push(source);
        }
        Ok(all)
    }

    fn checked(&self) -> Result<Members<'_>, WrongType> {
        match &self.0 {
            None => Ok(Members::None),
            Some(value) if matches!(value.any().tag(), Some(Tag::Set | Tag::SharedSet)) => {
                value.any().of::<Set>().map(Members::Plain)
            }
            Some(value) => value.any().of::<SortedSet>().map(Members::Scored),
        }
    }

    pub(super) fn members(&self) -> Members<'_> {
        // It was found to be of the right type when it was read.
        self.checked().unwrap_or(Members::None)
    }
}

/// Members with scores; those of a set have the score 1.
#[derive(Clone, Copy)]
pub(super) enum Members<'a> {
    None,
    Scored(View<'a>),
    Plain(<Set as Algebra>::View<'a>),
}

impl<'a> Members<'a> {
    pub(super) fn len(self) -> usize {
        match self {
            Members::None => 0,
            Members::Scored(view) => view.len(),
            Members::Plain(view) => view.len(),
        }
    }

    pub(super) fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Members::None => None,
            Members::Scored(view) => view.score(member),
            Members::Plain(view) => view.contains(member).then_some(1.0),
        }
    }

    /// Shows the members until told to stop.
    pub(super) fn each(self, mut see: impl FnMut(&'a [u8], f64) -> bool) {
        match self {
            Members::None => {}
            Members::Scored(view) => {
                let mut go_on = true;
                view.each(0..view.len(), false, |member, score| {
                    if go_on {
                        go_on = see(member, score);
                    }
                });
            }
            Members::Plain(view) => {
                let mut members = view.iter();
                while members.next().is_some_and(|(member, _)| see(member, 1.0)) {}
            }
        }
    }
}
