//! What a client has sent and cannot run yet: the start of an incomplete request, and requests of a
//! connection that has to wait.

use super::lookahead::What;
use rufous_base::Args;
use rufous_kernel::{Batch, Header};
use rufous_resp::request::RequestParser;
use std::collections::VecDeque;

/// Bytes that are kept for the next request.
const KEPT_BYTES: usize = 16 * 1024;

/// A request that was parsed but may not run yet.
#[derive(Debug)]
pub enum Deferred {
    Request(Box<Batch>),
    Malformed(String),
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Held {
    pub(super) parser: RequestParser,
    /// Bytes of a request that is incomplete, or that may not run yet.
    pub(super) bytes: Vec<u8>,
    /// How much of them has been parsed.
    pub(super) at: usize,
    /// Requests that were parsed but may not run yet.
    deferred: VecDeque<Deferred>,
}

impl Held {
    /// Whether nothing is left from an earlier read.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.parser.is_idle() && self.deferred.is_empty()
    }

    /// Bytes, parsed or not.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that are not parsed.
    pub(crate) fn unparsed(&self) -> usize {
        self.bytes.len() - self.at.min(self.bytes.len())
    }

    /// Heap bytes for requests that are incomplete or may not run.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.parser.held_bytes()
    }

    /// Keeps bytes for later; those of a large argument go directly to it.
    pub(super) fn hold(&mut self, mut bytes: &[u8]) {
        if self.parser.wants_big().is_some() {
            let taken = self.parser.fill_big(bytes);
            bytes = &bytes[taken..];
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Frees bytes whose requests have run.
    pub(super) fn release(&mut self) {
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.at = 0;
        } else if self.at > self.bytes.len() / 2 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    /// Defers a parsed request.
    pub(super) fn defer(&mut self, what: What, header: Header, args: Args<'_>, errors: &[String]) {
        if let What::Malformed(index) = what {
            let text = errors.get(index as usize).cloned().unwrap_or_default();
            self.deferred.push_back(Deferred::Malformed(text));
            return;
        }
        self.deferred.push_back(copy_of(header, args));
    }

    /// Defers a request that came before those that are deferred.
    pub(super) fn defer_first(&mut self, header: Header, args: Args<'_>) {
        self.deferred.push_front(copy_of(header, args));
    }

    #[inline]
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    pub(super) fn next_deferred(&mut self) -> Option<Deferred> {
        self.deferred.pop_front()
    }
}

fn copy_of(header: Header, args: Args<'_>) -> Deferred {
    let mut batch = Box::<Batch>::default();
    batch.push(header, args);
    Deferred::Request(batch)
}

#[cfg(test)]
mod tests {
    use super::super::connection::Connection;
    use super::super::testing::{id, info};
    use super::*;

    fn words(deferred: Option<Deferred>) -> String {
        match deferred {
            Some(Deferred::Request(mut batch)) => {
                let (_, args, _) = batch.parts(0);
                let words: Vec<_> = args.iter_from(0).map(String::from_utf8_lossy).collect();
                words.join(" ")
            }
            Some(Deferred::Malformed(text)) => format!("? {text}"),
            None => String::new(),
        }
    }

    /// Gives `f` the arguments and a header.
    fn with(text: &str, f: impl FnOnce(Header, Args<'_>)) {
        let header = Connection::new(id(0, 1), 1, info(), 0).header(0, false, None);
        let mut spans = Vec::new();
        for word in text.split_terminator(' ') {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            spans.push((at as u32, word.len() as u32));
        }
        f(header, Args::new(text.as_bytes(), &spans, &mut []));
    }

    #[test]
    fn requests_run_in_the_order_in_which_they_arrived() {
        let mut held = Held::default();
        assert!(held.is_empty());
        let errors = ["no request".to_owned()];
        with("GET a", |header, args| {
            held.defer(What::Command(0), header, args, &errors);
        });
        with("", |header, args| {
            held.defer(What::Malformed(0), header, args, &errors);
        });
        with("SET a 1", |header, args| held.defer_first(header, args));
        assert!(held.has_deferred() && !held.is_empty());
        let mut next = || words(held.next_deferred());
        assert_eq!(
            [next(), next(), next()],
            ["SET a 1", "GET a", "? no request"]
        );
        assert!(held.is_empty());
    }

    #[test]
    fn bytes_whose_requests_have_run_are_freed() {
        let mut held = Held::default();
        held.hold(b"0123456789");
        held.at = 5;
        held.release();
        assert_eq!((held.len(), held.unparsed()), (10, 5), "half of them stay");
        held.at = 6;
        held.release();
        assert_eq!(
            (held.len(), held.unparsed(), &*held.bytes),
            (4, 4, &b"6789"[..])
        );
        held.at = 4;
        held.release();
        assert!(held.is_empty());
    }
}
