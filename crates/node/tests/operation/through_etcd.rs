//! `rufous cluster start` through a real etcd (Debian: etcd-server): one that is there
//! and wants certificates, and one that is started for the cluster.

#[path = "../../../coordinator/tests/all/common/mod.rs"]
#[allow(dead_code, reason = "its own tests use the rest")]
mod etcd;

use crate::clusters::{Running, check_keys, free_ports, signal};
use crate::program::{bulk, eventually, program, run, simple, stderr, stdout};
use rufous_resp::Reply;
use std::path::Path;

/// Three nodes are written to, one is killed, all stop, and start again on what they have.
fn lives(dir: tempfile::TempDir, more: &[&str], place: impl Fn(u16) -> String) {
    let port = free_ports();
    let mut running = Running::start_with(dir, port, 3, more);
    running.says("ready:");
    let place = place(port);
    for node in 1..=3 {
        let told = running.client(node).call("CONFIG GET cluster-coordinator");
        let expected = vec![bulk("cluster-coordinator"), bulk(&place)];
        assert_eq!(told, Reply::Array(expected));
    }
    let mut writer = running.client(1);
    for key in 0..200 {
        let reply = writer.call(&format!("SET key:{key} {key}"));
        assert_eq!(reply, simple("OK"));
    }
    check_keys(&mut running.client(2));

    signal("KILL", &running.pid(2));
    running.says("node-2 has ended (signal: 9");
    eventually("it is missed", || {
        let status = stdout(&running.status(1, &[]));
        status.contains(" away ").then_some(())
    });
    running.is_whole_with(3, 2);
    for node in [1, 3] {
        check_keys(&mut running.client(node));
    }
    let (ended, dir) = running.stop();
    assert!(ended.success());

    // What the nodes agree through is known from the folder.
    let mut again = Running::start_with(dir, port, 3, &[]);
    again.says("ready:");
    again.is_whole_with(2, 3);
    for node in 1..=3 {
        check_keys(&mut again.client(node));
    }
    let (ended, _) = again.stop();
    assert!(ended.success());
}

/// The settings of nodes that show a certificate to etcd.
fn write_settings(to: &Path, certificates: &Path) {
    let file = |name: &str| certificates.join(name).display().to_string();
    let text = format!(
        "appendonly = true\ncluster-etcd-ca-cert-file = {:?}\ncluster-etcd-cert-file = {:?}\ncluster-etcd-key-file = {:?}\n",
        file("birds.pem"),
        file("node.pem"),
        file("node.key")
    );
    std::fs::write(to.join("rufous.toml"), text).expect("written");
}

#[test]
fn a_cluster_agrees_through_an_etcd_that_wants_certificates() {
    if !rufous_skip::has_program("etcd") || !rufous_skip::has_program("openssl") {
        return;
    }
    let certificates = tempfile::tempdir().expect("a folder");
    let at = certificates.path();
    let etcd = etcd::Server::that_wants_certificates(at);
    let (_, hosts) = etcd.endpoint.split_once("://").expect("an address");
    let place = format!("etcd://{hosts}");
    let dir = tempfile::tempdir().expect("a folder");
    write_settings(dir.path(), at);
    let more = ["--coordinator", &place, "--name", "birds"];
    lives(dir, &more, |_| place.clone());
}

#[test]
fn a_cluster_has_an_etcd_of_its_own() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let place = |port| format!("etcd://127.0.0.1:{}", port + 9_999);
    lives(dir, &["--coordinator", "etcd"], place);
}

/// Two clusters of one name would be one.
#[test]
fn who_shares_an_etcd_has_a_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let start = ["cluster", "start", "--coordinator", "etcd://127.0.0.1:1"];
    let refused = run(program(&start).arg("--dir").arg(dir.path()));
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("by --name"),
        "{}",
        stderr(&refused)
    );
}
