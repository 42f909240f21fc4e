//! The arguments of SORT.

use super::pattern::Pattern;
use crate::Failure;
use crate::options::{integer, is};
use rufous_base::Args;
use std::ops::Range;

/// What GET gives for an element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Get<'a> {
    Element,
    /// It names no key.
    Nothing,
    Value(Pattern<'a>),
}

impl<'a> Get<'a> {
    fn parse(text: &'a [u8]) -> Self {
        match Pattern::parse(text) {
            Some(pattern) => Get::Value(pattern),
            None if text == b"#" => Get::Element,
            None => Get::Nothing,
        }
    }
}

#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) descending: bool,
    pub(super) alpha: bool,
    /// Not where some BY names no key: then elements stay in their order.
    pub(super) sorts: bool,
    by: Option<Pattern<'a>>,
    pub(super) gets: Vec<Get<'a>>,
    pub(super) store: Option<usize>,
    from: i64,
    /// All if negative.
    count: i64,
}

/// More keys are not read by one request: they are read at one instant, and meanwhile the worker
/// serves no other client.
const MOST_KEYS: usize = 1 << 18;

impl<'a> Request<'a> {
    pub(super) fn parse(args: &'a Args<'_>, may_store: bool) -> Result<Self, Failure> {
        let mut request = Request {
            descending: false,
            alpha: false,
            sorts: true,
            by: None,
            gets: Vec::new(),
            store: None,
            from: 0,
            count: -1,
        };
        let mut at = 2;
        while at < args.len() {
            let (word, left) = (args.get(at), args.len() - at - 1);
            at += 1;
            if is(word, "ASC") {
                request.descending = false;
            } else if is(word, "DESC") {
                request.descending = true;
            } else if is(word, "ALPHA") {
                request.alpha = true;
            } else if is(word, "LIMIT") && left >= 2 {
                request.from = integer(args.get(at))?;
                request.count = integer(args.get(at + 1))?;
                at += 2;
            } else if is(word, "STORE") && left >= 1 && may_store {
                request.store = Some(at);
                at += 1;
            } else if is(word, "BY") && left >= 1 {
                request.by = Pattern::parse(args.get(at));
                request.sorts &= request.by.is_some();
                at += 1;
            } else if is(word, "GET") && left >= 1 {
                request.gets.push(Get::parse(args.get(at)));
                at += 1;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(request)
    }

    /// The keys by whose values elements are sorted.
    pub(super) fn by(&self) -> Option<&Pattern<'a>> {
        self.by.as_ref().filter(|_| self.sorts)
    }

    /// Those whose values are returned.
    pub(super) fn got(&self) -> impl Iterator<Item = &Pattern<'a>> {
        self.gets.iter().filter_map(|get| match get {
            Get::Value(pattern) => Some(pattern),
            Get::Element | Get::Nothing => None,
        })
    }

    /// Refuses what asks for too many keys.
    pub(super) fn check(&self, elements: usize) -> Result<(), Failure> {
        let patterns = self.got().count() + usize::from(self.by().is_some());
        match patterns.saturating_mul(elements) > MOST_KEYS {
            true => Err(format!(
                "ERR BY and GET would read more than {MOST_KEYS} keys at once, whatever LIMIT says; sort fewer \
                 elements, or keep what they are sorted by in a sorted set"
            )
            .into()),
            false => Ok(()),
        }
    }

    /// How many values are returned for each element.
    pub(super) fn columns(&self) -> usize {
        self.gets.len().max(1)
    }

    /// Which of `len` elements are requested.
    pub(super) fn limit(&self, len: usize) -> Range<usize> {
        let from = usize::try_from(self.from).unwrap_or(0).min(len);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        from..from.saturating_add(count).min(len)
    }
}
