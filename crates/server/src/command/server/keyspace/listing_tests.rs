//! Which lattice keys are listed to a connection: those that it reads, its own writes among them.

use crate::front::testing::{Client, Rig};
use std::collections::{BTreeMap, BTreeSet};

const LEVELS: [&str; 5] = [
    "eventual",
    "read-your-writes",
    "monotonic-reads",
    "pram",
    "causal",
];

/// Numbers of workers, and of replicas on them.
fn shapes() -> impl Iterator<Item = (usize, &'static str)> {
    let threads = ["1", "2", "all"];
    (1..=4).flat_map(move |workers| threads.map(|of| (workers, of)))
}

fn carts(workers: usize, options: &str) -> (Rig, Vec<Client>) {
    let mut rig = Rig::new(workers);
    let create = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice GOSSIP 20";
    let has_order = options.contains("pram") || options.contains("causal");
    let few = ["THREADS 1", "THREADS 2"].into_iter();
    let options = few.fold(options.to_owned(), |options, few| {
        if has_order {
            options.replace(few, "THREADS all")
        } else {
            options
        }
    });
    rig.check(&format!("{create} {options}"), "+OK\r\n");
    let clients = (0..workers).map(|worker| rig.connect(worker)).collect();
    (rig, clients)
}

/// The elements of an array of texts.
fn texts(reply: &str) -> Vec<String> {
    assert!(reply.starts_with('*'), "{reply}");
    let texts = reply.split("\r\n").skip(2).step_by(2);
    texts.map(str::to_owned).collect()
}

fn keys(rig: &mut Rig, client: Client, pattern: &str) -> BTreeSet<String> {
    let all = texts(&rig.run_on(client, &format!("KEYS {pattern}")));
    let set: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!(set.len(), all.len(), "each once");
    set
}

/// One call of `SCAN`; returns its cursor and keys.
fn step(rig: &mut Rig, client: Client, cursor: &str, count: usize) -> (String, Vec<String>) {
    let reply = rig.run_on(client, &format!("SCAN {cursor} COUNT {count}"));
    let next = reply.split("\r\n").nth(2).unwrap_or_default().to_owned();
    let at = reply.match_indices('*').nth(1).map_or(0, |(at, _)| at);
    (next, texts(&reply[at..]))
}

/// A whole pass; how often each key was returned. `next_client` is asked before each call.
fn pass(
    rig: &mut Rig,
    count: usize,
    mut next_client: impl FnMut(&mut Rig) -> Client,
) -> BTreeMap<String, usize> {
    let (mut seen, mut cursor) = (BTreeMap::new(), "0".to_owned());
    for _ in 0..100_000 {
        let client = next_client(rig);
        let (next, keys) = step(rig, client, &cursor, count);
        for key in keys {
            *seen.entry(key).or_default() += 1;
        }
        if next == "0" {
            return seen;
        }
        cursor = next;
    }
    panic!("the pass does not end");
}

fn size(rig: &mut Rig, client: Client) -> usize {
    let reply = rig.run_on(client, "DBSIZE");
    reply.trim_matches([':', '\r', '\n']).parse().expect(&reply)
}

/// What a connection is shown of all keys is alike by all commands. Returns it.
fn listed(rig: &mut Rig, client: Client) -> BTreeSet<String> {
    let all = keys(rig, client, "*");
    for count in [1, 3, 1000] {
        let seen = pass(rig, count, |_| client);
        assert!(seen.values().all(|times| *times == 1), "{count}: {seen:?}");
        assert!(seen.keys().eq(&all), "{count}: {seen:?}, not {all:?}");
    }
    assert_eq!(size(rig, client), all.len());
    let drawn = rig.run_on(client, "RANDOMKEY");
    match drawn.split("\r\n").nth(1) {
        Some("") | None => assert!(all.is_empty(), "{drawn}"),
        Some(key) => assert!(all.contains(key), "{drawn}"),
    }
    all
}

#[test]
fn a_connection_is_shown_its_own_writes_at_once() {
    let at_all_levels = |shape| LEVELS.iter().map(move |level| (shape, level));
    for ((workers, threads), level) in shapes().flat_map(at_all_levels) {
        let (mut rig, clients) = carts(workers, &format!("THREADS {threads} LEVEL {level}"));
        let mut all = BTreeSet::new();
        for (n, &client) in clients.iter().enumerate() {
            let own: Vec<_> = (0..10).map(|i| format!("cart:{n}:{i}")).collect();
            let strict: Vec<_> = (0..5).map(|i| format!("strict:{n}:{i}")).collect();
            for key in own.iter().chain(&strict) {
                rig.run_on(client, &format!("SET {key} x"));
            }
            all.extend(own.iter().chain(&strict).cloned());
            let shown = listed(&mut rig, client);
            for key in own.iter().chain(&strict) {
                assert!(shown.contains(key), "{workers} {threads} {level}: {key}");
                assert_eq!(keys(&mut rig, client, key).len(), 1, "{key}");
            }
            // As many as the connection reads, of the others' as well.
            for key in &all {
                let exists = rig.run_on(client, &format!("EXISTS {key}")) == ":1\r\n";
                assert_eq!(exists, shown.contains(key), "{workers} {threads}: {key}");
            }
        }
        rig.advance_ms(1_000);
        for &client in &clients {
            assert_eq!(listed(&mut rig, client), all, "{workers} {threads} {level}");
        }
        // Neither what it has deleted nor what has expired.
        for (n, &client) in clients.iter().enumerate() {
            for key in (0..5).map(|i| format!("cart:{n}:{i}")) {
                rig.run_on(client, &format!("DEL {key}"));
                all.remove(&key);
                assert!(!listed(&mut rig, client).contains(&key), "{key}");
            }
            rig.run_on(client, &format!("PEXPIRE cart:{n}:7 50"));
            all.remove(&format!("cart:{n}:7"));
        }
        rig.advance_ms(1_000);
        for &client in &clients {
            assert_eq!(listed(&mut rig, client), all, "{workers} {threads} {level}");
        }
        for front in &rig.fronts {
            front.kernel.shard.check();
        }
        rig.run("FLUSHALL");
        for &client in &clients {
            assert!(listed(&mut rig, client).is_empty());
        }
    }
}

#[test]
fn transactions_count_their_own_writes() {
    for (workers, threads) in shapes() {
        let (mut rig, clients) = carts(workers, &format!("THREADS {threads}"));
        for (n, client) in clients.into_iter().enumerate() {
            let before = size(&mut rig, client);
            rig.run_on(client, "MULTI");
            for i in 0..4 {
                rig.run_on(client, &format!("SET cart:{n}:{i} x"));
            }
            rig.run_on(client, &format!("SET strict:{n} x"));
            rig.run_on(client, &format!("DEL cart:{n}:1"));
            rig.run_on(client, "DBSIZE");
            let reply = rig.run_on(client, "EXEC");
            let end = format!(":{}\r\n", before + 4);
            assert!(reply.ends_with(&end), "{workers} {threads}: {reply}");
            assert_eq!(size(&mut rig, client), before + 4);
        }
    }
}

/// A pool sends each call over a connection of another worker, while other keys are written and deleted, and replicas
/// merge.
#[test]
fn a_pass_over_connections_of_several_workers_meets_all_keys_that_all_replicas_have() {
    for (workers, threads) in shapes() {
        for count in [1, 7, 40] {
            let (mut rig, clients) = carts(workers, &format!("THREADS {threads}"));
            for n in 0..60 {
                let client = clients[n % workers];
                rig.run_on(client, &format!("SET cart:stays:{n} x"));
                rig.run_on(client, &format!("SET cart:goes:{n} x"));
                rig.run_on(client, &format!("SET strict:stays:{n} x"));
            }
            rig.advance_ms(1_000);
            let mut calls = 0;
            let seen = pass(&mut rig, count, |rig| {
                calls += 1;
                let client = clients[calls % workers];
                rig.run_on(client, &format!("SET cart:new:{calls} x"));
                rig.run_on(client, &format!("DEL cart:goes:{}", calls % 60));
                rig.run_on(client, &format!("SET cart:stays:{} y", calls % 60));
                rig.advance_ms(if calls % 3 == 0 { 30 } else { 0 });
                clients[(calls * 7 + calls / 5) % workers]
            });
            let stays = seen.iter().filter(|(key, _)| key.contains("stays:"));
            let times: Vec<_> = stays.map(|(_, times)| *times).collect();
            assert_eq!(times, [1; 120], "{workers} {threads} {count}");
        }
    }
}

/// Each of few keys is returned by the first call, of either regime.
#[test]
fn few_keys_are_returned_at_once() {
    for (workers, threads) in shapes() {
        let (mut rig, clients) = carts(workers, &format!("THREADS {threads}"));
        for key in ["cart:a", "cart:b", "cart:c", "d", "e"] {
            rig.run_on(clients[workers - 1], &format!("SET {key} x"));
        }
        let (next, keys) = step(&mut rig, clients[workers - 1], "0", 10);
        assert_eq!((next.as_str(), keys.len()), ("0", 5), "{workers} {threads}");
    }
}
