//! Which part of a sorted set a command is about, as its arguments say it.

use crate::{Failure, options};
use rufous_datatype::float;
use rufous_datatype::range::list_range;
use rufous_datatype::sorted_set::{View, Zone};
use std::borrow::Cow;
use std::ops::Range;

const NOT_SCORES: Failure = Failure(Cow::Borrowed("ERR min or max is not a float"));
const NOT_LEX: Failure = Failure(Cow::Borrowed("ERR min or max not valid string range item"));

/// How two arguments name a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

#[derive(Clone, Debug)]
pub(super) enum Bounds {
    Rank(i64, i64),
    Score(Zone<'static>),
    Lex(LexRange),
}

/// Members from `low` to below `high`, or to the end. Nothing at all without
/// `low`.
#[derive(Clone, Debug)]
pub(super) struct LexRange {
    pub(super) low: Option<Vec<u8>>,
    pub(super) high: Option<Vec<u8>>,
}

impl Bounds {
    pub(super) fn parse(by: By, min: &[u8], max: &[u8]) -> Result<Bounds, Failure> {
        match by {
            By::Rank => Ok(Bounds::Rank(options::integer(min)?, options::integer(max)?)),
            By::Score => Ok(Bounds::Score(scores(min, max)?)),
            By::Lex => Ok(Bounds::Lex(LexRange::parse(min, max)?)),
        }
    }

    /// The positions that are meant; nothing if they are not consecutive.
    fn span(&self, view: View<'_>, back: bool) -> Option<Range<usize>> {
        match self {
            Bounds::Rank(start, stop) => {
                let len = view.len();
                let span = list_range(*start, *stop, len);
                Some(match back && !span.is_empty() {
                    true => len - span.end..len - span.start,
                    false => span,
                })
            }
            Bounds::Score(zone) => Some(view.span(zone)),
            Bounds::Lex(range) => range.span(view),
        }
    }

    /// What is in the bounds and within the limit, to be walked over.
    pub(super) fn select(&self, view: View<'_>, back: bool, limit: Limit) -> Selection {
        if let Some(span) = self.span(view, back) {
            return Selection::Span(limit.cut(span, back));
        }
        let mut found = Vec::new();
        if let Bounds::Lex(LexRange {
            low: Some(low),
            high,
        }) = self
        {
            view.lex(low, high.as_deref(), back, |member, score| {
                found.push((member.to_vec(), score));
                true
            });
        }
        let part = limit.cut(0..found.len(), false);
        Selection::Found(found.drain(part).collect())
    }
}

/// Members within bounds by bytes where scores are not all the same are
/// scattered over the set, and are few: no useful query does this.
pub(super) enum Selection {
    Span(Range<usize>),
    Found(Vec<(Vec<u8>, f64)>),
}

impl Selection {
    pub(super) fn len(&self) -> usize {
        match self {
            Selection::Span(span) => span.len(),
            Selection::Found(found) => found.len(),
        }
    }

    pub(super) fn each(&self, view: View<'_>, back: bool, mut see: impl FnMut(&[u8], f64)) {
        match self {
            Selection::Span(span) => view.each(span.clone(), back, see),
            Selection::Found(found) => found.iter().for_each(|(member, score)| see(member, *score)),
        }
    }
}

/// `LIMIT offset count`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) offset: i64,
    /// Negative for all.
    pub(super) count: i64,
}

impl Limit {
    pub(super) const NONE: Limit = Limit {
        offset: 0,
        count: -1,
    };

    fn cut(self, span: Range<usize>, back: bool) -> Range<usize> {
        let len = span.len();
        // A negative offset is beyond any end.
        let offset = usize::try_from(self.offset).unwrap_or(len).min(len);
        let count = usize::try_from(self.count).unwrap_or(len).min(len - offset);
        match back {
            false => span.start + offset..span.start + offset + count,
            true => span.end - offset - count..span.end - offset,
        }
    }
}

/// Scores between two, `(` leaving one out.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<Zone<'static>, Failure> {
    let min = float::parse_score_bound(min).ok_or(NOT_SCORES)?;
    let max = float::parse_score_bound(max).ok_or(NOT_SCORES)?;
    Ok(Zone::scores(
        min.score,
        min.exclusive,
        max.score,
        max.exclusive,
    ))
}

impl LexRange {
    pub(super) fn parse(min: &[u8], max: &[u8]) -> Result<LexRange, Failure> {
        let after = |member: &[u8]| [member, &[0]].concat();
        let low = match min {
            b"-" => Some(Vec::new()),
            b"+" => None,
            [b'[', member @ ..] => Some(member.to_vec()),
            [b'(', member @ ..] => Some(after(member)),
            _ => return Err(NOT_LEX),
        };
        let high = match max {
            b"-" => Some(Vec::new()),
            b"+" => None,
            [b'[', member @ ..] => Some(after(member)),
            [b'(', member @ ..] => Some(member.to_vec()),
            _ => return Err(NOT_LEX),
        };
        Ok(LexRange { low, high })
    }

    /// The positions of its members; nothing if they are not consecutive.
    pub(super) fn span(&self, view: View<'_>) -> Option<Range<usize>> {
        match &self.low {
            Some(low) => view.lex_span(low, self.high.as_deref()),
            None => Some(0..0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_cut_from_where_the_walk_begins() {
        let cut = |offset, count, back| Limit { offset, count }.cut(10..15, back);
        assert_eq!(cut(0, -1, false), 10..15);
        assert_eq!(cut(1, 2, false), 11..13);
        assert_eq!(cut(1, 2, true), 12..14);
        assert_eq!(cut(4, 9, true), 10..11);
        assert_eq!(cut(-1, 9, false).len(), 0);
        assert_eq!(cut(9, 9, true).len(), 0);
    }
}
