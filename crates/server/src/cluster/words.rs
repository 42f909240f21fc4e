//! Requests on their way to another node: the array of words that clients write.

use rufous_base::{Args, Span};
use rufous_resp::request::{Limits, Progress, RequestParser};
use rufous_wire::Bytes;
use rufous_wire::frame::MAX_FRAME;

/// What a message has around a request, and more.
const AROUND: usize = 1024;

/// Bytes of a request that can be passed on.
pub(crate) const MAX_WORDS: usize = MAX_FRAME - AROUND;

/// Bytes that these take; what is too large need not be written to know that.
pub(crate) fn size_of(args: &Args<'_>) -> usize {
    let heads = 16 * (args.len() + 1);
    args.iter_from(0).map(<[u8]>::len).sum::<usize>() + heads
}

pub(crate) fn write(args: &Args<'_>) -> Bytes {
    let words: Vec<&[u8]> = args.iter_from(0).collect();
    let mut bytes = Vec::with_capacity(size_of(args));
    rufous_resp::encode::request(&mut bytes, &words);
    bytes.into()
}

/// Where the words are, if this is one request and nothing else.
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
        assert!(bytes.len() <= size_of(&args));
        let all: Vec<_> = args.iter_from(0).map(<[u8]>::to_vec).collect();
        assert_eq!(words_of(&bytes), Some(all));
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
