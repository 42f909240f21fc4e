//! Replies: what is written by protocol version, what is read back, and what is refused.

use proptest::collection::vec;
use proptest::prelude::*;
use rufous_resp::Proto::{Resp2, Resp3};
use rufous_resp::{
    Proto, Reply, ReplyError, ReplyLimits, ReplyParser, Skipper, encode, skip_reply,
};

#[track_caller]
fn check_written(write: impl Fn(&mut Vec<u8>, Proto), resp2: &str, resp3: &str) {
    for (proto, expected) in [(Resp2, resp2), (Resp3, resp3)] {
        let mut out = b"before".to_vec();
        write(&mut out, proto);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert_eq!(text, format!("before{expected}"), "{proto:?}");
    }
}

#[test]
fn written_alike_in_both_versions() {
    let same = |write: fn(&mut Vec<u8>), text: &str| check_written(|out, _| write(out), text, text);
    same(encode::ok, "+OK\r\n");
    same(|out| encode::simple(out, "PONG"), "+PONG\r\n");
    same(|out| encode::error(out, b"ERR a\r\nb"), "-ERR a  b\r\n");
    same(|out| encode::integer(out, -42), ":-42\r\n");
    same(
        |out| encode::integer(out, i64::MIN),
        ":-9223372036854775808\r\n",
    );
    same(|out| encode::bulk(out, b""), "$0\r\n\r\n");
    same(|out| encode::bulk(out, b"a\r\nb"), "$4\r\na\r\nb\r\n");
    same(
        |out| encode::bulk(out, &[b'x'; 10]),
        "$10\r\nxxxxxxxxxx\r\n",
    );
    for len in [9, 10, 99, 100, 1000] {
        let body = "y".repeat(len);
        let text = format!("${len}\r\n{body}\r\n");
        check_written(|out, _| encode::bulk(out, body.as_bytes()), &text, &text);
    }
    same(|out| encode::array(out, 3), "*3\r\n");
    same(
        |out| encode::request(out, &["GET", "k"]),
        "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    );
}

#[test]
fn written_by_version() {
    check_written(encode::null, "$-1\r\n", "_\r\n");
    check_written(encode::null_array, "*-1\r\n", "_\r\n");
    check_written(|out, p| encode::map(out, p, 2), "*4\r\n", "%2\r\n");
    check_written(|out, p| encode::set(out, p, 2), "*2\r\n", "~2\r\n");
    check_written(|out, p| encode::push(out, p, 3), "*3\r\n", ">3\r\n");
    check_written(|out, p| encode::boolean(out, p, true), ":1\r\n", "#t\r\n");
    check_written(|out, p| encode::boolean(out, p, false), ":0\r\n", "#f\r\n");
    check_written(
        |out, p| encode::double(out, p, 1.5),
        "$3\r\n1.5\r\n",
        ",1.5\r\n",
    );
    let infinity = |out: &mut Vec<u8>, p| encode::double(out, p, f64::NEG_INFINITY);
    check_written(infinity, "$4\r\n-inf\r\n", ",-inf\r\n");
    check_written(
        |out, p| encode::big_number(out, p, "123"),
        "$3\r\n123\r\n",
        "(123\r\n",
    );
    let verbatim = |out: &mut Vec<u8>, p| encode::verbatim(out, p, *b"txt", b"hi");
    check_written(verbatim, "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
    let attribute = |out: &mut Vec<u8>, p| assert_eq!(encode::attribute(out, p, 1), p == Resp3);
    check_written(attribute, "", "|1\r\n");
}

/// One reply, whole and dripped; the skipper finds the same end.
#[track_caller]
fn check_read(input: &str, expected: Reply) {
    let bytes = input.as_bytes();
    let with_tail = [bytes, b"+next\r\n"].concat();
    let whole = ReplyParser::default().parse(&with_tail);
    assert_eq!(whole, Ok((bytes.len(), Some(expected.clone()))));
    assert_eq!(skip_reply(&with_tail), Ok(Some(bytes.len())));
    assert_eq!(skip_reply(&bytes[..bytes.len() - 1]), Ok(None));
    assert_eq!(read_split(bytes, &[1]), Ok(vec![expected]));
}

/// All replies of a stream that arrives in pieces, with their ends confirmed by a [`Skipper`].
fn read_split(input: &[u8], cuts: &[usize]) -> Result<Vec<Reply>, ReplyError> {
    let mut parser = ReplyParser::default();
    let mut skipper = Skipper::default();
    let (mut kept, mut skip_kept) = (Vec::new(), Vec::new());
    let (mut replies, mut skipped) = (Vec::new(), 0);
    let (mut at, mut turn) = (0, 0);
    while at < input.len() {
        let end = input.len().min(at + cuts[turn % cuts.len()]);
        kept.extend_from_slice(&input[at..end]);
        skip_kept.extend_from_slice(&input[at..end]);
        (at, turn) = (end, turn + 1);
        loop {
            let (used, reply) = parser.parse(&kept)?;
            kept.drain(..used);
            let Some(reply) = reply else { break };
            replies.push(reply);
        }
        loop {
            let (used, whole) = skipper.skip(&skip_kept)?;
            skip_kept.drain(..used);
            if !whole {
                break;
            }
            skipped += 1;
        }
    }
    assert_eq!(skipped, replies.len());
    Ok(replies)
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

#[test]
fn read_scalars() {
    check_read("+OK\r\n", Reply::Simple(b"OK".to_vec()));
    check_read("-ERR no\r\n", Reply::Error(b"ERR no".to_vec()));
    check_read("!6\r\nERR\r\nx\r\n", Reply::Error(b"ERR\r\nx".to_vec()));
    check_read(":-7\r\n", Reply::Integer(-7));
    check_read(":+7\r\n", Reply::Integer(7));
    check_read("$0\r\n\r\n", bulk(""));
    check_read("$5\r\nhello\r\n", bulk("hello"));
    check_read("$-1\r\n", Reply::Null);
    check_read("_\r\n", Reply::Null);
    check_read("*-1\r\n", Reply::NullArray);
    check_read("#t\r\n", Reply::Boolean(true));
    check_read("#f\r\n", Reply::Boolean(false));
    check_read(",1.5\r\n", Reply::Double(1.5));
    check_read(",-inf\r\n", Reply::Double(f64::NEG_INFINITY));
    check_read(",1e+21\r\n", Reply::Double(1e21));
    check_read(
        "(-12345678901234567890\r\n",
        Reply::BigNumber(b"-12345678901234567890".to_vec()),
    );
    let (format, text) = (*b"txt", b"some".to_vec());
    check_read("=8\r\ntxt:some\r\n", Reply::Verbatim { format, text });
}

#[test]
fn read_aggregates() {
    let (a, one) = (bulk("a"), Reply::Integer(1));
    check_read("*0\r\n", Reply::Array(vec![]));
    check_read("%0\r\n", Reply::Map(vec![]));
    check_read(
        "*2\r\n$1\r\na\r\n:1\r\n",
        Reply::Array(vec![a.clone(), one.clone()]),
    );
    check_read("~1\r\n:1\r\n", Reply::Set(vec![one.clone()]));
    check_read(">1\r\n:1\r\n", Reply::Push(vec![one.clone()]));
    check_read(
        "%1\r\n$1\r\na\r\n:1\r\n",
        Reply::Map(vec![(a.clone(), one.clone())]),
    );
    check_read(
        "*2\r\n*1\r\n*0\r\n*-1\r\n",
        Reply::Array(vec![
            Reply::Array(vec![Reply::Array(vec![])]),
            Reply::NullArray,
        ]),
    );
    check_read(
        "|1\r\n$1\r\na\r\n:1\r\n*1\r\n:1\r\n",
        Reply::Attributed {
            attributes: vec![(a, one.clone())],
            reply: Box::new(Reply::Array(vec![one])),
        },
    );
}

#[track_caller]
fn check_refused(input: &str, expected: ReplyError) {
    let parsed = ReplyParser::default().parse(input.as_bytes());
    assert_eq!(parsed, Err(expected), "{input:?}");
}

#[test]
fn refused() {
    check_refused("x\r\n", ReplyError::UnknownType(b'x'));
    check_refused("\r\n", ReplyError::MissingLineEnd);
    check_refused("\n", ReplyError::MissingLineEnd);
    check_refused("+OK\n", ReplyError::MissingLineEnd);
    check_refused("$1\r\nab\r\n", ReplyError::MissingLineEnd);
    for line in ["$-2", "$x", "$?", "$9e18", "$"] {
        check_refused(&format!("{line}\r\n"), ReplyError::Malformed(b'$'));
    }
    for line in ["*-2", "*?", "*", "*9223372036854775808"] {
        check_refused(&format!("{line}\r\n"), ReplyError::Malformed(b'*'));
    }
    check_refused("#x\r\n", ReplyError::Malformed(b'#'));
    check_refused("_x\r\n", ReplyError::Malformed(b'_'));
    check_refused(":1x\r\n", ReplyError::Malformed(b':'));
    check_refused(",infinity\r\n", ReplyError::Malformed(b','));
    check_refused("(1.5\r\n", ReplyError::Malformed(b'('));
    check_refused("=2\r\nab\r\n", ReplyError::Malformed(b'='));
    check_refused("$536870913\r\n", ReplyError::TooBig);
    check_refused(
        "*9223372036854775807\r\nx\r\n",
        ReplyError::UnknownType(b'x'),
    );
    let endless = format!("+{}", "a".repeat(1024 * 1024 + 1));
    check_refused(&endless, ReplyError::TooBig);
}

#[test]
fn nesting_is_limited_for_replies_and_free_to_skip() {
    for head in ["*1\r\n", "%1\r\n", "|1\r\n"] {
        let deep = head.repeat(100_000);
        check_refused(&deep, ReplyError::TooDeep);
        assert_eq!(skip_reply(deep.as_bytes()), Ok(None));
    }
    let deep = format!("{}:1\r\n", "*1\r\n".repeat(100_000));
    assert_eq!(skip_reply(deep.as_bytes()), Ok(Some(deep.len())));
    let limits = ReplyLimits {
        max_depth: 2,
        ..ReplyLimits::default()
    };
    let nested = |depth| format!("{}:1\r\n", "*1\r\n".repeat(depth));
    let parse = |text: String| ReplyParser::new(limits.clone()).parse(text.as_bytes());
    assert!(matches!(parse(nested(2)), Ok((12, Some(_)))));
    assert_eq!(parse(nested(3)), Err(ReplyError::TooDeep));
}

#[test]
fn skipped_counts_cannot_overflow() {
    let heads = "*9223372036854775807\r\n".repeat(3);
    assert_eq!(skip_reply(heads.as_bytes()), Err(ReplyError::TooBig));
}

fn reply() -> impl Strategy<Value = Reply> {
    let text = || "[ -~]{0,20}".prop_map(String::into_bytes);
    let leaf = prop_oneof![
        text().prop_map(Reply::Simple),
        text().prop_map(Reply::Error),
        any::<i64>().prop_map(Reply::Integer),
        vec(any::<u8>(), 0..150).prop_map(Reply::Bulk),
        Just(Reply::Null),
        any::<bool>().prop_map(Reply::Boolean),
        any::<f64>()
            .prop_filter("NaN equals nothing", |value| !value.is_nan())
            .prop_map(Reply::Double),
        any::<i128>().prop_map(|value| Reply::BigNumber(value.to_string().into_bytes())),
        (any::<[u8; 3]>(), text()).prop_map(|(format, text)| Reply::Verbatim { format, text }),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let pairs = || vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Reply::Array),
            vec(inner.clone(), 0..6).prop_map(Reply::Set),
            vec(inner.clone(), 0..6).prop_map(Reply::Push),
            pairs().prop_map(Reply::Map),
            (pairs(), inner.clone()).prop_map(|(attributes, reply)| Reply::Attributed {
                attributes,
                reply: Box::new(reply),
            }),
        ]
    })
}

fn write(out: &mut Vec<u8>, reply: &Reply) {
    let all = |out: &mut Vec<u8>, items: &[Reply]| items.iter().for_each(|item| write(out, item));
    let pairs = |out: &mut Vec<u8>, pairs: &[(Reply, Reply)]| {
        for (key, value) in pairs {
            write(out, key);
            write(out, value);
        }
    };
    match reply {
        Reply::Simple(text) => encode::simple(out, text),
        Reply::Error(text) => encode::error(out, text),
        Reply::Integer(value) => encode::integer(out, *value),
        Reply::Bulk(bytes) => encode::bulk(out, bytes),
        Reply::Null => encode::null(out, Resp3),
        Reply::NullArray => encode::null_array(out, Resp2),
        Reply::Double(value) => encode::double(out, Resp3, *value),
        Reply::Boolean(value) => encode::boolean(out, Resp3, *value),
        Reply::BigNumber(digits) => {
            encode::big_number(out, Resp3, std::str::from_utf8(digits).unwrap());
        }
        Reply::Verbatim { format, text } => encode::verbatim(out, Resp3, *format, text),
        Reply::Array(items) => {
            encode::array(out, items.len());
            all(out, items);
        }
        Reply::Set(items) => {
            encode::set(out, Resp3, items.len());
            all(out, items);
        }
        Reply::Push(items) => {
            encode::push(out, Resp3, items.len());
            all(out, items);
        }
        Reply::Map(entries) => {
            encode::map(out, Resp3, entries.len());
            pairs(out, entries);
        }
        Reply::Attributed { attributes, reply } => {
            assert!(encode::attribute(out, Resp3, attributes.len()));
            pairs(out, attributes);
            write(out, reply);
        }
    }
}

proptest! {
    #[test]
    fn written_replies_read_back_from_any_split(
        replies in vec(reply(), 1..4),
        cuts in vec(1usize..60, 1..10),
    ) {
        let mut bytes = Vec::new();
        for reply in &replies {
            write(&mut bytes, reply);
        }
        prop_assert_eq!(read_split(&bytes, &cuts), Ok(replies));
    }

    #[test]
    fn any_bytes_are_read_or_refused_alike_in_any_split(
        pieces in vec("[*$%|>~:,_#+=!(-][0-9?tf-]{0,3}\r?\n?", 0..12),
        cuts in vec(1usize..9, 1..10),
    ) {
        let bytes = pieces.concat().into_bytes();
        // The two searches differ in what they refuse, so only the parser is compared.
        let read = |cuts: &[usize]| {
            let mut parser = ReplyParser::default();
            let (mut kept, mut replies) = (Vec::new(), Vec::new());
            let (mut at, mut turn) = (0, 0);
            while at < bytes.len() {
                let end = bytes.len().min(at + cuts[turn % cuts.len()]);
                kept.extend_from_slice(&bytes[at..end]);
                (at, turn) = (end, turn + 1);
                loop {
                    match parser.parse(&kept) {
                        Ok((used, reply)) => {
                            kept.drain(..used);
                            match reply {
                                Some(reply) => replies.push(reply),
                                None => break,
                            }
                        }
                        Err(error) => return (replies, Some(error)),
                    }
                }
            }
            (replies, None)
        };
        prop_assert_eq!(format!("{:?}", read(&cuts)), format!("{:?}", read(&[bytes.len().max(1)])));
    }
}
