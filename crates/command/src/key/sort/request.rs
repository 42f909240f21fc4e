//! The arguments of SORT.

use crate::Failure;
use crate::options::{integer, is};
use rufous_base::Args;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Request {
    pub(super) descending: bool,
    pub(super) alpha: bool,
    /// Not where BY names no key: then elements stay in their order.
    pub(super) sorts: bool,
    /// For each GET, whether it gives the element itself: one that names no key gives nothing.
    pub(super) gets: Vec<bool>,
    pub(super) store: Option<usize>,
    from: i64,
    /// All if negative.
    count: i64,
}

impl Request {
    pub(super) fn parse(args: &Args<'_>, may_store: bool) -> Result<Self, Failure> {
        let mut request = Request {
            descending: false,
            alpha: false,
            sorts: true,
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
                refuse_keys(args.get(at))?;
                request.sorts = false;
                at += 1;
            } else if is(word, "GET") && left >= 1 {
                refuse_keys(args.get(at))?;
                request.gets.push(args.get(at) == b"#");
                at += 1;
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(request)
    }

    /// How many values are returned for each element.
    pub(super) fn columns(&self) -> usize {
        self.gets.len().max(1)
    }

    /// Which of so many elements are asked for.
    pub(super) fn limit(&self, len: usize) -> Range<usize> {
        let from = usize::try_from(self.from).unwrap_or(0).min(len);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        from..from.saturating_add(count).min(len)
    }
}

fn refuse_keys(pattern: &[u8]) -> Result<(), Failure> {
    match pattern.contains(&b'*') {
        true => Err(Failure::from(
            "ERR BY and GET of other keys are not supported",
        )),
        false => Ok(()),
    }
}
