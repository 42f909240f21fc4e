//! Transactions that `BEGIN` has begun: over workers, in pipelines, and left
//! in the middle.

use crate::common::client::ok;
use crate::common::*;

const LEVELS: [&str; 3] = ["READ-COMMITTED", "ITEM-CUT", "READ-UNCOMMITTED"];

fn info(server: &Server, field: &str) -> u64 {
    let info = server.client().run(&["INFO", "keyspaces"]).bulk();
    let info = String::from_utf8(info).expect("text");
    let mut lines = info.lines();
    let found = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    found.expect("a field").parse().expect("a number")
}

fn keyspaces(server: &Server) {
    for (name, threads) in [("all", "all"), ("one", "1")] {
        let prefix = format!("{name}:");
        server.client().ok(&[
            "KEYSPACE", "CREATE", name, "PREFIX", &prefix, "REGIME", "lattice", "THREADS", threads,
        ]);
    }
}

#[test]
fn in_pipelines_over_workers() {
    const ROUNDS: i64 = 300;
    let server = Server::start(&[]);
    keyspaces(&server);
    let mut clients = server.one_at_each_worker();
    let names = [key_of(0, 0), key_of(1, 0), "one:a".into(), "one:b".into()];
    for level in &LEVELS[..2] {
        for round in 0..ROUNDS {
            for client in &mut clients {
                let mut bytes = request(&["BEGIN", level]);
                let value = round.to_string();
                for name in &names {
                    bytes.extend(request(&["SET", name, &value]));
                    bytes.extend(request(&["INCR", name]));
                    bytes.extend(request(&["GET", name]));
                }
                bytes.extend(request(&["COMMIT"]));
                client.send(&bytes);
                assert_eq!(client.read(), ok());
                for _ in &names {
                    assert_eq!(client.read(), ok());
                    assert_eq!(client.read(), Reply::Int(round + 1));
                    let own = (round + 1).to_string().into_bytes();
                    assert_eq!(client.read(), Reply::Bulk(own));
                }
                let all = client.read().array();
                assert_eq!(all.len(), 2 * names.len());
                assert!(
                    all.iter()
                        .all(|reply| [ok(), Reply::Int(round + 1)].contains(reply))
                );
            }
        }
    }
    assert_eq!(info(&server, "transactions_open"), 0);
    let committed = info(&server, "transactions_committed");
    assert_eq!(committed, 2 * 2 * ROUNDS as u64);
}

#[test]
fn whoever_goes_away_leaves_nothing() {
    let server = Server::start(&[]);
    keyspaces(&server);
    let witness = Witness::start(&server);
    let before = server.peak();
    let large = vec![b'v'; 1_000_000];
    for n in 0..200 {
        let mut client = server.client();
        let mut bytes = request(&["BEGIN", LEVELS[n % 2]]);
        for key in [&key_of(0, 5), &key_of(1, 5), "one:c", "one:d", "all:c"] {
            bytes.extend(request(&[b"SET", key.as_bytes(), &large]));
        }
        client.send(&bytes);
        if n % 2 == 0 {
            assert_eq!(client.read(), ok());
            assert_eq!(client.read(), ok());
        }
    }
    for n in 0..100 {
        let mut client = server.client();
        let key = format!("one:{n}");
        client.send(&[request(&["BEGIN", LEVELS[2]]), request(&["INCR", &key])].concat());
        if n % 3 == 0 {
            assert_eq!(client.read(), ok());
        }
    }
    server.wait_for_clients(Witness::CLIENTS);
    assert_eq!(info(&server, "transactions_open"), 0);
    assert_eq!(info(&server, "transactions_committed"), 0);
    let there = server
        .client()
        .run(&["EXISTS", &key_of(0, 5), &key_of(1, 5), "one:c", "all:c"]);
    assert_eq!(there, Reply::Int(0));
    server.assert_grew_less(before, 96 * MIB);
    witness.finish();
}
