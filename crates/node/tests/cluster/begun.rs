//! Transactions that `BEGIN` has begun, on keys of several nodes.

use crate::apart::{Client, are_forgotten, bulk, ok};
use crate::node::{Node, number};
use crate::plain::{spread, text};
use crate::several::start;
use rufous_resp::reply::Reply;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

fn int(n: i64) -> Reply {
    Reply::Integer(n)
}

fn begin(node: &mut Node, level: &str) {
    assert_eq!(node.call(&["BEGIN", level]), ok());
}

#[test]
fn what_is_begun_has_keys_of_all_nodes() {
    for mut nodes in [spread(&[2, 1, 1]), start()] {
        for (n, level) in ["serializable", "item-cut", "read-committed"]
            .repeat(6)
            .iter()
            .enumerate()
        {
            let key = |name: &str| format!("{name}:{n}");
            let (a, b, c, d) = (key("a"), key("b"), key("c"), key("d"));
            let at = n % nodes.len();
            let other = (at + 1) % nodes.len();
            assert_eq!(nodes[other].call(&["MSET", &a, "1", &b, "2"]), ok());
            nodes[other].call(&["PEXPIRE", &b, "100000"]);
            begin(&mut nodes[at], level);
            assert_eq!(nodes[at].call(&["INCR", &a]), int(2));
            assert_eq!(nodes[at].call(&["GET", &b]), bulk("2"));
            assert_eq!(nodes[at].call(&["RPUSH", &c, "x", "y"]), int(2));
            assert_eq!(nodes[at].call(&["SAVEPOINT", "point"]), ok());
            assert_eq!(nodes[at].call(&["DEL", &a, &c]), int(2));
            assert_eq!(nodes[at].call(&["SET", &d, "1"]), ok());
            assert_eq!(nodes[at].call(&["ROLLBACK", "TO", "point"]), ok());
            assert_eq!(nodes[at].call(&["RENAME", &c, &d]), ok());
            let read = nodes[at].call(&["MGET", &a, &b]);
            assert_eq!(read, Reply::Array(vec![bulk("2"), bulk("2")]));
            assert_eq!(nodes[at].call(&["LLEN", &d]), int(2));
            assert_eq!(nodes[at].call(&["EXISTS", &c]), int(0));
            let wrong = text(nodes[at].call(&["INCR", &d]));
            assert!(wrong.starts_with("WRONGTYPE"), "{wrong}");
            // Others see nothing of it.
            let read = nodes[other].call(&["MGET", &a, &b, &d]);
            assert_eq!(read, Reply::Array(vec![bulk("1"), bulk("2"), Reply::Null]));
            let done = nodes[at].call(&["COMMIT"]);
            assert_eq!(done, Reply::Array(vec![int(2), int(2), ok()]), "{level}");
            assert_eq!(nodes[other].call(&["GET", &a]), bulk("2"));
            assert_eq!(nodes[other].call(&["LLEN", &d]), int(2));
            // What was only read keeps its deadline.
            let Reply::Integer(left) = nodes[other].call(&["PTTL", &b]) else {
                panic!("no time");
            };
            assert!((1..=100_000).contains(&left), "{left}");
        }
        are_forgotten(&mut nodes);
    }
}

#[test]
fn what_another_client_changes_at_any_node_keeps_it_from_being_committed() {
    let mut nodes = spread(&[2, 1, 2]);
    for n in 0..60 {
        let (read, written) = (format!("read:{n}"), format!("written:{n}"));
        let (at, other) = (n % 3, (n / 3) % 3);
        begin(&mut nodes[at], "serializable");
        assert_eq!(nodes[at].call(&["GET", &read]), Reply::Null);
        assert_eq!(nodes[at].call(&["SET", &written, "1"]), ok());
        let (changes, own) = (n % 2 == 0, at == other);
        if own {
            // From another connection of this node.
            let key = if changes { &read } else { "else" };
            let set = Client::of(&nodes[at]).call(&[words(&["SET", key, "2"])]);
            assert_eq!(set, ok());
        } else if changes {
            assert_eq!(nodes[other].call(&["SET", &read, "2"]), ok());
        }
        // As of its first reading.
        assert_eq!(nodes[at].call(&["GET", &read]), Reply::Null);
        let done = nodes[at].call(&["COMMIT"]);
        let expected = match changes {
            true => Reply::NullArray,
            false => Reply::Array(vec![ok()]),
        };
        assert_eq!(done, expected, "{n}");
        let exists = nodes[other].call(&["EXISTS", &written]);
        assert_eq!(exists, int(i64::from(!changes)));
    }
    are_forgotten(&mut nodes);
}

#[test]
fn what_ends_without_commit_leaves_nothing() {
    let mut nodes = start();
    for n in 0..30 {
        let keys: Vec<String> = (0..4).map(|k| format!("k{k}:{n}")).collect();
        let mut client = Client::of(&nodes[n % 2]);
        let set = |key: &String| words(&["INCR", key]);
        let mut all = vec![words(&["BEGIN", "SERIALIZABLE"])];
        all.extend(keys.iter().map(set));
        // In one pipeline.
        assert_eq!(client.call(&all), int(1));
        match n % 3 {
            0 => drop(client),
            1 => assert_eq!(client.call(&[words(&["ROLLBACK"])]), ok()),
            _ => assert_eq!(text(client.call(&[words(&["RESET"])])), "RESET"),
        }
        for key in &keys {
            assert_eq!(nodes[0].call(&["EXISTS", key]), int(0));
        }
    }
    are_forgotten(&mut nodes);
    for node in &mut nodes {
        node.until("no client has a transaction", |info| {
            number(info, "cluster_transactions_waiting") == 0
        });
        let info = text(node.call(&["INFO", "keyspaces"]));
        assert!(info.contains("transactions_open:0\r"), "{info}");
    }
}

/// Clients go with their `COMMIT` under way; another one asks for its outcome at another node, which is what has happened.
#[test]
fn the_outcome_of_a_token_is_what_has_happened() {
    let mut nodes = spread(&[2, 1, 1]);
    let mut ended = [0, 0];
    for n in 0..120_u64 {
        let token = format!("token:{n}");
        let (at, other) = (n as usize % 3, (n as usize + 1) % 3);
        let commit = words(&["COMMIT", "TOKEN", &token]);
        let all = [
            words(&["BEGIN"]),
            words(&["INCR", "sum:a"]),
            words(&["INCR", "sum:b"]),
            words(&["SET", &format!("of:{n}"), "1"]),
            commit,
        ];
        let mut client = Client::of(&nodes[at]);
        assert_eq!(client.call(&all[..4]), ok());
        client.leave(&all[4..]);
        std::thread::sleep(Duration::from_millis(n % 12));
        let outcome = text(nodes[other].call(&["OUTCOME", &token]));
        let is_committed = outcome == "COMMITTED";
        assert!(is_committed || outcome == "ABORTED", "{outcome}");
        ended[usize::from(is_committed)] += 1;
        assert_eq!(text(nodes[at].call(&["OUTCOME", &token])), outcome);
        // Sent again, all of it changes nothing.
        let again = text(Client::of(&nodes[other]).call(&all));
        let used = format!("TOKENUSED A transaction with this token is {outcome}:");
        assert!(again.contains(&used), "{again}");
        let exists = nodes[other].call(&["EXISTS", &format!("of:{n}")]);
        assert_eq!(exists, int(i64::from(is_committed)), "{n}");
    }
    let sums = nodes[0].call(&["MGET", "sum:a", "sum:b"]);
    let committed = ended[1].to_string();
    assert_eq!(sums, Reply::Array(vec![bulk(&committed), bulk(&committed)]));
    assert!(ended[1] > 0, "none was committed");
    are_forgotten(&mut nodes);
}

/// Values travel to the node of the client: those that are too long do not, and all else goes on.
#[test]
fn long_values_are_refused_by_name() {
    let mut nodes = spread(&[1, 1]);
    let long = "v".repeat(3_000_000);
    for key in ["l:1", "l:2", "l:3", "l:4"] {
        assert_eq!(nodes[0].call(&["SET", key, &long]), ok());
    }
    for node in &mut nodes {
        begin(node, "serializable");
        assert_eq!(node.call(&["STRLEN", "l:1"]), int(3_000_000));
        let refused = text(node.call(&["MGET", "l:1", "l:2", "l:3", "l:4"]));
        assert!(
            refused.starts_with("ERR values of keys of other nodes"),
            "{refused}"
        );
        assert_eq!(node.call(&["INCR", "n"]), int(1));
        assert_eq!(node.call(&["COMMIT"]), Reply::Array(vec![int(1)]));
        assert_eq!(node.call(&["DEL", "n"]), int(1));
    }
    are_forgotten(&mut nodes);
}

const ACCOUNTS: usize = 8;

fn account(n: usize) -> String {
    format!("account:{}", n % ACCOUNTS)
}

/// Reads balances, computes, and writes: with a level below, money is lost and made.
fn transfer(client: &mut Client, n: usize) -> bool {
    let (from, to) = (account(n), account(n / 3 + 1));
    if from == to {
        return true;
    }
    client.call(&[words(&["BEGIN", "SERIALIZABLE"])]);
    let mut read = |key: &str| -> i64 {
        let value = text(client.call(&[words(&["GET", key])]));
        value.parse().expect("a balance")
    };
    let (a, b) = (read(&from) - 3, read(&to) + 3);
    let set = |key: &str, value: i64| words(&["SET", key, &value.to_string()]);
    let done = client.call(&[set(&from, a), set(&to, b), words(&["COMMIT"])]);
    assert!(
        matches!(done, Reply::Array(_) | Reply::NullArray),
        "{done:?}"
    );
    done != Reply::NullArray
}

#[test]
fn balances_that_are_read_and_written_add_up() {
    for mut nodes in [spread(&[2, 1, 2]), start()] {
        for n in 0..ACCOUNTS {
            assert_eq!(nodes[0].call(&["SET", &account(n), "100"]), ok());
        }
        let (ends, committed, audits) =
            (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for (number, node) in nodes.iter().enumerate() {
                let (ends, committed, audits) = (&ends, &committed, &audits);
                let (mut payer, mut reader) = (Client::of(node), Client::of(node));
                scope.spawn(move || {
                    let mut n = number * 7;
                    while !ends.load(Ordering::Relaxed) {
                        n += 5;
                        committed.fetch_add(u64::from(transfer(&mut payer, n)), Ordering::Relaxed);
                    }
                });
                scope.spawn(move || {
                    while !ends.load(Ordering::Relaxed) {
                        reader.call(&[words(&["BEGIN", "SERIALIZABLE"])]);
                        let each = (0..ACCOUNTS).map(|n| {
                            let value = reader.call(&[words(&["GET", &account(n)])]);
                            text(value).parse::<i64>().expect("a balance")
                        });
                        let sum: i64 = each.sum();
                        if reader.call(&[words(&["COMMIT"])]) != Reply::NullArray {
                            assert_eq!(sum, 100 * ACCOUNTS as i64);
                            audits.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_secs(3));
            ends.store(true, Ordering::Relaxed);
        });
        let done = [committed, audits].map(AtomicU64::into_inner);
        assert!(done[0] > 0, "{done:?}");
        let mut sum = 0;
        for n in 0..ACCOUNTS {
            sum += text(nodes[0].call(&["GET", &account(n)]))
                .parse::<i64>()
                .expect("a balance");
        }
        assert_eq!(sum, 100 * ACCOUNTS as i64);
        are_forgotten(&mut nodes);
    }
}

/// What is executed together at one slot changes at most 4 MiB at others: otherwise nothing is done, and the reply says so.
#[test]
fn changes_that_are_too_much_are_one_error() {
    let mut nodes = spread(&[1, 1]);
    let long = "v".repeat(3_000_000);
    assert_eq!(nodes[0].call(&["SET", "big", &long]), ok());
    for node in &mut nodes {
        for begin in ["MULTI", "BEGIN"] {
            node.call(&[begin]);
            // Some of the copies are at slots before the last.
            for to in ["a", "b", "c", "d"] {
                node.call(&["COPY", "big", to]);
            }
            node.call(&["SET", "small", "1"]);
            let end = if begin == "MULTI" { "EXEC" } else { "COMMIT" };
            let refused = text(node.call(&[end]));
            assert!(refused.starts_with("EXECABORT "), "{refused:.200}");
            assert!(refused.ends_with("nothing was done"), "{refused:.200}");
            let none = node.call(&["EXISTS", "a", "b", "c", "d", "small"]);
            assert_eq!(none, int(0));
        }
    }
    are_forgotten(&mut nodes);
}

/// A transaction of which every command was refused has nothing to commit.
#[test]
fn what_was_refused_is_no_part_of_it() {
    let mut nodes = spread(&[1, 2]);
    let keys: Vec<String> = (0..300).map(|n| format!("k{n}")).collect();
    let mut all = vec!["MGET"];
    all.extend(keys.iter().map(String::as_str));
    for node in &mut nodes {
        begin(node, "serializable");
        let refused = text(node.call(&all));
        assert!(refused.contains("more than 256 slots"), "{refused}");
        assert!(text(node.call(&["UNWATCH"])).starts_with("ERR UNWATCH inside BEGIN"));
        assert_eq!(node.call(&["COMMIT"]), Reply::Array(Vec::new()));
    }
}

/// What nodes have sent to one another.
fn sent(nodes: &mut [Node]) -> u64 {
    let each = nodes.iter_mut().map(|node| {
        let info = text(node.call(&["INFO", "cluster"]));
        let mut lines = info.lines();
        let found = lines.find_map(|line| line.strip_prefix("cluster_messages_sent:"));
        found.expect("a field").parse::<u64>().expect("a number")
    });
    each.sum()
}

/// Clients that end together cost nodes some messages each, not some for each key.
#[test]
fn watches_of_many_keys_end_with_few_messages() {
    const CLIENTS: usize = 60;
    const KEYS: usize = 50;
    let mut nodes = start();
    let keys: Vec<String> = (0..KEYS).map(|n| format!("k{n}")).collect();
    let mut read = vec!["MGET".to_owned()];
    read.extend(keys.iter().cloned());
    let clients: Vec<Client> = (0..CLIENTS)
        .map(|n| {
            let mut client = Client::of(&nodes[n % 2]);
            let all = client.call(&[words(&["BEGIN", "SERIALIZABLE"]), read.clone()]);
            assert!(matches!(all, Reply::Array(_)), "{all:?}");
            client
        })
        .collect();
    are_forgotten(&mut nodes);
    let before = sent(&mut nodes);
    drop(clients);
    for key in &keys {
        assert_eq!(nodes[0].call(&["SET", key, "1"]), ok());
    }
    are_forgotten(&mut nodes);
    let messages = sent(&mut nodes) - before;
    println!("{messages} messages");
    assert!(messages < (CLIENTS * KEYS) as u64, "{messages} messages");
}

/// A watch from before `BEGIN` is not replaced by the one of a later read, though the slot has moved meanwhile.
#[test]
fn a_watch_that_was_lost_before_begin_stays_lost() {
    for drains in [0, 1] {
        let mut nodes = spread(&[1, 1, 1]);
        let keys: Vec<String> = (0..24).map(|n| format!("k{n}")).collect();
        let mut clients: Vec<Client> = keys.iter().map(|_| Client::of(&nodes[0])).collect();
        for (key, client) in keys.iter().zip(&mut clients) {
            assert_eq!(client.call(&[words(&["WATCH", key])]), ok());
            assert_eq!(nodes[2].call(&["SET", key, "1"]), ok());
        }
        assert_eq!(nodes[drains].call(&["CLUSTER", "DRAIN"]), ok());
        nodes[drains].until("it has given its slots away", |info| {
            number(info, "cluster_slots_member") == 0
        });
        for (key, client) in keys.iter().zip(&mut clients) {
            let all = [
                &["BEGIN", "SERIALIZABLE"][..],
                &["GET", key],
                &["SET", "other", "1"],
                &["COMMIT"],
            ];
            let done = client.call(&all.map(words));
            assert_eq!(done, Reply::NullArray, "{key}");
        }
        are_forgotten(&mut nodes);
    }
}

/// Copies of keys of other nodes expire by the clock, not at once.
#[test]
fn a_deadline_within_it_is_in_the_future() {
    let mut nodes = spread(&[1, 1, 1]);
    for n in 0..12 {
        let key = format!("d{n}");
        let node = &mut nodes[n % 3];
        assert_eq!(text(node.call(&["BEGIN"])), "OK");
        assert_eq!(text(node.call(&["SET", &key, "v", "EX", "100"])), "OK");
        assert_eq!(text(node.call(&["GET", &key])), "v");
        node.call(&["COMMIT"]);
        assert_eq!(text(node.call(&["GET", &key])), "v");
    }
}
