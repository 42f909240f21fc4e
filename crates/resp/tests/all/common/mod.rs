//! A connection's reading side, as a server has it: a buffer, a parser, and bytes in pieces.

use rufous_resp::{Limits, Progress, ProtocolError, RequestParser, slice};

pub(crate) type Args = Vec<Vec<u8>>;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) requests: Vec<Args>,
    pub(crate) error: Option<ProtocolError>,
}

pub(crate) fn args<'a>(bytes: impl IntoIterator<Item = &'a [u8]>) -> Args {
    bytes.into_iter().map(<[u8]>::to_vec).collect()
}

/// Reads `input` in pieces; `piece` gives the length of the one at a position. Pieces at even
/// positions go to a big argument directly where one is wanted, the others through the buffer.
pub(crate) fn read_all(input: &[u8], piece: impl Fn(usize) -> usize, limits: &Limits) -> Outcome {
    let mut parser = RequestParser::new();
    let mut outcome = Outcome::default();
    let mut buffer = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let end = input.len().min(at + piece(at).max(1));
        let mut received = &input[at..end];
        if at % 2 == 0 && parser.wants_big().is_some() {
            let taken = parser.fill_big(received);
            assert!(taken > 0);
            received = &received[taken..];
        }
        buffer.extend_from_slice(received);
        at = end;
        if let Err(error) = drain(&mut parser, &mut buffer, limits, &mut outcome.requests) {
            outcome.error = Some(error);
            return outcome;
        }
    }
    outcome
}

/// Parses what the buffer holds and keeps what the parser asks for.
fn drain(
    parser: &mut RequestParser,
    buffer: &mut Vec<u8>,
    limits: &Limits,
    requests: &mut Vec<Args>,
) -> Result<(), ProtocolError> {
    // Spans of another request at the front must survive.
    let mut spans = vec![(9, 9)];
    loop {
        match parser.parse(buffer, &mut spans, limits)? {
            Progress::Request { consumed } => {
                let mut bigs = parser.take_big().into_iter().peekable();
                let mut request = Args::new();
                for (i, &span) in spans[1..].iter().enumerate() {
                    if let Some((_, bytes)) = bigs.next_if(|(index, _)| *index as usize == i) {
                        assert_eq!(span, (0, 0));
                        request.push(bytes);
                    } else {
                        assert_ne!(span, (0, 0));
                        request.push(slice(buffer, span).to_vec());
                    }
                }
                assert!(bigs.next().is_none() && parser.is_idle());
                requests.push(request);
                spans.truncate(1);
                buffer.drain(..consumed);
            }
            Progress::Empty { consumed } => {
                assert!(parser.is_idle());
                buffer.drain(..consumed);
            }
            Progress::Incomplete { keep } => {
                buffer.truncate(keep);
                assert_eq!(spans, [(9, 9)]);
                return Ok(());
            }
        }
    }
}
