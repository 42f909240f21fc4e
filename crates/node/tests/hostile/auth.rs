//! Passwords guessed, and what can be sent before one is known.

use crate::common::*;

const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn guesses_end_the_connection_and_are_counted() {
    let server = Server::start(&["--requirepass", "s3cret"]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let (mut told, mut connections) = (0, 0);
    // Few, as an address that guesses is slow after 20 wrong passwords.
    for round in 0..4 {
        let mut client = server.stranger();
        let mut guesses = Vec::new();
        for n in 0..1000 {
            // The right one at the end comes too late.
            let guess = if n == 999 {
                "s3cret".into()
            } else {
                format!("{round}-{n}")
            };
            guesses.extend_from_slice(&request(&["AUTH", &guess]));
        }
        guesses.extend_from_slice(&request(&["PING"]));
        client.try_send(&guesses);
        let mut answers = 0;
        while let Ok(reply) = client.try_read() {
            assert_eq!(reply, Reply::Error(WRONG.into()));
            answers += 1;
        }
        assert!(answers <= 16, "{answers} guesses over one connection");
        (told, connections) = (told + answers, connections + 1);
    }
    witness.goes_on();
    let failures = server.client().info("acl_access_denied_auth");
    assert!(
        failures >= told && failures <= connections * 16,
        "{failures} counted, {told} told"
    );
    // A few mistakes do no harm.
    let mut client = server.stranger();
    for _ in 0..3 {
        assert_eq!(client.run(&["AUTH", "mistake"]), Reply::Error(WRONG.into()));
    }
    client.ok(&["AUTH", "s3cret"]);
    client.ok(&["SET", "k", "v"]);
    assert!(
        !server.log().contains("s3cret"),
        "the log tells no passwords"
    );
    server.assert_grew_less(before, 32 * MIB);
    witness.finish();
}

#[test]
fn requests_before_authentication_are_small() {
    let server = Server::start(&["--requirepass", "s3cret"]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let check = |bytes: &[u8], expected: &str| {
        let mut client = server.stranger();
        client.try_send(bytes);
        assert_eq!(
            client.read(),
            Reply::Error(format!("ERR Protocol error: {expected}"))
        );
        assert_eq!(client.read_to_end(), b"");
    };
    for _ in 0..20 {
        check(b"*11\r\n", "unauthenticated multibulk length");
        check(b"*1000000\r\n", "unauthenticated multibulk length");
        check(
            b"*2\r\n$4\r\nAUTH\r\n$16385\r\n",
            "unauthenticated bulk length",
        );
        check(
            b"*2\r\n$4\r\nAUTH\r\n$536870912\r\n",
            "unauthenticated bulk length",
        );
        check(b"*2\r\n$4\r\nAUTH\r\n$-1\r\n", "invalid bulk length");
    }
    // What is allowed is allowed to the last byte, and no more than that runs.
    let mut client = server.stranger();
    assert_eq!(
        client.run(&["AUTH", &"x".repeat(16 * 1024)]),
        Reply::Error(WRONG.into())
    );
    let noauth = Reply::Error("NOAUTH Authentication required.".into());
    for line in [
        "GET k",
        "SET k v",
        "KEYS *",
        "CONFIG GET *",
        "CLIENT LIST",
        "MONITOR",
        "FLUSHALL",
        "SHUTDOWN",
        "DEBUG SLEEP 1",
    ] {
        assert_eq!(client.words(line), noauth, "{line}");
    }
    client.ok(&["AUTH", "default", "s3cret"]);
    client.ok(&["SET", "k", &"v".repeat(20_000)]);
    // Out again, the small limits hold again.
    assert_eq!(client.run(&["RESET"]), Reply::Status("RESET".into()));
    assert_eq!(client.words("GET k"), noauth);
    client.try_send(b"*11\r\n");
    assert!(
        client
            .read()
            .error()
            .contains("unauthenticated multibulk length")
    );
    witness.finish();
    server.assert_grew_less(before, 32 * MIB);
}

#[test]
fn strangers_that_send_nothing_whole_cost_little() {
    let server = Server::start(&["--requirepass", "s3cret"]);
    let before = server.peak();
    let mut strangers: Vec<Client> = (0..500).map(|_| server.stranger()).collect();
    for stranger in &mut strangers {
        stranger.send(b"*10\r\n");
        for _ in 0..9 {
            stranger.send(&[b"$16384\r\n", &[b'x'; 16384][..], b"\r\n"].concat());
        }
    }
    server.ping();
    // 147 kB each have arrived.
    server.assert_grew_less(before, 500 * 400 * 1024);
}
