//! `BEGIN … COMMIT` as clients see it, on one worker and on several.

use super::{WORKERS, all, assert_unwatched};
use crate::front::testing::{Client, Rig};

mod keyspaces;
mod limits;
mod schedules;
mod serializable;

const LEVELS: [&str; 3] = ["READ-COMMITTED", "item-cut", "read-uncommitted"];

/// A node with keys of either regime: those that begin with `l:` have a
/// replica at every worker, those with `o:` at one.
fn node(workers: usize) -> Rig {
    let mut rig = Rig::new(workers);
    let create = "KEYSPACE CREATE all PREFIX l: REGIME lattice GOSSIP 5";
    rig.check(create, "+OK\r\n");
    let create = "KEYSPACE CREATE one PREFIX o: REGIME lattice THREADS 1 GOSSIP 5";
    rig.check(create, "+OK\r\n");
    rig
}

fn begin(rig: &mut Rig, client: Client, level: &str) {
    let request = format!("BEGIN {level}");
    rig.check_on(client, request.trim_end(), "+OK\r\n");
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn info(rig: &mut Rig, field: &str) -> u64 {
    let info = rig.run("INFO keyspaces");
    let mut lines = info.lines();
    let found = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    found.expect("a field").parse().expect("a number")
}

/// No hold, promise or copy is left.
fn assert_nothing_left(rig: &mut Rig) {
    assert_unwatched(rig);
    for front in &rig.fronts {
        assert_eq!(front.kernel.waiting(), 0);
        assert!(front.transactions.is_empty());
    }
    assert_eq!(info(rig, "transactions_open"), 0);
}

/// Every key that a test writes, of both regimes and of several workers.
const KEYS: [&str; 8] = ["a", "b", "c", "l:a", "l:b", "o:a", "o:b", "o:c"];

#[test]
fn nobody_sees_what_is_not_committed() {
    for workers in WORKERS {
        for level in &LEVELS[..2] {
            let mut rig = node(workers);
            let (client, others) = (rig.connect(0), [rig.connect(0), rig.connect(workers - 1)]);
            begin(&mut rig, client, level);
            for key in KEYS {
                rig.check_on(client, &format!("SET {key} 1"), "+OK\r\n");
                rig.check_on(client, &format!("INCR {key}"), ":2\r\n");
                rig.check_on(client, &format!("GET {key}"), &bulk("2"));
                rig.advance_ms(20);
                for other in others {
                    rig.check_on(other, &format!("GET {key}"), "$-1\r\n");
                }
            }
            let replies = format!(
                "*{}\r\n{}",
                2 * KEYS.len(),
                "+OK\r\n:2\r\n".repeat(KEYS.len())
            );
            rig.check_on(client, "COMMIT", &replies);
            rig.advance_ms(20);
            for other in others {
                for key in KEYS {
                    rig.check_on(other, &format!("GET {key}"), &bulk("2"));
                }
            }
            assert_nothing_left(&mut rig);
            assert_eq!(info(&mut rig, "transactions_committed"), 1);
        }
    }
}

#[test]
fn what_is_rolled_back_was_never_there() {
    for workers in WORKERS {
        for level in &LEVELS[..2] {
            for end in ["ROLLBACK", "RESET", ""] {
                let mut rig = node(workers);
                let client = rig.connect(0);
                begin(&mut rig, client, level);
                for key in KEYS {
                    rig.check_on(client, &format!("SADD {key} x"), ":1\r\n");
                    rig.check_on(client, &format!("SISMEMBER {key} x"), ":1\r\n");
                }
                assert_eq!(info(&mut rig, "transactions_open"), 1);
                match end {
                    "" => rig.close(client),
                    _ => assert!(rig.run_on(client, end).starts_with('+'), "{end}"),
                }
                rig.advance_ms(20);
                let other = rig.connect(workers - 1);
                rig.check_on(other, &format!("EXISTS {}", KEYS.join(" ")), ":0\r\n");
                assert_nothing_left(&mut rig);
                assert_eq!(info(&mut rig, "transactions_rolled_back"), 1);
                assert_eq!(info(&mut rig, "transactions_committed"), 0);
            }
        }
    }
}

/// Copies were told the time of the worker's stamps, which goes on with the writes of others: replicated keys expired amid a
/// transaction that had read them, or had written them itself.
#[test]
fn what_an_item_cut_has_read_or_written_does_not_expire_meanwhile() {
    let kinds = [
        ("SET", "1", "GET"),
        ("INCRBY", "1", "GET"),
        ("PFADD", "x", "PFCOUNT"),
        ("SADD", "x", "SMEMBERS"),
        ("HSET", "f 1", "HGETALL"),
        ("ZADD", "1 x", "ZRANGE"),
    ];
    for workers in WORKERS {
        for (write, what, read) in kinds {
            for key in KEYS {
                for is_own in [false, true] {
                    let mut rig = node(workers);
                    let (client, other) = (rig.connect(0), rig.connect(0));
                    let read = match read {
                        "ZRANGE" => format!("ZRANGE {key} 0 -1"),
                        _ => format!("{read} {key}"),
                    };
                    let writer = if is_own { client } else { other };
                    if is_own {
                        begin(&mut rig, client, "item-cut");
                    }
                    rig.run_on(writer, &format!("{write} {key} {what}"));
                    rig.check_on(writer, &format!("PEXPIRE {key} 50"), ":1\r\n");
                    if !is_own {
                        begin(&mut rig, client, "item-cut");
                    }
                    let first = rig.run_on(client, &read);
                    rig.advance_ms(1_000);
                    rig.check_on(other, "SET l:other 1", "+OK\r\n");
                    let why = format!("{read}, {workers} workers, own: {is_own}");
                    assert_eq!(rig.run_on(client, &read), first, "{why}");
                    rig.check_on(client, &format!("PTTL {key}"), ":50\r\n");
                    rig.check_on(client, "SAVEPOINT s", "+OK\r\n");
                    rig.check_on(client, &format!("PERSIST {key}"), ":1\r\n");
                    rig.check_on(client, "ROLLBACK TO s", "+OK\r\n");
                    assert_eq!(rig.run_on(client, &read), first, "{why}");
                    rig.check_on(client, "ROLLBACK", "+OK\r\n");
                    rig.check_on(client, &format!("EXISTS {key}"), ":0\r\n");
                    assert_nothing_left(&mut rig);
                    // Time goes on for the next transaction.
                    begin(&mut rig, client, "read-committed");
                    rig.check_on(client, &format!("SET {key} 1 PX 50"), "+OK\r\n");
                    rig.advance_ms(1_000);
                    rig.check_on(client, &format!("EXISTS {key}"), ":0\r\n");
                    rig.check_on(client, "ROLLBACK", "+OK\r\n");
                }
            }
        }
    }
}

#[test]
fn an_item_is_read_as_it_was_the_first_time_in_an_item_cut_alone() {
    for workers in WORKERS {
        for (level, again) in [("item-cut", "1"), ("read-committed", "2")] {
            for key in KEYS {
                let mut rig = node(workers);
                let (client, other) = (rig.connect(0), rig.connect(0));
                rig.check_on(other, &format!("SET {key} 1 EX 10"), "+OK\r\n");
                begin(&mut rig, client, level);
                rig.check_on(client, &format!("GET {key}"), &bulk("1"));
                rig.check_on(client, "GET absent", "$-1\r\n");
                rig.check_on(other, &format!("MSET {key} 2 absent 2"), "+OK\r\n");
                rig.advance_ms(20);
                rig.check_on(client, &format!("GET {key}"), &bulk(again));
                let both = rig.run_on(client, &format!("MGET absent {key}"));
                let absent = if again == "1" {
                    "$-1\r\n"
                } else {
                    "$1\r\n2\r\n"
                };
                assert_eq!(both, format!("*2\r\n{absent}{}", bulk(again)), "{level}");
                rig.advance_ms(20_000);
                rig.check_on(client, &format!("GET {key}"), &bulk(again));
                rig.check_on(client, "COMMIT", "*0\r\n");
                rig.check_on(client, &format!("GET {key}"), &bulk("2"));
                assert_nothing_left(&mut rig);
            }
        }
    }
}

#[test]
fn a_read_of_own_and_other_keys_has_the_others_as_they_are() {
    for workers in WORKERS {
        let mut rig = node(workers);
        let (client, other) = (rig.connect(0), rig.connect(workers - 1));
        begin(&mut rig, client, "");
        rig.check_on(client, "SET own 1", "+OK\r\n");
        for value in ["x", "y"] {
            rig.check_on(other, &format!("SET other {value}"), "+OK\r\n");
            let both = format!("*2\r\n$1\r\n1\r\n{}", bulk(value));
            rig.check_on(client, "MGET own other", &both);
        }
        rig.check_on(client, "ROLLBACK", "+OK\r\n");
        assert_nothing_left(&mut rig);
    }
}

/// By definition: read committed does not track what a write was based on.
#[test]
fn an_update_is_lost_where_two_read_before_either_writes() {
    let mut rig = node(2);
    let clients = [rig.connect(0), rig.connect(1)];
    for client in clients {
        begin(&mut rig, client, "");
        rig.check_on(client, "GET n", "$-1\r\n");
        rig.check_on(client, "SET n 1", "+OK\r\n");
    }
    for client in clients {
        rig.check_on(client, "COMMIT", "*1\r\n+OK\r\n");
    }
    rig.check("GET n", &bulk("1"));
    // A watch notices it.
    rig.check_on(clients[0], "WATCH n", "+OK\r\n");
    begin(&mut rig, clients[0], "");
    rig.check_on(clients[0], "SET n 2", "+OK\r\n");
    rig.check_on(clients[1], "SET n 7", "+OK\r\n");
    rig.check_on(clients[0], "COMMIT", "*-1\r\n");
    rig.check("GET n", &bulk("7"));
    assert_nothing_left(&mut rig);
}

#[test]
fn what_is_written_at_once_has_one_time_at_all_keys() {
    for workers in [1, 2, 3] {
        for first_at in 0..workers {
            let mut rig = node(workers);
            let (first, second) = (rig.connect(first_at), rig.connect(workers - 1));
            begin(&mut rig, first, "read-uncommitted");
            begin(&mut rig, second, "read-uncommitted");
            let keys: Vec<_> = ["l:a", "l:b", "o:a", "o:b", "o:c", "o:d"].to_vec();
            for (at, key) in keys.iter().enumerate() {
                // The two clients alternate in writing first.
                let order = if at % 2 == 0 {
                    [first, second]
                } else {
                    [second, first]
                };
                for client in order {
                    let value = if client == first { "1" } else { "2" };
                    rig.check_on(client, &format!("SET {key} {value}"), "+OK\r\n");
                    rig.advance_ms(30);
                }
            }
            // Others see it before the transaction ends.
            let other = rig.connect(0);
            for key in &keys {
                rig.check_on(other, &format!("GET {key}"), &bulk("2"));
            }
            rig.check_on(first, "COMMIT", "*0\r\n");
            let stay = rig.run_on(second, "ROLLBACK");
            assert!(stay.starts_with("-ERR the transaction is over, but its writes stay"));
            rig.advance_ms(30);
            for key in &keys {
                rig.check_on(first, &format!("GET {key}"), &bulk("2"));
            }
            assert_nothing_left(&mut rig);
        }
    }
}

#[test]
fn nothing_is_forgotten_while_a_transaction_may_write_before_it_and_that_ends() {
    for workers in [2, 3] {
        let mut rig = node(workers);
        let (client, other) = (rig.connect(0), rig.connect(workers - 1));
        begin(&mut rig, client, "read-uncommitted");
        for key in ["l:a", "o:a", "o:b", "o:c"] {
            rig.check_on(other, &format!("SADD {key} x"), ":1\r\n");
            rig.check_on(other, &format!("DEL {key}"), ":1\r\n");
            rig.check_on(other, &format!("SET {key}:s 2"), "+OK\r\n");
            rig.check_on(other, &format!("DEL {key}:s"), ":1\r\n");
        }
        rig.advance_ms(2_000);
        assert!(info(&mut rig, "replica_graves_bytes") > 0);
        for key in ["l:a:s", "o:a:s", "o:b:s", "o:c:s"] {
            rig.check_on(client, &format!("SET {key} 1"), "+OK\r\n");
        }
        rig.advance_ms(2_000);
        for key in ["l:a:s", "o:a:s", "o:b:s", "o:c:s"] {
            rig.check_on(other, &format!("GET {key}"), "$-1\r\n");
        }
        rig.advance_ms(60_000);
        let refused = rig.run_on(client, "SET l:a:s 1");
        assert!(refused.contains("ends after 60 seconds"), "{refused}");
        assert_eq!(info(&mut rig, "replica_graves_bytes"), 0);
        assert_eq!(info(&mut rig, "transactions_open"), 1);
        let over = rig.run_on(client, "COMMIT");
        assert!(over.contains("its writes stay"), "{over}");
        assert_nothing_left(&mut rig);
    }
}

#[test]
fn an_error_is_of_its_command_and_the_transaction_goes_on() {
    for workers in WORKERS {
        for level in &LEVELS[..2] {
            let mut rig = node(workers);
            let client = rig.connect(0);
            begin(&mut rig, client, level);
            rig.check_on(client, "SET a x", "+OK\r\n");
            for wrong in ["INCR a", "NOSUCH", "GET", "SETNX l:a 1", "LPUSH a 1"] {
                let refused = rig.run_on(client, wrong);
                assert!(refused.starts_with('-'), "{wrong}: {refused}");
            }
            for refused in [
                "MULTI", "BEGIN", "WATCH k", "UNWATCH", "EXEC", "DISCARD", "FLUSHALL", "FLUSHDB",
            ] {
                let reply = rig.run_on(client, refused);
                assert!(reply.starts_with("-ERR "), "{refused}: {reply}");
            }
            for refused in [
                "SWAPDB 0 1",
                "SHUTDOWN",
                "SAVE",
                "KEYSPACE DROP all",
                "COMMIT now",
            ] {
                let reply = rig.run_on(client, refused);
                assert!(reply.starts_with("-ERR "), "{refused}: {reply}");
            }
            rig.check_on(client, "SET b y", "+OK\r\n");
            rig.check_on(client, "COMMIT", "*2\r\n+OK\r\n+OK\r\n");
            rig.check_on(client, "COMMIT", "-ERR COMMIT without BEGIN\r\n");
            rig.check_on(client, "ROLLBACK", "-ERR ROLLBACK without BEGIN\r\n");
            rig.check_on(client, "MGET a b", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
            assert_nothing_left(&mut rig);
        }
    }
    let mut rig = node(2);
    for wrong in ["BEGIN eventual", "BEGIN causal", "BEGIN \"\"", "BEGIN a b"] {
        assert!(rig.run(wrong).starts_with("-ERR "), "{wrong}");
    }
    rig.check("MULTI", "+OK\r\n");
    rig.check("BEGIN", "-ERR BEGIN inside MULTI is not allowed\r\n");
    rig.check("COMMIT", "-ERR COMMIT without BEGIN\r\n");
    rig.check("SET a 1", "+QUEUED\r\n");
    rig.check("EXEC", "*1\r\n+OK\r\n");
    rig.check("WATCH a", "+OK\r\n");
    let refused = rig.run("BEGIN read-uncommitted");
    assert!(refused.contains("WATCH has no meaning"), "{refused}");
    rig.check("UNWATCH", "+OK\r\n");
    assert_nothing_left(&mut rig);
}

#[test]
fn commands_that_wait_find_that_nothing_comes() {
    for workers in WORKERS {
        for level in LEVELS {
            let mut rig = node(workers);
            let client = rig.connect(0);
            begin(&mut rig, client, level);
            rig.check_on(client, "BLPOP a b c 0", "*-1\r\n");
            rig.check_on(client, "RPUSH a x", ":1\r\n");
            rig.check_on(client, "BLPOP a b c 0", "*2\r\n$1\r\na\r\n$1\r\nx\r\n");
            assert!(rig.run_on(client, "COMMIT").starts_with('*'));
            rig.check("EXISTS a", ":0\r\n");
            assert_nothing_left(&mut rig);
        }
    }
}

#[test]
fn databases_are_those_in_which_commands_ran() {
    for workers in WORKERS {
        let mut rig = node(workers);
        let client = rig.connect(0);
        begin(&mut rig, client, "");
        let requests = ["SET a 0", "SELECT 3", "SET a 3", "SELECT 5", "GET a"];
        let replies = all(&mut rig, client, &requests);
        assert_eq!(replies, "+OK\r\n+OK\r\n+OK\r\n+OK\r\n$-1\r\n");
        rig.check_on(client, "COMMIT", "*2\r\n+OK\r\n+OK\r\n");
        rig.check_on(client, "EXISTS a", ":0\r\n");
        for db in ["0", "3"] {
            rig.check_on(client, &format!("SELECT {db}"), "+OK\r\n");
            rig.check_on(client, "GET a", &bulk(db));
        }
    }
}

#[test]
fn keys_that_a_command_does_not_name_are_not_read_past_the_copies() {
    for workers in WORKERS {
        let mut rig = node(workers);
        rig.check("MSET w_1 2 w_2 1", "+OK\r\n");
        rig.check("SADD s 1 2", ":2\r\n");
        let sort = "SORT_RO s BY w_*";
        rig.check("BEGIN", "+OK\r\n");
        rig.check(sort, "*2\r\n$1\r\n2\r\n$1\r\n1\r\n");
        rig.check("SET w_2 3", "+OK\r\n");
        assert!(rig.run(sort).starts_with("-ERR BY and GET"));
        assert!(
            rig.run("SORT s BY w_* STORE t")
                .starts_with("-ERR BY and GET")
        );
        rig.check("SORT_RO s", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
        rig.check("ROLLBACK", "+OK\r\n");
    }
}

#[test]
fn a_pipeline_is_answered_in_order() {
    for workers in WORKERS {
        for level in LEVELS {
            let mut rig = node(workers);
            let client = rig.connect(0);
            let level = format!("BEGIN {level}");
            let mut requests = vec!["SET z 1", level.as_str()];
            requests.extend(["INCR a", "GET z", "INCR b", "MGET a b c", "PING", "INCR c"]);
            requests.extend([
                "COMMIT",
                "MGET a b c",
                "BEGIN",
                "INCR a",
                "ROLLBACK",
                "GET a",
            ]);
            let replies = all(&mut rig, client, &requests);
            let at_once = level.ends_with("read-uncommitted");
            let committed = if at_once {
                "*0\r\n"
            } else {
                "*3\r\n:1\r\n:1\r\n:1\r\n"
            };
            let expected = format!(
                "+OK\r\n+OK\r\n:1\r\n$1\r\n1\r\n:1\r\n*3\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n\
                 +PONG\r\n:1\r\n{committed}*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n\
                 +OK\r\n:2\r\n+OK\r\n$1\r\n1\r\n"
            );
            assert_eq!(replies, expected, "{level}");
            assert_nothing_left(&mut rig);
        }
    }
}
