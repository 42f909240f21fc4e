//! Forwarded requests as bytes: an array of words, as clients send it.

use rufous_base::{Args, Span};
use rufous_command::Failure;
use rufous_mapping::NodeNo;
use rufous_resp::request::{Limits, Progress, RequestParser};
use rufous_wire::Bytes;
use rufous_wire::frame::MAX_FRAME;
use std::collections::BTreeMap;
use std::ops::Range;

/// An upper bound on a message's overhead around a request.
const AROUND: usize = 1024;

/// The largest request that can be forwarded.
pub(crate) const MAX_WORDS: usize = MAX_FRAME - AROUND;

/// An upper bound on the bytes around a word, and before all words.
const HEAD: usize = 16;

/// An upper bound on the bytes of a request of such words, so that a request that is too large need
/// not be written.
fn size_of_words<'a>(words: impl Iterator<Item = &'a [u8]>) -> usize {
    HEAD + words.map(|word| HEAD + word.len()).sum::<usize>()
}

pub(crate) fn size_written(args: &Args<'_>) -> usize {
    size_of_words(args.iter_from(0))
}

/// Why a request cannot be forwarded to one node, if it cannot.
pub(super) fn too_large(args: &Args<'_>, node: impl FnOnce() -> String) -> Option<Failure> {
    let size = size_written(args);
    (size > MAX_WORDS).then(|| {
        format!("ERR a request of {size} bytes is too large to be forwarded (limit {MAX_WORDS} bytes); its key belongs to node {}; connect there, or with a cluster client where cluster-clients is set", node()).into()
    })
}

/// The same for one whose arguments are keys of several nodes.
pub(super) fn part_too_large(
    args: &Args<'_>,
    heads: &[Option<NodeNo>],
    node: impl FnOnce(NodeNo) -> String,
) -> Option<Failure> {
    if size_written(args) <= MAX_WORDS {
        return None;
    }
    let mut sizes: BTreeMap<NodeNo, usize> = BTreeMap::new();
    for (key, head) in args.iter_from(1).zip(heads) {
        if let Some(no) = head {
            let size = sizes
                .entry(*no)
                .or_insert_with(|| size_of_words([args.get(0)].into_iter()));
            *size += HEAD + key.len();
        }
    }
    let (no, size) = sizes.into_iter().find(|(_, size)| *size > MAX_WORDS)?;
    Some(format!("ERR {size} bytes of this request concern keys of node {}; the limit for forwarding is {MAX_WORDS} bytes: use commands with fewer keys", node(no)).into())
}

/// The same for one that is sent to all nodes.
pub(super) fn too_large_for_all(args: &Args<'_>) -> Option<Failure> {
    let size = size_written(args);
    (size > MAX_WORDS).then(|| {
        format!("ERR a request of {size} bytes is too large to be forwarded to all nodes (limit {MAX_WORDS} bytes)").into()
    })
}

/// The same for one that was to run here, and whose keys moved before it did.
pub(super) fn too_large_by_now(args: &Args<'_>) -> Option<Failure> {
    let size = size_written(args);
    (size > MAX_WORDS).then(|| {
        format!("TRYAGAIN The key moved to another node before execution, and a request of {size} bytes is too large to be forwarded (limit {MAX_WORDS} bytes): the reply to the next attempt names that node").into()
    })
}

pub(crate) fn write(args: &Args<'_>) -> Bytes {
    let words: Vec<&[u8]> = args.iter_from(0).collect();
    let mut bytes = Vec::with_capacity(size_written(args));
    rufous_resp::encode::request(&mut bytes, &words);
    bytes.into()
}

/// The positions of the words, if the bytes are exactly one request.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Span>> {
    let (mut parser, mut spans) = (RequestParser::new(), Vec::new());
    if bytes.first() != Some(&b'*') {
        return None;
    }
    let found = parser.parse(bytes, &mut spans, &Limits::default());
    match found {
        Ok(Progress::Request { consumed }) if consumed == bytes.len() => {
            (parser.take_big().is_empty() && !spans.is_empty()).then_some(spans)
        }
        _ => None,
    }
}

/// The bytes of a request that are one of its words, with their length before it.
pub(super) fn word_at(bytes: &[u8], index: usize) -> Option<Range<usize>> {
    let (at, len) = *read(bytes)?.get(index)?;
    let (at, end) = (at as usize, (at + len) as usize);
    let digits = len.checked_ilog10().map_or(1, |log| log as usize + 1);
    Some(at - (1 + digits + 2)..end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let spans = read(bytes)?;
        let args = Args::new(bytes, &spans, &mut []);
        Some(args.iter_from(0).map(<[u8]>::to_vec).collect())
    }

    #[test]
    fn what_is_written_is_read() {
        let mut big = vec![(1, vec![b'v'; 100_000])];
        let args = Args::new(b"SETx", &[(0, 3), (0, 0), (3, 1), (4, 0)], &mut big);
        let bytes = write(&args);
        assert!(bytes.len() <= size_written(&args));
        let all: Vec<_> = args.iter_from(0).map(<[u8]>::to_vec).collect();
        assert_eq!(words_of(&bytes), Some(all));
    }

    #[test]
    fn a_word_is_found_with_its_length() {
        let long = "x".repeat(120);
        let mut bytes = Vec::new();
        rufous_resp::encode::request(&mut bytes, &["BLPOP", "", &long, "0.5"]);
        let word = |index| word_at(&bytes, index).map(|at| &bytes[at]);
        assert_eq!(word(1), Some(&b"$0\r\n\r\n"[..]));
        let expected = format!("$120\r\n{long}\r\n");
        assert_eq!(word(2), Some(expected.as_bytes()));
        assert_eq!(word(3), Some(&b"$3\r\n0.5\r\n"[..]));
        assert_eq!((word(4), word_at(b"*1", 0)), (None, None));
    }

    /// A part for one of two nodes has the largest size, then one byte more.
    #[test]
    fn each_nodes_part_has_a_message_of_its_own() {
        let check = |len: usize| {
            let key = vec![b'k'; len];
            let mut big = vec![(1, key.clone()), (2, key.clone()), (3, key)];
            let spans = [(0, 3), (0, 0), (0, 0), (0, 0)];
            let args = Args::new(b"DEL", &spans, &mut big);
            let heads = [Some(NodeNo(1)), None, Some(NodeNo(2))];
            part_too_large(&args, &heads, |no| no.to_string())
        };
        let most = MAX_WORDS - 3 * HEAD - 3;
        assert!(check(most).is_none());
        let refused = check(most + 1).expect("too large");
        let refused = refused.text();
        assert!(refused.contains("concern keys of node n1; "), "{refused}");
    }

    #[test]
    fn nothing_else_is() {
        let wrong: [&[u8]; 9] = [
            b"",
            b"PING\r\n",
            b"*1\r\n$4\r\nPING\r\n*",
            b"*1\r\n$4\r\nPIN",
            b"*0\r\n",
            b"*-1\r\n",
            b"*1\r\n:4\r\n",
            b"*2\r\n$4\r\nPING\r\n",
            b"*1\r\n$-1\r\n",
        ];
        for bytes in wrong {
            assert_eq!(words_of(bytes), None, "{bytes:?}");
        }
    }
}
