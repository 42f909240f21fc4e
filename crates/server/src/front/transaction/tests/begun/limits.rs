//! Limits of transactions begun with `BEGIN`, and that they leave nothing behind.

use super::super::{WORKERS, all};
use super::{LEVELS, assert_nothing_left, begin, node};
use crate::config::Config;
use crate::front::testing::Rig;

#[test]
fn who_takes_too_much_is_told_so_until_the_end() {
    let config = Config {
        client_query_buffer_limit: 1 << 20,
        ..Config::in_memory()
    };
    for workers in [1, 2] {
        for wrong in ["kept", "copied", "grown"] {
            let mut rig = Rig::with_config(workers, config.clone());
            let client = rig.connect(0);
            let large = "x".repeat(200_000);
            for key in 0..8 {
                rig.check(&format!("SET k{key} {large}"), "+OK\r\n");
            }
            begin(&mut rig, client, "item-cut");
            let mut last = String::new();
            for key in 0..8 {
                last = match wrong {
                    "kept" => rig.run_on(client, &format!("SET n {large}{key}")),
                    "copied" => rig.run_on(client, &format!("STRLEN k{key}")),
                    _ => rig.run_on(client, &format!("SETRANGE n {} x", key * 300_000)),
                };
            }
            assert!(
                last.starts_with("-ERR the transaction is larger than"),
                "{last}"
            );
            assert!(
                last.ends_with("the transaction is aborted, end it with ROLLBACK\r\n"),
                "{last}"
            );
            let line = rig.run_on(client, "CLIENT INFO");
            let memory = line.split("multi-mem=").nth(1).expect("its memory");
            let memory: usize = memory.split(' ').next().unwrap().parse().unwrap();
            assert!(memory < 10_000, "{line}");
            assert!(
                rig.run_on(client, "SET other 1")
                    .starts_with("-ERR the transaction")
            );
            let refused = rig.run_on(client, "COMMIT");
            assert!(
                refused.starts_with("-EXECABORT Transaction discarded"),
                "{refused}"
            );
            rig.check_on(client, "EXISTS n other", ":0\r\n");
            assert_nothing_left(&mut rig);
        }
    }
}

#[test]
fn another_table_of_keyspaces_ends_it() {
    for workers in WORKERS {
        for level in LEVELS {
            let mut rig = node(workers);
            let client = rig.connect(0);
            begin(&mut rig, client, level);
            rig.check_on(client, "GET n:a", "$-1\r\n");
            rig.check("KEYSPACE CREATE new PREFIX n: REGIME lattice", "+OK\r\n");
            let refused = rig.run_on(client, "SET n:a 1");
            assert!(
                refused.starts_with("-ERR the keyspaces were changed"),
                "{refused}"
            );
            rig.check_on(client, "ROLLBACK", "+OK\r\n");
            rig.check_on(client, "GET n:a", "$-1\r\n");
            assert_nothing_left(&mut rig);
        }
    }
}

/// A client disconnects between any two messages of its commands.
#[test]
fn a_client_that_goes_away_leaves_nothing() {
    for level in LEVELS {
        for after in 0..60 {
            let mut rig = node(3);
            let client = rig.connect(0);
            let requests = ["SET a 1", "SET o:b 1", "MSET b 1 c 1", "INCR l:x", "COMMIT"];
            let mut bytes = format!("BEGIN {level}\r\n").into_bytes();
            for request in requests {
                bytes.extend_from_slice(request.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
            rig.send_only(client, &bytes);
            for _ in 0..after {
                rig.deliver_one();
            }
            rig.close(client);
            rig.advance_ms(1_000);
            assert_nothing_left(&mut rig);
            let other = rig.connect(1);
            if level != "read-uncommitted" {
                let there = rig.run_on(other, "EXISTS a b c o:b l:x");
                assert!(
                    [":0\r\n", ":5\r\n"].contains(&there.as_str()),
                    "{after}: {there}"
                );
            }
            rig.check_on(other, "MSET a 2 b 2 c 2 o:b 2", "+OK\r\n");
        }
    }
}

#[test]
fn large_values_are_kept_and_committed() {
    for workers in WORKERS {
        let mut rig = node(workers);
        let large = vec![b'x'; 300_000];
        rig.run_words(&[b"BEGIN"]);
        for key in [&b"a"[..], b"b", b"l:a", b"o:a"] {
            assert_eq!(rig.run_words(&[b"SET", key, &large]), b"+OK\r\n");
            assert_eq!(rig.run_words(&[b"STRLEN", key]), b":300000\r\n");
        }
        rig.check("COMMIT", "*4\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
        for key in ["a", "b", "l:a", "o:a"] {
            rig.check(&format!("STRLEN {key}"), ":300000\r\n");
        }
        assert_nothing_left(&mut rig);
    }
}

#[test]
fn who_watches_the_node_sees_its_commands_once() {
    let mut rig = node(2);
    let (client, monitor) = (rig.connect(0), rig.connect(0));
    rig.check_on(monitor, "MONITOR", "+OK\r\n");
    all(
        &mut rig,
        client,
        &["BEGIN", "SET a 1", "SET b 2", "GET a", "COMMIT"],
    );
    let seen = rig.take(monitor);
    for shown in [
        "\"BEGIN\"",
        "\"SET\" \"a\"",
        "\"SET\" \"b\"",
        "\"GET\"",
        "\"COMMIT\"",
    ] {
        assert_eq!(seen.matches(shown).count(), 1, "{shown}: {seen}");
    }
    begin(&mut rig, client, "");
    rig.check_on(client, "SET a 1", "+OK\r\n");
    let line = rig.run_on(client, "CLIENT INFO");
    assert!(
        line.contains(" flags=x ") && line.contains(" multi=1 "),
        "{line}"
    );
}
