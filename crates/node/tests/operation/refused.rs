//! Clusters on this machine that cannot start.

use crate::clusters::{ADMIN, free_ports};
use crate::program::{program, run, stderr, stdout};

#[test]
fn a_port_that_is_taken_is_named_with_its_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let port = free_ports();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port + ADMIN + 1)).expect("free");
    let start = ["cluster", "start", "--coordinator", "process", "--port"];
    let mut start = program(&start);
    let refused = run(start.arg(port.to_string()).arg("--dir").arg(dir.path()));
    let why = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    let own = format!("process {}", std::process::id());
    let named = format!("port {} (for metrics of node-2)", port + ADMIN + 1);
    assert!(why.contains(&own) && why.contains(&named), "{why}");
    // The next start may take other ports.
    assert!(!dir.path().join("cluster.toml").exists());
}

#[test]
fn a_node_that_cannot_start_is_part_of_no_ready_cluster() {
    let dir = tempfile::tempdir().expect("a folder");
    let node = dir.path().join("node-2");
    std::fs::create_dir(&node).expect("a folder");
    std::fs::write(node.join("rufous.toml"), "maxclients = \"many\"\n").expect("written");
    let port = free_ports().to_string();
    let start = ["cluster", "start", "--coordinator", "process", "--port"];
    let ended = run(program(&start).arg(port).arg("--dir").arg(dir.path()));
    let (said, why) = (stdout(&ended), stderr(&ended));
    assert_eq!(ended.status.code(), Some(1), "{said} {why}");
    assert!(!said.contains("ready: "), "{said}");
    assert!(why.contains("node-2 has ended (exit status: "), "{why}");
    assert!(why.contains("maxclients"), "{why}");
}
