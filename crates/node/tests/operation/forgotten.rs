//! `rufous cluster forget`: a node that is gone for good.

use crate::clusters::{Running, free_ports, signal};
use crate::program::{bulk, eventually, program, run, stderr, stdout};
use rufous_resp::Reply;
use std::net::TcpStream;

/// All are killed, and one does not come back.
#[test]
fn lattice_keys_are_served_without_a_node_that_is_gone_for_good_and_it_is_forgotten() {
    let dir = tempfile::tempdir().expect("a folder");
    let table = "[[keyspace]]\nname = \"likes\"\nprefix = \"likes:\"\nregime = \"lattice\"\n";
    std::fs::write(dir.path().join("rufous.toml"), table).expect("written");
    let mut running = Running::start_in(dir, free_ports(), 3);
    running.says("ready:");
    let port = running.port;
    for node in 1..=3 {
        let counted = running.client(node).call("INCRBY likes:1 2");
        assert!(matches!(counted, Reply::Integer(_)), "{counted:?}");
    }
    for node in 1..=3 {
        eventually("all have all", || {
            let has = running.client(node).call("GET likes:1");
            (has == bulk("6")).then_some(())
        });
    }
    let gone = running.at(3);
    let alive = run(&mut program(&[
        "cluster",
        "forget",
        &gone,
        "--at",
        &running.at(1),
    ]));
    assert!(stderr(&alive).contains("is alive"), "{}", stderr(&alive));
    (1..=3).for_each(|node| signal("KILL", &running.pid(node)));
    let (_, dir) = running.stop();
    let (there, aside) = (dir.path().join("node-3"), dir.path().join("aside"));
    std::fs::rename(there, aside).expect("put aside");

    let running = Running::start_in(dir, port, 2);
    eventually("a start says what it waits for", || {
        let status = running.status(1, &[]);
        let said = stdout(&status);
        let waits = said.contains("serves no lattice keys") && said.contains("without them");
        (waits && status.status.code() == Some(1)).then_some(())
    });
    for node in 1..=2 {
        eventually("lattice keys are served", || {
            TcpStream::connect(running.at(node)).ok()?;
            let has = running.client(node).call("GET likes:1");
            (has == bulk("6")).then_some(())
        });
    }
    assert_eq!(
        running.client(2).call("INCRBY likes:1 1"),
        Reply::Integer(7)
    );
    let forget = ["cluster", "forget", &gone, "--at", &running.at(1)];
    // The coordinator counts it as alive until its lease has run out.
    let said = eventually("it is forgotten", || {
        let forgotten = run(&mut program(&forget));
        let is_alive = stderr(&forgotten).contains("is alive");
        assert!(forgotten.status.success() || is_alive, "{forgotten:?}");
        (!is_alive).then(|| stdout(&forgotten))
    });
    assert!(said.contains("no longer a member"), "{said}");
    for node in 1..=2 {
        eventually("both have all", || {
            let has = running.client(node).call("GET likes:1");
            (has == bulk("7")).then_some(())
        });
    }
    let status = running.status(1, &["--wait", "300", "--json"]);
    assert_eq!(status.status.code(), Some(0), "{}", stdout(&status));
    let json: serde_json::Value = serde_json::from_str(&stdout(&status)).expect("JSON");
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["slots_served"], 16_384);
}
