//! Requests and protocol errors, case by case; each case also arrives byte by byte.

use crate::common::{Outcome, args, read_all};
use rufous_resp::{Limits, Progress, ProtocolError, RequestParser};

#[track_caller]
fn check(input: &[u8], expected: &[&[&str]]) {
    let expected: Vec<Vec<Vec<u8>>> = expected
        .iter()
        .map(|request| args(request.iter().map(|arg| arg.as_bytes())))
        .collect();
    for chunk in [input.len().max(1), 1, 2, 3, 7] {
        let outcome = read_all(input, |_| chunk, &Limits::default());
        assert_eq!(outcome.requests, expected, "in chunks of {chunk}");
        assert_eq!(outcome.error, None, "in chunks of {chunk}");
    }
}

#[track_caller]
fn check_error_with(input: &[u8], expected: &str, limits: &Limits) {
    for chunk in [input.len(), 1, 2, 3, 7] {
        let Outcome { requests, error } = read_all(input, |_| chunk, limits);
        let text = error.map(|error| error.to_string());
        let expected = format!("Protocol error: {expected}");
        assert_eq!(text, Some(expected), "in chunks of {chunk}");
        assert!(requests.is_empty(), "in chunks of {chunk}");
    }
}

#[track_caller]
fn check_error(input: &[u8], expected: &str) {
    check_error_with(input, expected, &Limits::default());
}

#[test]
fn multibulk_requests() {
    check(b"*1\r\n$4\r\nPING\r\n", &[&["PING"]]);
    check(
        b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$12\r\nhello\r\nworld\r\n*1\r\n$4\r\nPING\r\n",
        &[&["SET", "key", "hello\r\nworld"], &["PING"]],
    );
    check(b"*2\r\n$0\r\n\r\n$1\r\n*\r\n", &[&["", "*"]]);
    let long = "x".repeat(1234);
    check(
        format!("*2\r\n$3\r\nGET\r\n$1234\r\n{long}\r\n").as_bytes(),
        &[&["GET", &long]],
    );
    let many: Vec<&str> = vec!["ab"; 123];
    let bytes = format!("*123\r\n{}", "$2\r\nab\r\n".repeat(123));
    check(bytes.as_bytes(), &[&many]);
}

#[test]
fn the_two_bytes_after_an_argument_are_not_looked_at() {
    check(b"*1\r\n$4\r\nPINGxy*1\r\n$1\r\na\r\n", &[&["PING"], &["a"]]);
}

#[test]
fn requests_without_arguments_are_passed_over() {
    check(b"*0\r\n*-1\r\n*-10\r\n\r\n\n  \r\nPING\r\n", &[&["PING"]]);
}

#[test]
fn inline_requests() {
    check(b"PING\r\n", &[&["PING"]]);
    check(b"PING\n", &[&["PING"]]);
    check(b"  set\tkey   value  \r\n", &[&["set", "key", "value"]]);
    check(br#"set k "hello world"#.as_slice(), &[]);
    check(b"set k \"hello world\"\n", &[&["set", "k", "hello world"]]);
    check(b"set k ''  \"\"\n", &[&["set", "k", "", ""]]);
    check(b"\"\"\n", &[&[""]]);
    check(
        br#"echo "a\n\r\t\b\a\\\"\x41\x4g\q'""#
            .iter()
            .chain(b"\n")
            .copied()
            .collect::<Vec<_>>()
            .as_slice(),
        &[&["echo", "a\n\r\t\u{8}\u{7}\\\"Ax4gq'"]],
    );
    check(b"echo 'it\\'s \\n \"'\n", &[&["echo", "it's \\n \""]]);
    check(b"echo ab\"c d\" x\n", &[&["echo", "abc d", "x"]]);
    check(b"$3\r\n", &[&["$3"]]);
}

#[test]
fn unbalanced_quotes() {
    let text = "unbalanced quotes in request";
    check_error(b"set \"\"\"test-key\"\"\" test-value\r\n", text);
    check_error(b"get \"a\r\n", text);
    check_error(b"get 'a\r\n", text);
    check_error(b"get \"a\"b\r\n", text);
    check_error(b"get 'a'b\r\n", text);
    check_error(b"get \"a\\\"\n", text);
    check_error(b"get \"a\\\n", text);
    check_error(b"get 'a\\'\n", text);
    check_error(b"get a\"\n", text);
}

#[test]
fn impossible_headers() {
    for count in [
        "",
        "x",
        "+1",
        "01",
        "1x",
        "1 ",
        " 1",
        "--1",
        "-",
        "-0",
        "2147483647",
        "3000000000",
        "1048577",
        "9223372036854775807",
        "9223372036854775808",
        "99999999999999999999",
        "-9223372036854775809",
    ] {
        check_error(
            format!("*{count}\r\n").as_bytes(),
            "invalid multibulk length",
        );
    }
    for len in [
        "",
        "x",
        "+1",
        "05",
        "1x",
        "-1",
        "-2",
        "-10",
        "536870913",
        "2000000000",
        "9e18",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
    ] {
        check_error(
            format!("*1\r\n${len}\r\n").as_bytes(),
            "invalid bulk length",
        );
        check_error(
            format!("*2\r\n$1\r\na\r\n${len}\r\n").as_bytes(),
            "invalid bulk length",
        );
    }
}

#[test]
fn other_bytes_than_a_bulk() {
    check_error(b"*1\r\nfoo\r\n", "expected '$', got 'f'");
    check_error(
        b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n",
        "expected '$', got 'f'",
    );
    check_error(b"*1\r\n*1\r\n$1\r\na\r\n", "expected '$', got '*'");
    check_error(b"*1\r\n\r\n", "expected '$', got '\\r'");
    check_error(b"*1\r\n\nx\r\n", "expected '$', got '\\n'");
    check_error(b"*1\r\n\0x\r\n", "expected '$', got '\\x00'");
    check_error(b"*1\r\n\xffx\r\n", "expected '$', got '\\xff'");
}

#[test]
fn lines_without_an_end() {
    let junk = vec![b'a'; 64 * 1024 + 1];
    let with = |head: &[u8]| [head, &junk].concat();
    for tail in [b"".as_slice(), b"\r\n"] {
        let input = |head: &[u8]| [with(head).as_slice(), tail].concat();
        check_error(&input(b""), "too big inline request");
        check_error(&input(b"\0"), "too big inline request");
        check_error(&input(b"$\0"), "too big inline request");
        check_error(&input(b"*\0"), "too big mbulk count string");
        check_error(&input(b"*1\r\n$"), "too big bulk count string");
    }
}

#[test]
fn the_longest_inline_request() {
    let word = "a".repeat(64 * 1024);
    check(format!("{word}\n").as_bytes(), &[&[&word]]);
}

#[test]
fn limits_before_authentication() {
    let limits = Limits::unauthenticated();
    check_error_with(b"*11\r\n", "unauthenticated multibulk length", &limits);
    check_error_with(b"*1\r\n$16385\r\n", "unauthenticated bulk length", &limits);
    check_error_with(b"*3000000000\r\n", "invalid multibulk length", &limits);
    check_error_with(b"*1\r\n$2000000000\r\n", "invalid bulk length", &limits);
    let input = format!("*10\r\n{}", "$1\r\na\r\n".repeat(10));
    let outcome = read_all(input.as_bytes(), |_| 5, &limits);
    assert_eq!((outcome.requests.len(), outcome.error), (1, None));
}

#[test]
fn announced_lengths_allocate_nothing() {
    let mut spans = Vec::new();
    for input in [
        "*1048576\r\n",
        "*1\r\n$536870912\r\n",
        "*1048576\r\n$536870912\r\nx",
    ] {
        let mut parser = RequestParser::new();
        let progress = parser.parse(input.as_bytes(), &mut spans, &Limits::default());
        assert!(
            matches!(progress, Ok(Progress::Incomplete { .. })),
            "{input}"
        );
        assert!(
            parser.held_bytes() < 70_000,
            "{input}: {}",
            parser.held_bytes()
        );
        assert!(spans.capacity() < 100, "{input}");
    }
}

#[test]
fn an_idle_parser_is_small_and_owns_nothing() {
    assert!(size_of::<RequestParser>() <= 32);
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let limits = Limits::default();
    assert_eq!(
        parser.parse(b"", &mut spans, &limits),
        Ok(Progress::Incomplete { keep: 0 })
    );
    assert!(parser.is_idle());
    assert_eq!(
        parser.parse(b"*", &mut spans, &limits),
        Ok(Progress::Incomplete { keep: 1 })
    );
    assert!(!parser.is_idle() && parser.held_bytes() > 0);
    assert_eq!(
        parser.parse(b"*0\r\n", &mut spans, &limits),
        Ok(Progress::Empty { consumed: 4 })
    );
    assert!(parser.is_idle() && parser.held_bytes() == 0);
}

#[test]
fn spans_of_a_batch_share_one_vector() {
    let mut parser = RequestParser::new();
    let mut spans = vec![(7, 7)];
    let limits = Limits::default();
    let input = b"*2\r\n$1\r\na\r\n$2\r\nbc\r\n";
    assert_eq!(
        parser.parse(input, &mut spans, &limits),
        Ok(Progress::Request { consumed: 19 })
    );
    assert_eq!(spans, [(7, 7), (8, 1), (15, 2)]);
    assert_eq!(
        parser.parse(&input[..18], &mut spans, &limits),
        Ok(Progress::Incomplete { keep: 18 })
    );
    assert_eq!(spans.len(), 3);
    assert_eq!(
        parser.parse(input, &mut spans, &limits),
        Ok(Progress::Request { consumed: 19 })
    );
    assert_eq!(spans[3..], [(8, 1), (15, 2)]);
    assert_eq!(
        parser.parse(b"*2\r\n$1\r\na\r\n$x\r\n", &mut spans, &limits),
        Err(ProtocolError::InvalidBulkLength)
    );
    assert_eq!(spans.len(), 5);
}

/// All that the header announces is there, so that the pass for whole requests sees it too.
#[test]
fn impossible_headers_of_whole_requests() {
    for (count, args) in [("01", 1), ("03", 3), ("0100", 100), ("001", 1)] {
        let input = format!("*{count}\r\n{}", "$1\r\na\r\n".repeat(args));
        check_error(input.as_bytes(), "invalid multibulk length");
    }
    for (announced, len) in [("05", 5), ("00", 0), ("0100", 100), ("012", 12)] {
        let input = format!("*1\r\n${announced}\r\n{}\r\n", "a".repeat(len));
        check_error(input.as_bytes(), "invalid bulk length");
    }
    let arguments = |count: usize| format!("*{count}\r\n{}", "$1\r\na\r\n".repeat(count));
    let argument = |len: usize| format!("*1\r\n${len}\r\n{}\r\n", "a".repeat(len));
    let limits = Limits {
        max_args: 3,
        max_bulk: 10,
        ..Limits::default()
    };
    for accepted in [arguments(3), argument(10)] {
        let outcome = read_all(accepted.as_bytes(), |_| accepted.len(), &limits);
        assert_eq!((outcome.requests.len(), outcome.error), (1, None));
    }
    check_error_with(arguments(4).as_bytes(), "invalid multibulk length", &limits);
    check_error_with(argument(11).as_bytes(), "invalid bulk length", &limits);
    let limits = Limits::unauthenticated();
    let text = "unauthenticated multibulk length";
    check_error_with(arguments(11).as_bytes(), text, &limits);
    let text = "unauthenticated bulk length";
    check_error_with(argument(16_385).as_bytes(), text, &limits);
}
