//! A million commands in one go.

use crate::common::*;
use std::io::Write;

const COMMANDS: usize = 1_000_000;

/// Sends from a thread of its own, since the server stops reading when too
/// many replies wait.
fn send_beside(
    client: &Client,
    bytes: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> std::thread::JoinHandle<()> {
    let mut stream = client.sender();
    std::thread::spawn(move || bytes.for_each(|part| stream.write_all(&part).expect("sent")))
}

#[test]
fn a_million_increments() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    for worker in 0..2 {
        let before = server.peak();
        let mut client = server.client();
        let one = request(&["INCR", &key_of(worker, 0)]);
        let sender = send_beside(&client, (0..COMMANDS / 1000).map(move |_| one.repeat(1000)));
        for n in 1..=COMMANDS as i64 {
            assert_eq!(client.read(), Reply::Int(n));
        }
        sender.join().expect("all sent");
        server.assert_grew_less(before, 64 * MIB);
    }
    witness.finish();
}

/// Keys of both workers in turn: replies come from two places, in order.
#[test]
fn a_pipeline_over_both_workers() {
    const ROUNDS: usize = 50_000;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let mut client = server.client();
    let batches = (0..ROUNDS / 100).map(|batch| {
        let rounds = (0..100).flat_map(move |n| {
            let (n, value) = (batch * 100 + n, (batch * 100 + n).to_string());
            let (a, b) = (key_of(0, n % 10), key_of(1, n % 10));
            [
                request(&["SET", &a, &value]),
                request(&["SET", &b, &value]),
                request(&["GET", &a]),
                request(&["GET", &b]),
                request(&["MGET", &a, &b]),
                request(&["ECHO", &value]),
            ]
        });
        rounds.flatten().collect::<Vec<u8>>()
    });
    let sender = send_beside(&client, batches);
    for n in 0..ROUNDS {
        let value = Reply::Bulk(n.to_string().into_bytes());
        for expected in [
            client::ok(),
            client::ok(),
            value.clone(),
            value.clone(),
            Reply::Array(vec![value.clone(), value.clone()]),
            value,
        ] {
            assert_eq!(client.read(), expected, "round {n}");
        }
    }
    sender.join().expect("all sent");
    server.assert_grew_less(before, 64 * MIB);
    witness.finish();
}

/// Everything is sent before anything is read, by a client that then goes:
/// what waits for it is bounded.
#[test]
fn a_million_commands_and_gone() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    for _ in 0..4 {
        let client = server.client();
        let one = request(&["APPEND", &key_of(1, 3), ""]).repeat(1000);
        let mut stream = client.sender();
        stream
            .set_write_timeout(Some(std::time::Duration::from_secs(1)))
            .expect("set");
        for _ in 0..COMMANDS / 1000 {
            if stream.write_all(&one).is_err() {
                break;
            }
        }
        drop((client, stream));
    }
    server.wait_for_clients(Witness::CLIENTS);
    server.assert_grew_less(before, 64 * MIB);
    witness.finish();
}
