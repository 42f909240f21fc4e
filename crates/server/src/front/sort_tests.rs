//! SORT with patterns, whose keys are spread over workers.

use super::testing::{Client, Rig};
use rufous_base::rng::Rng;
use std::fmt::Write;

const WORKERS: [usize; 3] = [1, 2, 4];

/// An array of bulk strings; `-` is null.
fn bulks(values: &str) -> String {
    let mut all = format!("*{}\r\n", values.split(' ').count());
    for value in values.split(' ') {
        match value {
            "-" => all.push_str("$-1\r\n"),
            value => write!(all, "${}\r\n{value}\r\n", value.len()).expect("written"),
        }
    }
    all
}

fn with_weights(workers: usize) -> Rig {
    let mut rig = Rig::new(workers);
    rig.check("RPUSH k 1 2 3 4 5 6", ":6\r\n");
    rig.check("MSET w_1 6 w_2 5 w_3 4 w_4 3 w_5 2 w_6 1", "+OK\r\n");
    rig.check("MSET o_1 a o_2 b o_3 c o_4 d o_5 e", "+OK\r\n");
    for i in 1..=5 {
        rig.run(&format!("HSET h_{i} w {} name n{i}", i * i % 7));
    }
    rig
}

/// All replies to a transaction.
fn exec(rig: &mut Rig, client: Client, commands: &[&str]) -> String {
    rig.run_on(client, "MULTI");
    for command in commands {
        rig.check_on(client, command, "+QUEUED\r\n");
    }
    rig.run_on(client, "EXEC")
}

#[test]
fn other_keys_are_found_wherever_they_are() {
    for workers in WORKERS {
        let mut rig = with_weights(workers);
        for worker in 0..workers {
            let client = rig.connect(worker);
            let mut check = |request: &str, reply: &str| {
                rig.check_on(client, request, reply);
            };
            check("SORT k BY w_*", &bulks("6 5 4 3 2 1"));
            check("SORT_RO k BY w_* LIMIT 1 2", &bulks("5 4"));
            check("SORT k BY w_* GET # GET o_* LIMIT 0 2", &bulks("6 - 5 e"));
            check("SORT k GET w_* DESC", &bulks("1 2 3 4 5 6"));
            // The values are 1 4 2 2 4, and one is missing.
            check("SORT k BY h_*->w", &bulks("6 1 3 4 2 5"));
            check("SORT k BY nosort GET h_*->name", &bulks("n1 n2 n3 n4 n5 -"));
            check("SORT none BY w_* GET o_*", "*0\r\n");
            check("SORT k BY w_* GET o_* STORE d", ":6\r\n");
            check("LRANGE d 1 -1", &bulks("e d c b a"));
            check("SORT k BY w_* STORE w_3", ":6\r\n");
            check("SORT k BY w_* LIMIT 0 2", &bulks("3 6"));
            check("SET w_3 4", "+OK\r\n");
            check(
                "SORT d BY w_*",
                &bulks("\u{0} a b c d e").replace("$1\r\n\u{0}", "$0\r\n"),
            );
            check(
                "SORT o_1 BY w_*",
                "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
            );
            check("SORT k BY w_* UP", "-ERR syntax error\r\n");
        }
    }
}

#[test]
fn within_a_transaction_what_came_before_counts() {
    for workers in WORKERS {
        let mut rig = with_weights(workers);
        let client = rig.connect(workers - 1);
        let commands = [
            "SORT k BY w_*",
            "SET w_1 0",
            "DEL o_5",
            "SORT k BY w_* LIMIT 0 3 GET # GET o_*",
            "SORT k BY w_* STORE o_5",
            "DBSIZE",
            "SORT k BY nosort GET o_*",
        ];
        let expected = [
            &bulks("6 5 4 3 2 1"),
            "+OK\r\n:1\r\n",
            &bulks("1 a 6 - 5 -"),
            // k, 6 weights, 5 values of which one was stored, 5 hashes.
            ":6\r\n:17\r\n",
            &bulks("a b c d - -"),
        ];
        let expected = format!("*7\r\n{}", expected.concat());
        assert_eq!(exec(&mut rig, client, &commands), expected);
        rig.check("LRANGE o_5 0 -1", &bulks("1 6 5 4 3 2"));
        rig.check("GET w_1", &bulks("0")[4..]);
        rig.check("DBSIZE", ":17\r\n");
    }
}

#[test]
fn within_a_transaction_databases_may_be_swapped_and_emptied() {
    for workers in WORKERS {
        let mut rig = with_weights(workers);
        let client = rig.connect(0);
        let commands = [
            "SWAPDB 0 1",
            "RPUSH k 1 2",
            "SORT k BY w_* GET # GET o_*",
            "SELECT 1",
            "SORT k BY w_* GET o_* LIMIT 1 1",
            "SWAPDB 1 0",
            "SORT k BY w_* GET #",
            "FLUSHDB",
            "RPUSH k 2 1",
            "SET o_1 x",
            "SORT k BY w_* GET o_*",
        ];
        let expected = [
            "+OK\r\n:2\r\n",
            &bulks("1 - 2 -"),
            "+OK\r\n",
            &bulks("e"),
            "+OK\r\n",
            &bulks("1 2"),
            "+OK\r\n:2\r\n+OK\r\n",
            &bulks("x -"),
        ];
        let expected = format!("*11\r\n{}", expected.concat());
        assert_eq!(exec(&mut rig, client, &commands), expected);
        rig.check("DBSIZE", ":17\r\n");
        rig.check("SORT k BY w_*", &bulks("6 5 4 3 2 1"));
        rig.check_on(client, "DBSIZE", ":2\r\n");
    }
}

#[test]
fn a_source_that_always_grows_does_not_keep_it_waiting_forever() {
    let mut rig = with_weights(4);
    let (reader, writer) = (rig.connect(0), rig.connect(1));
    rig.send_only(reader, b"SORT k BY w_* GET o_*\r\n");
    let mut reply = String::new();
    for i in 10..400 {
        rig.send_only(writer, format!("RPUSH k {i}\r\n").as_bytes());
        rig.deliver_one();
        rig.deliver_one();
        reply += &rig.take(reader);
        if !reply.is_empty() {
            break;
        }
    }
    assert!(reply.starts_with('*'), "{reply}");
    rig.settle();
    rig.check(
        "SORT k BY w_* DESC LIMIT 0 6 GET o_*",
        &bulks("a b c d e -"),
    );
    for front in &rig.fronts {
        assert_eq!(front.kernel.waiting(), 0);
    }
}

/// Elements are added and removed together with their weights and values, while others sort: a
/// client that sees one without the other sees a state that never existed.
#[test]
fn an_element_is_never_seen_without_what_belongs_to_it() {
    for seed in 0..40 {
        let workers = WORKERS[1 + seed as usize % 2];
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(workers);
        for i in 0..3 {
            rig.run(&format!("RPUSH k {i}"));
            rig.run(&format!("MSET w_{i} {} o_{i} v", 100 - i));
        }
        let writers = [rig.connect(0), rig.connect(workers - 1)];
        let readers = [rig.connect(0), rig.connect(1)];
        let mut seen = [String::new(), String::new()];
        let (mut next, mut sorts) = (3, 0);
        for _ in 0..120 {
            match rng.below(8) {
                0 => {
                    let writer = writers[next % 2];
                    let (old, weight) = (next - 3, 100 - next as i64);
                    let request = format!(
                        "MULTI\r\nRPUSH k {next}\r\nMSET w_{next} {weight} o_{next} v\r\n\
                         LREM k 0 {old}\r\nDEL w_{old} o_{old}\r\nEXEC\r\n"
                    );
                    rig.send_only(writer, request.as_bytes());
                    next += 1;
                }
                1 if sorts < 20 => {
                    let request = match rng.below(3) {
                        0 => "MULTI\r\nPING\r\nSORT k BY w_* GET w_* GET o_*\r\nEXEC\r\n",
                        _ => "SORT k BY w_* GET w_* GET o_*\r\n",
                    };
                    rig.send_only(readers[sorts % 2], request.as_bytes());
                    sorts += 1;
                }
                _ => {
                    rig.deliver_any(&mut rng);
                }
            }
        }
        rig.settle();
        for (reader, seen) in readers.iter().zip(&mut seen) {
            *seen = rig.take(*reader);
            assert!(
                !seen.contains("$-1") && !seen.contains("-ERR"),
                "{seed}: {seen}"
            );
        }
        let answered: usize = seen.iter().map(|s| s.matches("$1\r\nv").count()).sum();
        assert!(sorts > 0 && answered >= sorts * 2, "{seed}: {seen:?}");
    }
}
