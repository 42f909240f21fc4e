//! Requests in transit to another worker. One message carries all requests of a turn for that
//! worker and returns with their replies, so that requests share the cost of a hop and the steady
//! state allocates nothing.

use rufous_base::{Args, BigArg, ConnId, Output, Span, Until};

/// How a client is answered when its keys are at another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// At the plain door: the client knows one node, and requests are forwarded.
    #[default]
    Plain,
    /// At the redirecting door: with the keys' location. Any member of a chain may answer reads.
    Redirected,
    /// The request was forwarded by another node: with the status that the keys are not here.
    Forwarded,
}

/// Metadata of a request.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub conn: ConnId,
    /// The node's number for its client, unique while the node runs.
    pub client: u64,
    /// The request's position among those of its connection.
    pub seq: u32,
    pub command: u16,
    pub db: u8,
    pub resp3: bool,
    /// The client asked that its reads leave no trace in access statistics.
    pub no_touch: bool,
    /// The reply is not wanted: it is OK, or an error.
    pub quiet: bool,
    pub door: Door,
    /// Index of the first key's argument.
    pub key: u8,
    /// Hash of the first key.
    pub hash: u32,
    /// The table of keyspaces by which all keys of the request were found to be strict. Where another table is in
    /// force, and without one, nothing is known: see `Worker::knows_strict`.
    pub strict_in: Option<u16>,
}

/// One request within a batch.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub header: Header,
    /// The table of keyspaces by which it was checked and routed: see `worker::stale`.
    pub table: u16,
    first_span: u32,
    spans: u32,
    first_big: u32,
    bigs: u32,
    /// The position of its reply in [`Batch::replies`].
    pub reply: ReplyRange,
}

/// The status of a reply, beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// The bytes are the reply.
    #[default]
    Ready,
    /// The request waits for a key; its reply is sent in a batch of its own.
    Later,
    /// Nothing was executed: the keys are at another node, to which the request may be sent. The
    /// bytes are the error for requests that are not forwarded.
    NotHere,
}

/// The range of a reply in an [`Output`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyRange {
    pub start: (usize, usize),
    pub end: (usize, usize),
    pub status: Status,
}

impl ReplyRange {
    /// Whether the reply is sent in another batch.
    pub fn is_later(&self) -> bool {
        self.status == Status::Later
    }
}

/// Requests with their arguments and, once they were executed, their replies.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    big: Vec<BigArg>,
    pub requests: Vec<Request>,
    pub replies: Output,
    /// The commits that its replies wait for.
    pub until: Until,
    /// Its senders were told that the outcome is unknown.
    pub is_doubtful: bool,
}

/// Larger vectors are not kept for the next batch.
const KEEP_BYTES: usize = 256 * 1024;

impl Batch {
    /// Appends a copy of a request; large arguments are moved, not copied.
    pub fn push(&mut self, header: Header, mut args: Args<'_>) {
        let first_span = self.spans.len() as u32;
        let first_big = self.big.len() as u32;
        for index in 0..args.len() {
            if let Some(bytes) = args.take_big(index) {
                self.big.push((index as u32, bytes));
                self.spans.push((0, 0));
                continue;
            }
            let arg = args.get(index);
            self.spans.push((self.bytes.len() as u32, arg.len() as u32));
            self.bytes.extend_from_slice(arg);
        }
        self.requests.push(Request {
            header,
            table: 0,
            first_span,
            spans: args.len() as u32,
            first_big,
            bigs: self.big.len() as u32 - first_big,
            reply: ReplyRange::default(),
        });
    }

    /// Records the table of keyspaces by which the last request was checked.
    pub fn judged_by(&mut self, table: u16) {
        if let Some(request) = self.requests.last_mut() {
            request.table = table;
        }
    }

    /// A copy of request `index` in a batch of its own.
    pub fn copy_of(&mut self, index: usize) -> Box<Batch> {
        let (header, args, _) = self.parts(index);
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for arg in args.iter_from(0) {
            spans.push((bytes.len() as u32, arg.len() as u32));
            bytes.extend_from_slice(arg);
        }
        let mut copy = Box::<Batch>::default();
        copy.push(header, Args::new(&bytes, &spans, &mut []));
        copy.judged_by(self.requests[index].table);
        copy
    }

    /// Drops all requests from the `len`th on.
    pub fn truncate(&mut self, len: usize) {
        let Some(first) = self.requests.get(len) else {
            return;
        };
        let (spans, big) = (first.first_span as usize, first.first_big as usize);
        let at = self.spans[spans..].iter().find(|span| span.1 > 0);
        let bytes = at.map_or(self.bytes.len(), |span| span.0 as usize);
        self.bytes.truncate(bytes);
        self.spans.truncate(spans);
        self.big.truncate(big);
        self.requests.truncate(len);
    }

    /// Makes it the reply to one request whose arguments are not in the batch.
    pub fn push_reply(&mut self, header: Header, reply: Output) {
        self.push(header, Args::new(&[], &[], &mut []));
        self.set_reply(reply);
    }

    /// Adds the reply to a request whose arguments are not in the batch.
    pub fn add_reply(&mut self, header: Header, reply: &Output) {
        self.push(header, Args::new(&[], &[], &mut []));
        let start = self.replies.mark();
        self.replies.append_range(reply, (0, 0), reply.mark());
        let end = self.replies.mark();
        if let Some(request) = self.requests.last_mut() {
            (request.reply.start, request.reply.end) = (start, end);
        }
    }

    /// Sets the reply of its only request.
    pub fn set_reply(&mut self, reply: Output) {
        self.replies = reply;
        if let Some(request) = self.requests.last_mut() {
            request.reply.start = (0, 0);
            request.reply.end = self.replies.mark();
        }
    }

    /// As [`Batch::set_reply`], for a request that was refused because its keys are elsewhere.
    pub fn set_refusal(&mut self, reply: Output, status: Status) {
        self.set_reply(reply);
        if let Some(request) = self.requests.last_mut() {
            request.reply.status = status;
        }
    }

    /// The header and arguments of request `index`, and the output for its reply.
    pub fn parts(&mut self, index: usize) -> (Header, Args<'_>, &mut Output) {
        let request = self.requests[index];
        let spans = request.first_span as usize..(request.first_span + request.spans) as usize;
        let bigs = request.first_big as usize..(request.first_big + request.bigs) as usize;
        (
            request.header,
            Args::new(&self.bytes, &self.spans[spans], &mut self.big[bigs]),
            &mut self.replies,
        )
    }

    /// Whether the batch should be sent before more requests are added.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= KEEP_BYTES || self.requests.len() >= 1024
    }

    /// The bytes of its arguments.
    pub fn size(&self) -> usize {
        let big: usize = self.big.iter().map(|(_, bytes)| bytes.len()).sum();
        self.bytes.len() + big
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Empties it for another use.
    pub fn reset(&mut self) {
        if self.bytes.capacity() > 2 * KEEP_BYTES {
            self.bytes = Vec::new();
        }
        if self.replies.bytes.capacity() > 2 * KEEP_BYTES {
            self.replies.bytes = Vec::new();
        }
        self.bytes.clear();
        self.spans.clear();
        self.big.clear();
        self.requests.clear();
        self.replies.clear();
        self.until = Until::default();
        self.is_doubtful = false;
    }
}

/// A header for tests.
#[cfg(test)]
pub(crate) fn header() -> Header {
    Header {
        conn: ConnId {
            slot: 0,
            generation: 0,
        },
        client: 0,
        seq: 0,
        command: 0,
        db: 0,
        resp3: false,
        no_touch: false,
        quiet: false,
        door: Door::Plain,
        key: 0,
        hash: 0,
        strict_in: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(batch: &mut Batch, words: &[&[u8]]) {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word);
        }
        let mut big = [(1, b"large".to_vec())];
        let big: &mut [BigArg] = if words.len() == 2 { &mut big } else { &mut [] };
        batch.push(header(), Args::new(&bytes, &spans, big));
    }

    fn words(batch: &mut Batch) -> Vec<Vec<Vec<u8>>> {
        let all = 0..batch.requests.len();
        all.map(|at| {
            let (_, args, _) = batch.parts(at);
            args.iter_from(0).map(<[u8]>::to_vec).collect()
        })
        .collect()
    }

    /// Large and empty arguments have no place among the bytes.
    #[test]
    fn what_is_pushed_after_a_cut_follows_what_is_left() {
        let each: [&[&[u8]]; 4] = [
            &[b"a", b"b", b""],
            &[b"set", b"-"],
            &[b"", b"", b"x"],
            &[b"y"],
        ];
        for len in 0..=each.len() {
            let (mut cut, mut whole) = (Batch::default(), Batch::default());
            each.iter().for_each(|words| push(&mut cut, words));
            cut.truncate(len);
            each[..len].iter().for_each(|words| push(&mut whole, words));
            assert_eq!(cut.size(), whole.size(), "{len}");
            for batch in [&mut cut, &mut whole] {
                push(batch, &[b"last", b"-"]);
            }
            assert_eq!(words(&mut cut), words(&mut whole), "{len}");
        }
    }
}
