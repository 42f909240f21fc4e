//! Any bytes as a reply stream: the same replies and the same error however they are split, and
//! each reply ends where the search for ends alone says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_resp::{Reply, ReplyError, ReplyLimits, ReplyParser, skip_reply};

type Outcome = (Vec<Reply>, Option<ReplyError>);

fuzz_target!(|data: &[u8]| {
    let Some((cuts, input)) = data.split_first_chunk::<4>() else {
        return;
    };
    let whole = read_all(input, |_| input.len());
    let split = read_all(input, |at| cuts[at % 4] as usize % 50);
    let dripped = read_all(input, |_| 1);
    // Compared as text, since a NaN equals nothing.
    let text = |outcome: &Outcome| format!("{outcome:?}");
    assert_eq!(text(&whole), text(&split));
    assert_eq!(text(&whole), text(&dripped));

    let mut rest = input;
    for _ in &whole.0 {
        let Ok(Some(end)) = skip_reply(rest) else {
            panic!("a reply without an end");
        };
        let parsed = parser().parse(&rest[..end]);
        assert!(matches!(parsed, Ok((used, Some(_))) if used == end));
        rest = &rest[end..];
    }
});

fn parser() -> ReplyParser {
    ReplyParser::new(ReplyLimits {
        max_depth: 5,
        max_bulk: 200,
        max_line: 60,
    })
}

fn read_all(input: &[u8], piece: impl Fn(usize) -> usize) -> Outcome {
    let mut parser = parser();
    let mut replies = Vec::new();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let end = input.len().min(at + piece(at).max(1));
        kept.extend_from_slice(&input[at..end]);
        at = end;
        loop {
            match parser.parse(&kept) {
                Ok((used, reply)) => {
                    kept.drain(..used);
                    let Some(reply) = reply else { break };
                    replies.push(reply);
                }
                Err(error) => return (replies, Some(error)),
            }
        }
    }
    (replies, None)
}
