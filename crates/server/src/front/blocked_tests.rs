//! Clients that wait for lists, on nodes with one worker and with several.

use super::testing::{Client, Rig};

/// A rig, and two clients: one at the first worker and one at the last.
fn rig(workers: usize) -> (Rig, Client, Client) {
    let mut rig = Rig::new(workers);
    let (a, b) = (rig.connect(0), rig.connect(workers - 1));
    (rig, a, b)
}

fn element(key: &str, element: &str) -> String {
    format!(
        "*2\r\n${}\r\n{key}\r\n${}\r\n{element}\r\n",
        key.len(),
        element.len()
    )
}

#[test]
fn who_finds_something_does_not_wait() {
    for workers in [1, 3] {
        let (mut rig, a, _) = rig(workers);
        rig.check("RPUSH k 1 2 3 4", ":4\r\n");
        rig.check_on(a, "BLPOP none k 0", &element("k", "1"));
        rig.check_on(a, "BRPOP k 0", &element("k", "4"));
        rig.check_on(a, "BLMOVE k other LEFT RIGHT 0", "$1\r\n2\r\n");
        rig.check_on(a, "BRPOPLPUSH k other 0", "$1\r\n3\r\n");
        rig.check_on(
            a,
            "BLMPOP 0 2 none other RIGHT COUNT 5",
            "*2\r\n$5\r\nother\r\n*2\r\n$1\r\n2\r\n$1\r\n3\r\n",
        );
        rig.check("EXISTS k other", ":0\r\n");
    }
}

#[test]
fn who_waits_comes_before_what_follows_the_push() {
    for workers in [1, 3] {
        for key in ["k", "x", "y", "z"] {
            let (mut rig, a, b) = rig(workers);
            rig.check_on(a, &format!("BLPOP {key} 0"), "");
            rig.check_on(b, &format!("BLPOP {key} 0"), "");
            let pipeline = format!("RPUSH {key} 1 2 3\r\nLRANGE {key} 0 -1\r\n");
            let other = rig.connect(0);
            rig.send(other, pipeline.as_bytes());
            assert_eq!(rig.take(other), ":3\r\n*1\r\n$1\r\n3\r\n");
            assert_eq!(rig.take(a), element(key, "1"));
            assert_eq!(rig.take(b), element(key, "2"));
        }
    }
}

#[test]
fn a_transaction_counts_as_one_command() {
    for workers in [1, 3] {
        let (mut rig, a, b) = rig(workers);
        rig.check_on(a, "BLPOP k other 0", "");
        rig.send(b, b"MULTI\r\nRPUSH k 1\r\nDEL k\r\nSET k v\r\nEXEC\r\n");
        rig.take(b);
        assert_eq!(rig.take(a), "", "nothing was left, and then another type");
        rig.send(b, b"MULTI\r\nDEL k\r\nRPUSH k 1\r\nRPUSH other 2\r\nLRANGE k 0 -1\r\nBLPOP none 0\r\nEXEC\r\n");
        assert!(
            rig.take(b)
                .ends_with("*5\r\n:1\r\n:1\r\n:1\r\n*1\r\n$1\r\n1\r\n*-1\r\n")
        );
        let reply = rig.take(a);
        let (k, other) = (element("k", "1"), element("other", "2"));
        assert!(reply == k || (workers > 1 && reply == other), "{reply}");
    }
}

#[test]
fn other_commands_bring_data_too() {
    for workers in [1, 3] {
        for bring in ["RENAME from k", "COPY from k", "MOVE k 0", "SWAPDB 0 1"] {
            let (mut rig, a, b) = rig(workers);
            rig.check_on(a, "BLPOP k 0", "");
            match bring {
                "MOVE k 0" | "SWAPDB 0 1" => {
                    rig.check_on(b, "SELECT 1", "+OK\r\n");
                    rig.check_on(b, "RPUSH k 1", ":1\r\n");
                }
                _ => rig.check_on(b, "RPUSH from 1", ":1\r\n"),
            }
            assert_eq!(rig.take(a), "");
            rig.run_on(b, bring);
            assert_eq!(rig.take(a), element("k", "1"), "{bring}, {workers} workers");
        }
    }
}

#[test]
fn a_chain_of_moves() {
    for workers in [1, 2, 4] {
        let (mut rig, a, b) = rig(workers);
        let c = rig.connect(0);
        rig.check_on(a, "BLMOVE k1 k2 LEFT RIGHT 0", "");
        rig.check_on(b, "BLMOVE k2 k3 LEFT RIGHT 0", "");
        rig.check_on(c, "BLPOP k3 0", "");
        rig.check("RPUSH k1 v", ":1\r\n");
        assert_eq!(rig.take(a), "$1\r\nv\r\n");
        assert_eq!(rig.take(b), "$1\r\nv\r\n");
        assert_eq!(rig.take(c), element("k3", "v"));
        rig.check("EXISTS k1 k2 k3", ":0\r\n");
    }
}

#[test]
fn a_destination_of_another_type_is_found_when_it_matters() {
    for workers in [1, 3] {
        let (mut rig, a, _) = rig(workers);
        rig.check_on(a, "BLMOVE k other LEFT RIGHT 0", "");
        rig.check("SET other v", "+OK\r\n");
        rig.check("RPUSH k 1", ":1\r\n");
        assert!(rig.take(a).starts_with("-WRONGTYPE "));
        rig.check("LRANGE k 0 -1", "*1\r\n$1\r\n1\r\n");
    }
}

#[test]
fn waits_end_in_time_and_not_before() {
    for workers in [1, 3] {
        let (mut rig, a, b) = rig(workers);
        rig.check_on(a, "BLPOP k 0.1", "");
        rig.check_on(b, "BLPOP k other 0.05", "");
        rig.advance_ms(49);
        assert_eq!(rig.take(b), "");
        rig.advance_ms(2);
        assert_eq!(rig.take(b), "*-1\r\n");
        rig.advance_ms(48);
        assert_eq!(rig.take(a), "");
        rig.advance_ms(2);
        assert_eq!(rig.take(a), "*-1\r\n");
        rig.check("RPUSH k 1", ":1\r\n");
        rig.check("LRANGE k 0 -1", "*1\r\n$1\r\n1\r\n");
        assert_eq!(rig.take(a) + &rig.take(b), "");
    }
}

#[test]
fn later_requests_of_a_client_wait_with_it() {
    for workers in [1, 3] {
        let (mut rig, a, _) = rig(workers);
        rig.send(a, b"PING\r\nBLPOP k 0\r\nECHO x\r\nBLPOP other 0\r\n");
        rig.send(a, b"ECHO y\r\n");
        assert_eq!(rig.take(a), "+PONG\r\n");
        rig.check("RPUSH k 1", ":1\r\n");
        assert_eq!(rig.take(a), element("k", "1") + "$1\r\nx\r\n");
        rig.check("RPUSH other 2", ":1\r\n");
        assert_eq!(rig.take(a), element("other", "2") + "$1\r\ny\r\n");
    }
}

#[test]
fn who_waits_and_sends_much_is_not_read_any_more() {
    let (mut rig, a, _) = rig(3);
    rig.send(a, b"BLPOP k 0\r\n");
    let echo = format!("ECHO {}\r\n", "x".repeat(1_000));
    (0..200).for_each(|_| rig.send(a, echo.as_bytes()));
    let held: usize = rig
        .fronts
        .iter()
        .flat_map(|f| f.connections())
        .map(|c| c.held.len())
        .sum();
    assert!(held < 80_000, "{held}");
    rig.check("RPUSH k 1", ":1\r\n");
    assert_eq!(rig.take(a).matches("$1000").count(), 200);
}

#[test]
fn clients_are_unblocked() {
    for workers in [1, 3] {
        let (mut rig, a, b) = rig(workers);
        let id = |text: String| text.trim_matches([':', '\r', '\n']).to_owned();
        let (id_a, id_b) = (
            id(rig.run_on(a, "CLIENT ID")),
            id(rig.run_on(b, "CLIENT ID")),
        );
        rig.check_on(a, "BLPOP k 0", "");
        rig.check_on(b, "BLPOP k other 0", "");
        rig.check(&format!("CLIENT UNBLOCK {id_a}"), ":1\r\n");
        rig.check(&format!("CLIENT UNBLOCK {id_a}"), ":0\r\n");
        rig.check(&format!("CLIENT UNBLOCK {id_b} ERROR"), ":1\r\n");
        assert_eq!(rig.take(a), "*-1\r\n");
        assert_eq!(
            rig.take(b),
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
        );
        rig.check("RPUSH k 1", ":1\r\n");
        rig.check("RPUSH other 1", ":1\r\n");
        rig.check("LRANGE k 0 -1", "*1\r\n$1\r\n1\r\n");
        rig.check_on(a, "PING", "+PONG\r\n");
        rig.check("CLIENT UNBLOCK 0", ":0\r\n");
        rig.check("CLIENT UNBLOCK 99", ":0\r\n");
    }
}

#[test]
fn who_left_takes_nothing_and_is_not_counted() {
    for workers in [1, 3] {
        let (mut rig, a, b) = rig(workers);
        rig.check_on(a, "BLPOP k other 0", "");
        rig.check_on(b, "BLPOP k 0", "");
        let info = rig.run("INFO clients");
        assert!(info.contains("\r\nblocked_clients:2\r\n"), "{info}");
        assert!(info.contains("\r\ntotal_blocking_keys:2\r\n"), "{info}");
        assert_eq!(rig.run("CLIENT LIST").matches(" flags=b ").count(), 2);
        rig.close(a);
        rig.check(&format!("CLIENT KILL {}", rig.peer(b)), "+OK\r\n");
        let info = rig.run("INFO clients");
        assert!(info.contains("\r\nblocked_clients:0\r\n"), "{info}");
        assert!(info.contains("\r\ntotal_blocking_keys:0\r\n"), "{info}");
        rig.check("RPUSH k 1", ":1\r\n");
        rig.check("LRANGE k 0 -1", "*1\r\n$1\r\n1\r\n");
    }
}

#[test]
fn a_flush_leaves_them_waiting() {
    for workers in [1, 3] {
        let (mut rig, a, _) = rig(workers);
        rig.check_on(a, "BLPOP k 0", "");
        rig.check("RPUSH other 1", ":1\r\n");
        rig.check("FLUSHALL", "+OK\r\n");
        assert_eq!(rig.take(a), "");
        rig.check("RPUSH k 1", ":1\r\n");
        assert_eq!(rig.take(a), element("k", "1"));
    }
}

#[test]
fn waits_are_counted_as_calls_once() {
    let (mut rig, a, b) = rig(2);
    rig.check_on(a, "BLPOP k 0", "");
    rig.check_on(b, "BLPOP none k 0.01", "");
    rig.advance_ms(20);
    rig.check("RPUSH k 1", ":1\r\n");
    let stats = rig.run("INFO commandstats");
    assert!(stats.contains("cmdstat_blpop:calls=2,"), "{stats}");
}

#[test]
fn who_waits_touches_no_watched_key_before_it_is_served() {
    for workers in [1, 2, 3] {
        let keys = ["w{t}", "x{t}", "x", "y", "z", "a", "b"];
        let pairs = keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b)));
        for (from, to) in pairs {
            let (mut rig, waiting, watching) = rig(workers);
            rig.check("SET some value", "+OK\r\n");
            rig.check_on(waiting, &format!("BRPOPLPUSH {from} {to} 0"), "");
            rig.check_on(watching, &format!("WATCH {from} {to}"), "+OK\r\n");
            // Holding the keys of several workers to read them changes nothing.
            rig.check(&format!("SINTERCARD 3 {from} {to} none"), ":0\r\n");
            rig.check_on(watching, "MULTI", "+OK\r\n");
            rig.check_on(watching, "GET some", "+QUEUED\r\n");
            rig.check_on(watching, "EXEC", "*1\r\n$5\r\nvalue\r\n");

            rig.check_on(watching, &format!("WATCH {to}"), "+OK\r\n");
            rig.check_on(watching, "MULTI", "+OK\r\n");
            rig.check_on(watching, "GET some", "+QUEUED\r\n");
            rig.check(&format!("RPUSH {from} element"), ":1\r\n");
            assert_eq!(rig.take(waiting), "$7\r\nelement\r\n");
            rig.check_on(watching, "EXEC", "*-1\r\n");
        }
    }
}
