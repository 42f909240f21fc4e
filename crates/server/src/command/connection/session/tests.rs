//! Sessions that change their connection, on nodes of one to four workers.

use crate::front::testing::{Client, Rig};

const CREATE: &str = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice GOSSIP 500";

fn token(rig: &mut Rig, client: Client) -> String {
    let reply = rig.run_on(client, "SESSION TOKEN");
    assert!(reply.starts_with('$'), "{reply}");
    reply.split("\r\n").nth(1).expect("a token").to_owned()
}

/// Two connections, which belong to different workers where there are several.
fn two(rig: &mut Rig) -> (Client, Client) {
    let workers = rig.fronts.len();
    (rig.connect(0), rig.connect(workers - 1))
}

#[test]
fn another_connection_shows_what_a_session_has_written() {
    for (workers, threads) in [(1, "all"), (2, "all"), (4, "all"), (3, "2"), (4, "1")] {
        let mut rig = Rig::new(workers);
        rig.check(&format!("{CREATE} THREADS {threads}"), "+OK\r\n");
        let (a, b) = two(&mut rig);
        for n in 0..20 {
            rig.check_on(a, &format!("SET cart:{n} apple{n}"), "+OK\r\n");
        }
        let token = token(&mut rig, a);
        rig.send(
            b,
            format!("SESSION RESUME {token}\r\nGET cart:7\r\n").as_bytes(),
        );
        let waits = workers > 1 && threads != "1";
        if waits {
            assert_eq!(rig.take(b), "", "{workers} {threads}");
        }
        rig.advance_ms(600);
        assert_eq!(rig.take(b), "+OK\r\n$6\r\napple7\r\n");
        for n in 10..20 {
            rig.check_on(b, &format!("GET cart:{n}"), &format!("$7\r\napple{n}\r\n"));
        }
        // Nothing has happened since.
        rig.check_on(b, &format!("SESSION RESUME {token} TIMEOUT 0"), "+OK\r\n");
        let info = rig.run("INFO keyspaces");
        let waited = u64::from(waits);
        assert!(
            info.contains(&format!(
                "sessions_resumed:2\r\nsessions_waited:{waited}\r\nsessions_behind:0"
            )),
            "{info}"
        );
    }
}

/// What a session has read it has seen, too: of others, and of those that these had read.
#[test]
fn another_connection_shows_what_a_session_has_read() {
    let mut rig = Rig::new(3);
    rig.check(&CREATE.replace("500", "2000"), "+OK\r\n");
    let (a, b, c) = (rig.connect(0), rig.connect(1), rig.connect(2));
    rig.check_on(a, "SET cart:x 1", "+OK\r\n");
    let at_a = token(&mut rig, a);
    rig.check_on(b, "SET cart:y 1", "+OK\r\n");
    rig.send(
        b,
        format!("SESSION RESUME {at_a} TIMEOUT 5000\r\n").as_bytes(),
    );
    rig.advance_ms(3_000);
    assert_eq!(rig.take(b), "+OK\r\n");
    let at_b = token(&mut rig, b);
    rig.check_on(c, &format!("SESSION RESUME {at_b} TIMEOUT 0"), "+OK\r\n");
    for key in ["x", "y"] {
        rig.check_on(c, &format!("GET cart:{key}"), "$1\r\n1\r\n");
    }
    // What is written later waits for the next epoch.
    rig.check_on(b, "SET cart:y 2", "+OK\r\n");
    let later = token(&mut rig, b);
    let reply = rig.run_on(c, &format!("SESSION RESUME {at_a} {later} TIMEOUT 0"));
    assert!(
        reply.starts_with("-BEHIND after 0 ms, this node lacks changes of its other workers"),
        "{reply}"
    );
    rig.check_on(a, &format!("SESSION RESUME {at_a} TIMEOUT 0"), "+OK\r\n");
    assert!(rig.run("INFO keyspaces").contains("sessions_behind:1"));
}

#[test]
fn requests_behind_it_wait_and_those_before_it_count() {
    let mut rig = Rig::new(2);
    rig.check(CREATE, "+OK\r\n");
    let (a, b) = two(&mut rig);
    // The strict key is another worker's: its reply is late.
    rig.send_only(
        a,
        b"SET k 1\r\nSET j 1\r\nSET cart:1 apple\r\nSESSION TOKEN\r\nPING\r\n",
    );
    rig.settle();
    let reply = rig.take(a);
    let words: Vec<&str> = reply.split("\r\n").collect();
    assert_eq!(
        (words[0], words[1], words[2], words[5]),
        ("+OK", "+OK", "+OK", "+PONG"),
        "{reply}"
    );
    let token = words[4];
    let reply = rig.run_on(b, &format!("SESSION RESUME {token} TIMEOUT 0"));
    assert!(reply.starts_with("-BEHIND"), "{reply}");
    // A client that goes away while it waits leaves nothing.
    rig.send(b, format!("SESSION RESUME {token}\r\n").as_bytes());
    rig.close(b);
    rig.advance_ms(1_500);
    rig.stop();
    assert!(!rig.node_effects.is_empty());
}

#[test]
fn a_node_that_stops_does_not_wait() {
    let mut rig = Rig::new(2);
    rig.check(&CREATE.replace("500", "60000"), "+OK\r\n");
    let (a, b) = two(&mut rig);
    rig.check_on(a, "SET cart:1 apple", "+OK\r\n");
    let token = token(&mut rig, a);
    rig.send(
        b,
        format!("SESSION RESUME {token} TIMEOUT 60000\r\n").as_bytes(),
    );
    assert_eq!(rig.take(b), "");
    rig.advance_ms(250);
    rig.stop();
    let reply = rig.take(b);
    // It told the time-out, which was not over.
    let expected = "-BEHIND after 250 ms, this node lacks changes of its other workers. It stops: try at another node\r\n";
    assert_eq!(reply, expected);
}

#[test]
fn what_is_no_token_is_refused() {
    for workers in [1, 2] {
        let mut rig = Rig::new(workers);
        let nothing = token_of(&mut rig);
        rig.check(&format!("SESSION RESUME {nothing}"), "+OK\r\n");
        for (request, reply) in [
            (
                "SESSION RESUME abc",
                "-ERR the token is not one of this cluster",
            ),
            ("SESSION RESUME", "-ERR wrong number of arguments"),
            ("SESSION RESUME TIMEOUT 5", "-ERR syntax error"),
            ("SESSION TOKEN x", "-ERR syntax error"),
            ("SESSION TOKEN TIMEOUT x", "-ERR value is"),
            ("SESSION", "-ERR wrong number of arguments"),
            (
                "SESSION TOKEN TIMEOUT 60001",
                "-ERR the timeout is at most 60000",
            ),
        ] {
            let got = rig.run(request);
            assert!(got.starts_with(reply), "{request}: {got}");
        }
        rig.check("MULTI", "+OK\r\n");
        assert!(rig.run("SESSION TOKEN").starts_with("-ERR"));
        rig.run("DISCARD");
    }
}

fn token_of(rig: &mut Rig) -> String {
    let client = rig.connect(0);
    token(rig, client)
}
