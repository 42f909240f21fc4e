//! The start of nodes of a cluster: they have what they are to serve before others count on them.

use crate::clusters::{Running, free_ports};
use crate::program::{Client, bulk, eventually, simple};
use rufous_resp::Reply;
use std::net::TcpStream;

/// What each counts all have, without a word to a client of which node that is.
#[test]
fn nodes_share_the_keyspaces_of_their_clusters_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let table = "[[keyspace]]\nname = \"likes\"\nprefix = \"likes:\"\nregime = \"lattice\"\n";
    std::fs::write(dir.path().join("rufous.toml"), table).expect("written");
    let mut running = Running::start_in(dir, free_ports(), 2);
    running.says("ready:");
    for node in [1, 2] {
        // It waits until it has heard of the other one.
        let counted = running.client(node).call("INCRBY likes:1 2");
        assert!(matches!(counted, Reply::Integer(2 | 4)), "{counted:?}");
    }
    for node in [1, 2] {
        eventually("both have both", || {
            let has = running.client(node).call("GET likes:1");
            (has == bulk("4")).then_some(())
        });
    }
    let (ended, _) = running.stop();
    assert!(ended.success());
}

/// It would be counted on, and answer LOADING.
#[test]
fn no_node_takes_its_place_before_it_has_loaded() {
    let mut running = Running::start(1);
    running.says("ready:");
    let mut client = running.client(1);
    let value = "x".repeat(100);
    for round in 0..150 {
        let keys = round * 1_000..(round + 1) * 1_000;
        let all: Vec<_> = keys.map(|key| format!("SET key:{key} {value}")).collect();
        all.iter().for_each(|line| client.send(line));
        let replies = all.iter().map(|_| client.reply());
        assert!(replies.into_iter().all(|reply| reply == Some(simple("OK"))));
    }
    let port = running.port;
    let (ended, dir) = running.stop();
    assert!(ended.success());

    let again = Running::start_in(dir, port, 1);
    let mut client = eventually("it listens", || {
        let address = ("127.0.0.1", port);
        let listens = TcpStream::connect(address).is_ok();
        listens.then(|| Client::connect(address))
    });
    let mut seen_loading = 0;
    eventually("it has its place", || {
        let Reply::Bulk(info) = client.call("INFO everything") else {
            panic!("no INFO");
        };
        let info = String::from_utf8(info).expect("text");
        let has_place = info.contains("cluster_is_alive:1");
        let loads = info.contains("loading:1");
        seen_loading += u64::from(loads);
        assert!(!(has_place && loads), "{info}");
        has_place.then_some(())
    });
    assert!(seen_loading > 0, "there was nothing to load");
    let (ended, _) = again.stop();
    assert!(ended.success());
}
