//! However a stream of requests is split, the same requests come out, at linear cost.

use crate::common::{Args, args, read_all};
use proptest::collection::vec;
use proptest::prelude::*;
use rufous_resp::{Limits, Progress, RequestParser, encode};

/// Small enough that random requests cross every limit.
fn tight() -> Limits {
    Limits {
        max_bulk: 200,
        max_args: 12,
        max_inline: 64,
        big_arg: 24,
        ..Limits::default()
    }
}

fn request() -> impl Strategy<Value = Args> {
    let short = vec(any::<u8>(), 0..12);
    let long = vec(any::<u8>(), 20..180);
    vec(prop_oneof![4 => short, 1 => long], 1..8)
}

/// Bytes that are nearly requests: pieces of the protocol in any order.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        request().prop_map(|request| {
            let mut out = Vec::new();
            encode::request(&mut out, &request);
            out
        }),
        "[*$][0-9]{1,3}\r\n".prop_map(String::into_bytes),
        "[a-z \"'\\\\x0-9]{0,12}\r?\n".prop_map(String::into_bytes),
        "[*$]?[a-z0-9\\-]{0,70}".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..8),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Lengths of pieces, used in turn.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(
        prop_oneof![3 => 1usize..4, 2 => 4usize..40, 1 => 40usize..400],
        1..40,
    )
}

proptest! {
    #[test]
    fn encoded_requests_come_out_of_any_split(
        requests in vec(request(), 1..10),
        cuts in cuts(),
    ) {
        let mut input = Vec::new();
        for request in &requests {
            encode::request(&mut input, request);
        }
        let limits = tight();
        let outcome = read_all(&input, |at| cuts[at % cuts.len()], &limits);
        prop_assert_eq!(outcome.error, None);
        prop_assert_eq!(outcome.requests, requests);
    }

    #[test]
    fn any_bytes_mean_the_same_in_any_split(input in nearly(), cuts in cuts()) {
        let limits = tight();
        let whole = read_all(&input, |_| input.len(), &limits);
        let split = read_all(&input, |at| cuts[at % cuts.len()], &limits);
        prop_assert_eq!(&split, &whole);
        let dripped = read_all(&input, |_| 1, &limits);
        prop_assert_eq!(&dripped, &whole);
    }

    #[test]
    fn quoted_words_read_back(words in vec(vec(any::<u8>(), 0..10), 1..5)) {
        let mut line: Vec<u8> = Vec::new();
        for word in &words {
            line.extend_from_slice(b" \"");
            for byte in word {
                line.extend_from_slice(format!("\\x{byte:02X}").as_bytes());
            }
            line.push(b'"');
        }
        line.push(b'\n');
        let outcome = read_all(&line, |_| line.len(), &Limits::default());
        prop_assert_eq!(outcome.requests, [words]);
    }
}

#[test]
fn a_dripped_request_of_100k_arguments_costs_linear_work() {
    let count = 100_000;
    let input = format!("*{count}\r\n{}", "$3\r\nabc\r\n".repeat(count));
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    // The whole prefix is presented at each of 900,000 calls: any pass over it would not end.
    for end in 1..input.len() {
        let progress = parser.parse(&input.as_bytes()[..end], &mut spans, &Limits::default());
        assert_eq!(progress, Ok(Progress::Incomplete { keep: end }));
    }
    let progress = parser.parse(input.as_bytes(), &mut spans, &Limits::default());
    let consumed = input.len();
    assert_eq!(progress, Ok(Progress::Request { consumed }));
    assert_eq!(spans.len(), count);
    assert_eq!(spans[count - 1], (input.len() as u32 - 5, 3));
}

#[test]
fn big_arguments_are_collected_apart() {
    let limits = Limits::default();
    let value = vec![b'v'; 300_000];
    let mut input = Vec::new();
    encode::request(
        &mut input,
        &[b"MSET".as_slice(), b"a", &value, b"b", &value],
    );
    let head = b"*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$300000\r\n".len();

    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let progress = parser.parse(&input[..head + 1000], &mut spans, &limits);
    assert_eq!(progress, Ok(Progress::Incomplete { keep: head }));
    assert_eq!(parser.wants_big(), Some(300_002 - 1000));
    assert!(parser.held_bytes() < 70_000, "{}", parser.held_bytes());

    let taken = parser.fill_big(&input[head + 1000..]);
    assert_eq!((taken, parser.wants_big()), (299_002, None));
    assert_eq!(parser.fill_big(b"not for a big argument"), 0);

    let behind = &input[head + 300_002..];
    let kept = [&input[..head], &behind[..50]].concat();
    let next = head + b"$1\r\nb\r\n$300000\r\n".len();
    let progress = parser.parse(&kept, &mut spans, &limits);
    assert_eq!(progress, Ok(Progress::Incomplete { keep: next }));
    assert_eq!(parser.fill_big(&behind[50..]), behind.len() - 50);
    let progress = parser.parse(&kept[..next], &mut spans, &limits);
    assert_eq!(progress, Ok(Progress::Request { consumed: next }));
    assert_eq!(parser.take_big(), [(2, value.clone()), (4, value)]);
    assert_eq!(spans[2], (0, 0));
}

#[test]
fn a_big_argument_that_is_all_there_is_a_span() {
    let value = vec![b'v'; 100_000];
    let mut input = Vec::new();
    encode::request(&mut input, &[b"SET".as_slice(), b"k", &value]);
    let mut spans = Vec::new();
    let mut parser = RequestParser::new();
    let progress = parser.parse(&input, &mut spans, &Limits::default());
    let consumed = input.len();
    assert_eq!(progress, Ok(Progress::Request { consumed }));
    assert_eq!(spans[2].1, 100_000);
    assert!(parser.take_big().is_empty());
}

#[test]
fn memory_for_a_big_argument_follows_its_bytes() {
    let limits = Limits::default();
    let mut parser = RequestParser::new();
    let head = b"*1\r\n$536870912\r\n";
    let progress = parser.parse(head, &mut Vec::new(), &limits);
    assert_eq!(progress, Ok(Progress::Incomplete { keep: head.len() }));
    let block = vec![0; 10_000];
    for blocks in 1..200 {
        assert_eq!(parser.fill_big(&block), block.len());
        let bound = (2 * blocks * block.len()).max(65_536) + 512;
        assert!(parser.held_bytes() <= bound, "{}", parser.held_bytes());
    }
}

#[test]
fn bytes_behind_the_kept_ones_that_come_through_the_buffer() {
    let requests: Vec<Args> = vec![
        args([b"MSET".as_slice(), b"a", &[1; 100], b"b", &[2; 150], b"c"]),
        args([b"PING".as_slice()]),
    ];
    let mut input = Vec::new();
    for request in &requests {
        encode::request(&mut input, request);
    }
    for chunk in 1..input.len() {
        let outcome = read_all(&input, |_| chunk, &tight());
        assert_eq!(outcome.requests, requests, "in chunks of {chunk}");
    }
}
