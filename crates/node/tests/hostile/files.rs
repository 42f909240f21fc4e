//! File descriptors and client places run out, and come back.

use crate::common::*;
use std::net::TcpStream;

#[test]
fn descriptors_run_out_and_come_back() {
    // The server lowers the number of clients to what its limit allows. So that
    // descriptors run out before that, many are taken already when it starts.
    let prelude = "ulimit -n 200; for fd in {20..169}; do eval \"exec $fd</dev/null\"; done";
    let server = Server::start_with(prelude, &[]);
    let witness = Witness::start(&server);
    for _ in 0..3 {
        // More than there are descriptors: some are accepted, the kernel keeps the others waiting.
        let crowd: Vec<TcpStream> = (0..120)
            .map(|_| TcpStream::connect(("127.0.0.1", server.port)).expect("connected"))
            .collect();
        wait_until("accepting fails", || server.log().contains("cannot accept"));
        witness.goes_on();
        drop(crowd);
        // Somebody new comes through, though accepting had failed.
        server.ping();
        server.wait_for_clients(Witness::CLIENTS);
        witness.goes_on();
    }
    witness.finish();
}

/// A client that was let in; those before it may have been turned away still.
fn welcome(server: &Server) -> Client {
    let mut welcome = None;
    wait_until("the server is no longer full", || {
        let mut client = server.stranger();
        client.try_send(&request(&["PING"]));
        if client
            .try_read()
            .is_ok_and(|reply| reply == Reply::Status("PONG".into()))
        {
            welcome = Some(client);
        }
        welcome.is_some()
    });
    welcome.expect("found")
}

#[test]
fn too_many_clients_are_told_so() {
    let server = Server::start(&["--maxclients", "10"]);
    let witness = Witness::start(&server);
    for _ in 0..3 {
        drop(welcome(&server));
        server.wait_for_clients(Witness::CLIENTS);
        let mut inside = Vec::new();
        wait_until("the server is full", || {
            let mut client = server.stranger();
            client.try_send(&request(&["PING"]));
            match client.try_read() {
                Ok(Reply::Status(_)) => inside.push(client),
                Ok(Reply::Error(text)) => {
                    assert_eq!(text, "ERR max number of clients reached");
                    assert_eq!(client.read_to_end(), b"");
                    return true;
                }
                // Closed over the request that was never read.
                Err(_) => return true,
                Ok(other) => panic!("{other:?}"),
            }
            false
        });
        assert!(
            (1..=8).contains(&inside.len()),
            "{} clients beside the witness",
            inside.len()
        );
        for client in &mut inside {
            assert_eq!(client.run(&["PING"]), Reply::Status("PONG".into()));
        }
        witness.goes_on();
        drop(inside);
    }
    let mut asker = welcome(&server);
    wait_until("they are counted", || {
        asker.info("rejected_connections") >= 3
    });
    witness.finish();
}
