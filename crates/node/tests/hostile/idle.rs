//! Very many connections that do nothing.

use crate::common::*;
use rufous_skip::{Missing, skip};
use rustix::process::{Resource, getrlimit, setrlimit};

const CLIENTS: u64 = 10_000;

/// Raises this process's limit on open files; false where it may not.
fn may_open(files: u64) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= files) {
        return true;
    }
    if limit.maximum.is_some_and(|most| most < files) {
        return false;
    }
    limit.current = Some(limit.maximum.unwrap_or(files));
    setrlimit(Resource::Nofile, limit).is_ok()
}

#[test]
fn ten_thousand_idle_connections() {
    // The server has as many as this process, and inherits its limit.
    if !may_open(CLIENTS + 500) {
        let limit = format!("a hard limit of {} open files", CLIENTS + 500);
        skip(Missing::Permission(&limit));
        return;
    }
    let server = Server::start(&["--maxclients", "12000"]);
    let witness = Witness::start(&server);
    let before = server.rss();
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        let mut client = server.client();
        // All have said something, so that none is mere backlog.
        client.ok(&["SET", "idle", &n.to_string()]);
        clients.push(client);
    }
    witness.goes_on();
    assert_eq!(
        server.client().info("connected_clients"),
        CLIENTS + Witness::CLIENTS + 1
    );
    let each = server.rss().saturating_sub(before) / CLIENTS;
    println!("{each} bytes for each idle connection");
    assert!(each < 8 * 1024, "{each} bytes for each idle connection");
    // None is forgotten.
    for client in clients.iter_mut().step_by(97) {
        assert_eq!(client.run(&["PING"]), Reply::Status("PONG".into()));
    }
    drop(clients);
    server.wait_for_clients(Witness::CLIENTS);
    witness.finish();
}
