//! Bytes that are no requests.

use crate::common::*;

/// What the server must answer before it closes, and nothing after it.
const CASES: &[(&[u8], &str)] = &[
    (b"*1\r\n$-2\r\n", "invalid bulk length"),
    (b"*1\r\n$-1\r\n", "invalid bulk length"),
    (b"*1\r\n$9000000000000000000\r\n", "invalid bulk length"),
    (b"*1\r\n$9223372036854775807\r\n", "invalid bulk length"),
    (b"*1\r\n$9223372036854775808\r\n", "invalid bulk length"),
    (b"*1\r\n$99999999999999999999999\r\n", "invalid bulk length"),
    (b"*1\r\n$536870913\r\n", "invalid bulk length"),
    (b"*1\r\n$x\r\n", "invalid bulk length"),
    (b"*1\r\n$1.5\r\n", "invalid bulk length"),
    (b"*1\r\n$ 4\r\n", "invalid bulk length"),
    (b"*1\r\n$\r\n", "invalid bulk length"),
    (b"*2147483647\r\n", "invalid multibulk length"),
    (b"*2147483648\r\n", "invalid multibulk length"),
    (b"*9223372036854775807\r\n", "invalid multibulk length"),
    (b"*99999999999999999999999\r\n", "invalid multibulk length"),
    (b"*1048577\r\n", "invalid multibulk length"),
    (b"*x\r\n", "invalid multibulk length"),
    (b"*\r\n", "invalid multibulk length"),
    (b"*+1\r\n", "invalid multibulk length"),
    (b"*1x\r\n", "invalid multibulk length"),
    (b"*1\n\r\n", "invalid multibulk length"),
    (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
    (b"*1\r\n:4\r\nPING\r\n", "expected '$', got ':'"),
    (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
    (b"*2\r\n$3\r\nGET\r\nfoo\r\n", "expected '$', got 'f'"),
    (b"*2\r\n$3\r\nGETX\r\n$1\r\na\r\n", "expected '$', got '"),
    (b"*1\r\n\x00\xff\r\n", "expected '$', got '\\x00'"),
    (b"*1\r\n\r\n\r\n", "expected '$', got '\\r'"),
    (b"SET a \"b\r\n", "unbalanced quotes in request"),
    (b"SET a 'b\r\n", "unbalanced quotes in request"),
    (b"SET a \"b\"c\r\n", "unbalanced quotes in request"),
];

fn check(server: &Server, bytes: &[u8], expected: &str) {
    let mut client = server.client();
    // What comes behind the error must not run.
    client.try_send(&[bytes, b"\r\n*1\r\n$4\r\nPING\r\n"].concat());
    let got = String::from_utf8_lossy(&client.read_to_end()).into_owned();
    let shown = bytes[..bytes.len().min(60)].escape_ascii();
    assert!(
        got.starts_with(&format!("-ERR Protocol error: {expected}")),
        "{shown}: {got:?}"
    );
    assert_eq!(got.matches("\r\n").count(), 1, "{shown}: {got:?}");
    assert!(got.ends_with("\r\n"), "{shown}: {got:?}");
}

#[test]
fn every_kind_is_answered_once_and_closed() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    for (bytes, expected) in CASES {
        check(&server, bytes, expected);
    }
    witness.finish();
    server.wait_for_clients(0);
    server.assert_grew_less(before, 32 * MIB);
}

#[test]
fn lines_without_an_end() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let long = vec![b'1'; 64 * 1024 + 1];
    for _ in 0..20 {
        check(
            &server,
            &[b"*", &long[..]].concat(),
            "too big mbulk count string",
        );
        check(
            &server,
            &[b"*1\r\n$", &long[..]].concat(),
            "too big bulk count string",
        );
        check(&server, &long, "too big inline request");
        check(
            &server,
            &[&b"PING "[..], &long].concat(),
            "too big inline request",
        );
    }
    // A line that just fits is an inline command like any other.
    let mut client = server.client();
    let value = vec![b'v'; 64 * 1024 - 16];
    client.send(&[b"SET line ", &value[..], b"\r\n"].concat());
    assert_eq!(client.read(), client::ok());
    assert_eq!(client.run(&["GET", "line"]), Reply::Bulk(value));
    // Quoting alone makes no memory either.
    client.send(&[&b"ECHO "[..], &b"\"\" ".repeat(20_000), b"\r\n"].concat());
    assert!(client.read().error().contains("wrong number of arguments"));
    witness.finish();
    server.assert_grew_less(before, 32 * MIB);
}

#[test]
fn a_hundred_thousand_nested_arrays() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    for nested in [
        &b"*1\r\n"[..],
        b"*1000000\r\n",
        b"*2\r\n$4\r\nPING\r\n*1\r\n",
    ] {
        check(&server, &nested.repeat(100_000), "expected '$', got '*'");
    }
    witness.finish();
    server.assert_grew_less(before, 32 * MIB);
}

#[test]
fn empty_requests_are_no_requests() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"*-1\r\n*0\r\n*-2147483648\r\n\r\n   \r\n\n");
    client.send(&request(&["PING"]));
    assert_eq!(client.read(), Reply::Status("PONG".into()));
    // An empty name is a command that nobody has.
    assert!(
        client
            .run(&[""])
            .error()
            .starts_with("ERR unknown command ''")
    );
    client.send(&b"*0\r\n".repeat(100_000));
    assert_eq!(
        client.run(&["ECHO", "still"]),
        Reply::Bulk(b"still".to_vec())
    );
}

/// Redis looks at no byte behind CR, and clients exist that rely on it.
#[test]
fn carriage_returns_without_line_feeds() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"*2\r_$4\r_ECHO\r_$2\r_ab__");
    assert_eq!(client.read(), Reply::Bulk(b"ab".to_vec()));
    client.send(b"PING\n");
    assert_eq!(client.read(), Reply::Status("PONG".into()));
}

#[test]
fn replies_sent_as_requests_are_unknown_commands() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for line in [
        "+OK", "-ERR no", ":1", "$3", "_", "#t", ",1.5", "%1", "~1", ">1", "(1", "=3",
    ] {
        client.send(format!("{line}\r\n").as_bytes());
        let shown = line.split(' ').next().expect("a word");
        assert!(
            client
                .read()
                .error()
                .starts_with(&format!("ERR unknown command '{shown}'"))
        );
    }
}

#[test]
fn junk() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..400u32 {
        let len = next() % 8192;
        let mut bytes: Vec<u8> = (0..len).map(|_| next() as u8).collect();
        match round % 4 {
            0 => {}
            1 => bytes
                .iter_mut()
                .for_each(|b| *b = b"*$\r\n0123456789-PING"[usize::from(*b) % 18]),
            2 => bytes.splice(..0, *b"*3\r\n$3\r\nSET\r\n").for_each(drop),
            _ => {
                // A whole pipeline with one byte changed.
                bytes = request(&["SET", "junk", "value"]).repeat(50);
                let at = next() as usize % bytes.len();
                bytes[at] = next() as u8;
            }
        }
        let mut client = server.client();
        client.try_send(&bytes);
        let _ = client.stream().shutdown(std::net::Shutdown::Write);
        client.read_to_end();
    }
    witness.finish();
    server.wait_for_clients(0);
    server.assert_grew_less(before, 48 * MIB);
}

/// Text of a request that is echoed in an error must not become replies.
#[test]
fn errors_forge_no_replies() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let forged = "x\r\n+OK\r\n$3\r\nbad\r\n";
    let requests: &[&[&str]] = &[
        &[forged],
        &["nosuch", forged, forged],
        &["CONFIG", forged],
        &["CLIENT", forged],
        &["CONFIG", "SET", forged, "1"],
        &["CONFIG", "SET", "maxmemory-policy", forged],
        &["CONFIG", "SET", "maxclients", forged],
        &["CLIENT", "SETNAME", forged],
        &["CLIENT", "SETINFO", "lib-name", forged],
        &["CLIENT", "SETINFO", forged, "x"],
        &["HELLO", "3", "SETNAME", forged],
        &["HELLO", forged],
        &["HELLO", "2", forged],
        &["AUTH", forged, forged],
        &["DEBUG", forged],
        &["OBJECT", forged, "k"],
        &["MEMORY", forged],
        &["SET", "k", "v", forged],
        &["SET", "k", "v", "EX", forged],
        &["INCRBY", "k", forged],
        &["SELECT", forged],
        &["LATENCY", forged],
        &["SLOWLOG", forged],
        &["COMMAND", forged],
        &["SCAN", forged],
        &["BITFIELD", "k", "GET", forged, "0"],
        &["LCS", "a", "b", forged],
    ];
    for (n, args) in requests.iter().enumerate() {
        let mark = n.to_string();
        client.send(&[request(args), request(&["ECHO", &mark])].concat());
        let text = client.read().error();
        assert!(!text.contains(['\r', '\n']), "{args:?}: {text:?}");
        assert_eq!(
            client.read(),
            Reply::Bulk(mark.into_bytes()),
            "{args:?}: {text}"
        );
    }
}
