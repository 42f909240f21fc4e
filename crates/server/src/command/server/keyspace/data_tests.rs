//! What commands show of lattice keys, over workers that run in steps.

use crate::front::testing::{Client, Rig};

fn carts(workers: usize, threads: &str) -> Rig {
    let mut rig = Rig::new(workers);
    let create = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice THREADS";
    rig.check(&format!("{create} {threads}"), "+OK\r\n");
    rig
}

#[test]
fn what_replicas_observe_at_the_same_time_is_counted_once_by_all() {
    let mut rig = carts(2, "all");
    let (a, b) = (rig.connect(0), rig.connect(1));
    for (client, from) in [(a, 0), (b, 500)] {
        for n in from..from + 1000 {
            rig.run_on(client, &format!("PFADD cart:p e{n}"));
        }
        rig.check_on(client, &format!("PFADD cart:p e{from}"), ":0\r\n");
    }
    rig.advance_ms(1_000);
    // As one strict key that has observed it all.
    for n in 0..1500 {
        rig.run(&format!("PFADD strict e{n}"));
    }
    let count = rig.run("PFCOUNT strict");
    let bytes = rig.run("GET strict");
    let length = rig.run("STRLEN strict");
    rig.run_on(a, "PFADD cart:q e3 more");
    rig.advance_ms(1_000);
    rig.run_on(b, "PFMERGE cart:r cart:p cart:q strict");
    rig.advance_ms(1_000);
    rig.run("PFADD strict more");
    let more = rig.run("PFCOUNT strict");
    for client in [a, b] {
        rig.check_on(client, "PFCOUNT cart:p", &count);
        assert_eq!(rig.run_on(client, "GET cart:p").len(), bytes.len());
        rig.check_on(client, "TYPE cart:p", "+string\r\n");
        rig.check_on(client, "STRLEN cart:p", &length);
        rig.check_on(client, "PFCOUNT cart:r", &more);
        rig.check_on(client, "PFCOUNT cart:p cart:q", &more);
        let dumped = rig.run_on(client, "DUMP cart:p");
        assert!(dumped.starts_with('$'), "{dumped}");
    }
    // Also in a transaction over keys of both, and on strict keys from these.
    rig.run_on(b, "MULTI");
    rig.run_on(b, "PFADD cart:t x y");
    rig.run_on(b, "PFMERGE out cart:t cart:q");
    rig.check_on(b, "EXEC", "*2\r\n:1\r\n+OK\r\n");
    rig.check_on(a, "PFCOUNT out", ":4\r\n");
    rig.run_on(b, "DEL cart:p");
    rig.advance_ms(1_000);
    rig.check_on(a, "PFCOUNT cart:p", ":0\r\n");
    rig.check_on(a, "PFADD cart:p e1", ":1\r\n");
    rig.check_on(a, "PFCOUNT cart:p", ":1\r\n");
}

#[test]
fn strings_and_sketches_keep_apart() {
    let mut rig = carts(2, "all");
    let wrong = "-WRONGTYPE Key is not a valid HyperLogLog string value.\r\n";
    rig.check("SET cart:s text", "+OK\r\n");
    rig.check("PFADD cart:s x", wrong);
    rig.check("PFMERGE cart:s cart:t", wrong);
    rig.check("GET cart:s", "$4\r\ntext\r\n");
    rig.check("SADD cart:set x", ":1\r\n");
    assert!(rig.run("PFADD cart:set x").starts_with("-WRONGTYPE"));
    rig.check("PFADD cart:p x", ":1\r\n");
    for request in ["SET cart:p text", "INCR cart:p"] {
        let refused = rig.run(request);
        let name = request.split(' ').next().unwrap_or_default();
        let begin = format!(
            "-ERR '{}' cannot be coordination-free: ",
            name.to_lowercase()
        );
        assert!(refused.starts_with(&begin), "{refused}");
        assert!(
            refused.contains(". Keyspace 'carts' is of regime lattice; "),
            "{refused}"
        );
    }
    rig.check("PFCOUNT cart:p", ":1\r\n");
    assert!(
        rig.run("PFDEBUG TODENSE cart:p")
            .starts_with("-ERR 'pfdebug' cannot be")
    );
    // Bytes of a sketch that were written as a string are one to be read.
    let get = rig.run_words(&[b"GET", b"cart:p"]);
    let start = get.iter().position(|&b| b == b'\n').unwrap_or_default() + 1;
    let bytes = get[start..get.len() - 2].to_vec();
    rig.run_words(&[b"SET", b"cart:copy", &bytes]);
    rig.check("PFCOUNT cart:copy", ":1\r\n");
    let refused = rig.run("PFADD cart:copy y");
    assert!(refused.contains("a value of another type"), "{refused}");
    rig.check("PFMERGE cart:p cart:copy", "+OK\r\n");
}

/// What clients see of how many keys there are: `DBSIZE`, and keys and expiring
/// ones of `INFO`.
fn numbers(rig: &mut Rig, client: Client) -> (usize, usize, usize) {
    let size = rig.run_on(client, "DBSIZE");
    let info = rig.run_on(client, "INFO keyspace");
    let number = |text: &str, name: &str| -> usize {
        let rest = text.split(name).nth(1).unwrap_or_default();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_default()
    };
    (
        number(&size, ":"),
        number(&info, "keys="),
        number(&info, "expires="),
    )
}

fn listed(rig: &mut Rig, client: Client) -> usize {
    let keys = rig.run_on(client, "KEYS *");
    let count = keys.trim_start_matches('*').split("\r\n").next();
    count
        .and_then(|count| count.parse().ok())
        .unwrap_or(usize::MAX)
}

#[test]
fn each_key_counts_once_however_many_replicas_it_has() {
    for (workers, threads) in [(1, "all"), (2, "all"), (4, "2"), (4, "1")] {
        let mut rig = carts(workers, threads);
        let clients: Vec<_> = (0..workers).map(|w| rig.connect(w)).collect();
        let mut expected = (0, 0);
        for n in 0..120 {
            let client = clients[n % workers];
            rig.run_on(client, &format!("SET cart:{n} {n}"));
            rig.run_on(client, &format!("SET strict:{n} {n} EX 50"));
            rig.run_on(client, &format!("SADD cart:s{n} {n}"));
            expected.0 += 3;
            expected.1 += 1;
            if n % 3 == 0 {
                rig.run_on(client, &format!("EXPIRE cart:{n} 60"));
                expected.1 += 1;
            }
            if n % 5 == 0 {
                rig.run_on(client, &format!("SREM cart:s{n} {n}"));
                rig.run_on(client, &format!("PERSIST strict:{n}"));
                expected.0 -= 1;
                expected.1 -= 1;
            }
        }
        for now in [0, 2_000, 52_000, 70_000] {
            rig.advance_ms(now);
            for &client in &clients {
                let (keys, info, expires) = numbers(&mut rig, client);
                let there = listed(&mut rig, client);
                // Expired ones count until somebody meets them, and `KEYS` does.
                let (again, ..) = numbers(&mut rig, client);
                assert_eq!(again, there, "{workers} {threads}");
                // `INFO` counts keys at their primaries, which have yet to receive some at first.
                assert!(info == keys || now == 0, "{workers} {threads}");
                if now == 2_000 {
                    assert_eq!((keys, expires), expected, "{workers} {threads}");
                }
            }
        }
        rig.run("FLUSHALL");
        rig.run("SET cart:1 x");
        rig.run("SET other x");
        rig.advance_ms(1_000);
        assert_eq!(numbers(&mut rig, clients[workers - 1]).0, 2);
        // What a transaction has in its hands counts once, too, and what is
        // only known to be deleted does not.
        rig.run("SET a x");
        rig.run("SET b x");
        rig.run("DEL cart:1");
        rig.advance_ms(10);
        rig.run("MULTI");
        for request in [
            "EXISTS cart:1",
            "SET a y",
            "SET b y",
            "SET other y",
            "DBSIZE",
        ] {
            rig.run(request);
        }
        let reply = rig.run("EXEC");
        assert!(
            reply.ends_with("+OK\r\n:3\r\n"),
            "{workers} {threads}: {reply}"
        );
        for front in &rig.fronts {
            front.kernel.shard.check();
        }
    }
}

/// Requests that fill keys of all kinds, and what shows them.
const FILL: [&str; 12] = [
    "SET cart:text apple",
    "SET cart:soon pear EX 100",
    "SET cart:n 41",
    "SADD cart:set a b c",
    "HSET cart:hash f 1 g 2",
    "ZADD cart:zset 1 a 2.5 b",
    "PFADD cart:pf x y z",
    "EXPIRE cart:set 200",
    "EXPIRE cart:hash 300",
    "EXPIRE cart:pf 400",
    "SET other kept",
    "RPUSH list kept",
];
const SHOW: [&str; 19] = [
    "GET cart:text",
    "TTL cart:text",
    "GET cart:soon",
    "TTL cart:soon",
    "GET cart:n",
    "SMISMEMBER cart:set a b c d",
    "SCARD cart:set",
    "HGET cart:hash f",
    "HGET cart:hash g",
    "ZRANGE cart:zset 0 -1 WITHSCORES",
    "PFCOUNT cart:pf",
    "TYPE cart:pf",
    "TTL cart:set",
    "TTL cart:hash",
    "TTL cart:zset",
    "TTL cart:pf",
    "DBSIZE",
    "GET other",
    "LLEN list",
];

#[test]
fn keys_that_are_there_stay_what_they_are_when_the_keyspace_changes() {
    for workers in [1, 2, 4] {
        let mut rig = Rig::new(workers);
        let clients: Vec<_> = (0..workers).map(|w| rig.connect(w)).collect();
        for (n, request) in FILL.iter().enumerate() {
            rig.run_on(clients[n % workers], request);
        }
        let shown: Vec<_> = SHOW.iter().map(|request| rig.run(request)).collect();
        let changes = [
            "KEYSPACE CREATE carts PREFIX cart: REGIME lattice",
            "KEYSPACE ALTER carts LEVEL pram GOSSIP 1",
            "KEYSPACE ALTER carts LEVEL eventual THREADS 2",
            "KEYSPACE CREATE strict PREFIX cart:s REGIME strict",
            "KEYSPACE ALTER carts THREADS 1",
            "KEYSPACE DROP strict",
            "KEYSPACE ALTER carts THREADS all",
            "KEYSPACE ALTER carts REGIME strict",
            "KEYSPACE ALTER carts REGIME lattice",
            "KEYSPACE DROP carts",
        ];
        for (n, change) in changes.into_iter().enumerate() {
            // Not sent by the time of the change, for the most part.
            rig.run_on(clients[n % workers], "SADD cart:set c");
            rig.check_on(clients[(n + 1) % workers], change, "+OK\r\n");
            for &client in &clients {
                for (request, shown) in SHOW.iter().zip(&shown) {
                    assert_eq!(&rig.run_on(client, request), shown, "{change}: {request}");
                }
            }
            for front in &rig.fronts {
                front.kernel.shard.check();
            }
        }
        rig.check("INCR cart:n", ":42\r\n");
        rig.check("APPEND cart:text s", ":6\r\n");
        rig.check("SMOVE cart:set taken a", ":1\r\n");
    }
}

#[test]
fn values_that_cannot_be_replicated_have_the_change_refused() {
    let create = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice";
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        rig.run("SET cart:1 apple");
        rig.run("RPUSH cart:l a");
        let refused = rig.run(create);
        let begin = "-ERR keys with this prefix cannot be replicated otherwise than they are: \
            1 of them, 'cart:l' among these: values of its type do not merge";
        assert!(refused.starts_with(begin), "{refused}");
        rig.check("KEYSPACE LIST", "*0\r\n");
        rig.run("DEL cart:l");
        rig.check(create, "+OK\r\n");
        rig.check("GET cart:1", "$5\r\napple\r\n");
        let info = rig.run("INFO keyspaces");
        assert!(info.contains("keyspace_converted_keys:1\r\n"), "{info}");
        assert!(info.contains("keyspace_exchanging_workers:0\r\n"), "{info}");
    }
}

#[test]
fn strings_take_and_lose_causal_order_with_the_level() {
    for workers in [1, 2, 4] {
        let mut rig = Rig::new(workers);
        let clients: Vec<_> = (0..workers).map(|w| rig.connect(w)).collect();
        let long = "x".repeat(5000);
        rig.run("PFADD cart:pf x y z");
        rig.run("EXPIRE cart:pf 400");
        rig.run("SET cart:text apple");
        rig.run(&format!("SET cart:long {long}"));
        rig.run("SET cart:n 41");
        rig.run("SADD cart:set a b");
        rig.run("EXPIRE cart:set 300");
        rig.run("SET cart:gone x");
        let show = [
            "GET cart:text",
            "GET cart:long",
            "GET cart:n",
            "GET cart:gone",
            "PFCOUNT cart:pf",
            "TTL cart:pf",
            "SMISMEMBER cart:set a b c",
            "TTL cart:set",
            "DBSIZE",
        ];
        let changes = [
            "KEYSPACE CREATE carts PREFIX cart: REGIME lattice LEVEL causal",
            "KEYSPACE ALTER carts LEVEL eventual",
            "KEYSPACE ALTER carts THREADS 1",
            "KEYSPACE ALTER carts LEVEL causal THREADS all",
            "KEYSPACE ALTER carts REGIME strict",
            "KEYSPACE ALTER carts REGIME lattice LEVEL causal",
            "KEYSPACE DROP carts",
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let client = clients[n % workers];
            // Where it has read it, it takes its place; what is changed here is
            // not sent by the time of the change.
            rig.run_on(client, "GET cart:text");
            rig.run_on(client, &format!("SET cart:text v{n}"));
            rig.run_on(client, "INCR cart:n");
            rig.run_on(client, "GET cart:gone");
            rig.run_on(client, "DEL cart:gone");
            let shown: Vec<_> = show.iter().map(|r| rig.run_on(client, r)).collect();
            rig.check_on(clients[(n + 1) % workers], change, "+OK\r\n");
            for &client in &clients {
                for (request, shown) in show.iter().zip(&shown) {
                    assert_eq!(&rig.run_on(client, request), shown, "{change}: {request}");
                }
            }
            for front in &rig.fronts {
                front.kernel.shard.check();
            }
            rig.advance_ms(2_000);
        }
        rig.check("GET cart:n", "$2\r\n48\r\n");
        rig.check("APPEND cart:text s", ":3\r\n");
    }
}

#[test]
fn of_concurrent_values_the_one_stays_that_is_picked() {
    for (resolve, stays) in [("newest", "9"), ("largest", "10"), ("smallest", "9")] {
        for change in [
            "KEYSPACE ALTER notes LEVEL eventual RESOLVE newest",
            "KEYSPACE DROP notes",
        ] {
            let mut rig = Rig::new(2);
            let clients = [rig.connect(0), rig.connect(1)];
            rig.run("KEYSPACE CREATE notes PREFIX n: REGIME lattice LEVEL causal");
            rig.run(&format!("KEYSPACE ALTER notes RESOLVE {resolve}"));
            rig.run_on(clients[0], "SET n:1 10");
            rig.advance_ms(1);
            rig.run_on(clients[1], "SET n:1 9");
            rig.check(change, "+OK\r\n");
            for client in clients {
                let got = rig.run_on(client, "GET n:1");
                assert!(got.ends_with(&format!("\r\n{stays}\r\n")), "{change} {got}");
            }
            // Who has seen the old values has not seen the new one.
            let again = "KEYSPACE ALTER notes LEVEL causal";
            if change.contains("ALTER") {
                rig.check(again, "+OK\r\n");
                let got = rig.run("CAUSAL.GET n:1");
                assert!(got.starts_with("*2\r\n"), "{got}");
            }
        }
    }
}

#[test]
fn concurrent_values_of_which_none_is_picked_have_the_change_refused() {
    let mut rig = Rig::new(2);
    let clients = [rig.connect(0), rig.connect(1)];
    rig.run("KEYSPACE CREATE notes PREFIX n: REGIME lattice LEVEL causal RESOLVE refuse");
    // Not sent by the time of the change.
    rig.run_on(clients[0], "SET n:1 a");
    rig.run_on(clients[1], "SET n:1 b");
    rig.run_on(clients[1], "SET n:2 c");
    for change in [
        "KEYSPACE ALTER notes LEVEL eventual RESOLVE newest",
        "KEYSPACE DROP notes",
    ] {
        let refused = rig.run(change);
        let begin = "-ERR keys with this prefix cannot be replicated otherwise than they are: \
            1 of them, 'n:1' among these: it has concurrent values";
        assert!(refused.starts_with(begin), "{refused}");
    }
    rig.check_on(clients[0], "GET n:2", "$1\r\nc\r\n");
    let both = rig.run_on(clients[0], "CAUSAL.GET n:1");
    assert!(both.starts_with("*3\r\n"), "{both}");
    let token = both.split("\r\n").nth(2).unwrap_or_default().to_owned();
    rig.run_on(clients[0], &format!("CAUSAL.SET n:1 {token} d"));
    rig.check("KEYSPACE DROP notes", "+OK\r\n");
    rig.check("GET n:1", "$1\r\nd\r\n");
}

#[test]
fn strings_take_their_deadlines_along_to_causal_order_and_back() {
    let mut rig = Rig::new(2);
    rig.run("SET cart:1 apple EX 100");
    rig.check(
        "KEYSPACE CREATE carts PREFIX cart: REGIME lattice LEVEL causal",
        "+OK\r\n",
    );
    rig.check("TTL cart:1", ":100\r\n");
    // Of several values that of the one that is shown.
    let clients = [rig.connect(0), rig.connect(1)];
    rig.run_on(clients[0], "SET cart:2 8 EX 50");
    rig.run_on(clients[1], "SET cart:2 9 EX 200");
    rig.check("KEYSPACE ALTER carts RESOLVE largest", "+OK\r\n");
    rig.check("KEYSPACE ALTER carts LEVEL eventual", "+OK\r\n");
    rig.check("GET cart:2", "$1\r\n9\r\n");
    rig.check("TTL cart:2", ":200\r\n");
    rig.check("TTL cart:1", ":100\r\n");
    rig.check("KEYSPACE ALTER carts LEVEL causal", "+OK\r\n");
    rig.check("TTL cart:1", ":100\r\n");
    rig.check("KEYSPACE DROP carts", "+OK\r\n");
    rig.check("TTL cart:1", ":100\r\n");
}

/// A worker that is alone makes no reports, by which its clock would go on.
#[test]
fn what_has_gone_with_its_deadline_is_forgotten_also_where_nobody_writes() {
    for workers in [1, 2] {
        let mut rig = carts(workers, "all");
        rig.check("HSET cart:h a 1 b 2", ":2\r\n");
        rig.check("PEXPIRE cart:h 50", ":1\r\n");
        let left =
            |rig: &Rig| -> usize { rig.fronts.iter().map(|f| f.kernel.shard.graves_len()).sum() };
        rig.advance_ms(2_000);
        assert_eq!(left(&rig), 0, "{workers} workers");
    }
}
