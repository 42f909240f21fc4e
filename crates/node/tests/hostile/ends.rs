//! Connections that end in the middle of something.

use crate::common::*;
use std::io::Read;
use std::time::Duration;

#[test]
fn in_the_middle_of_a_request() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let large = request(&[&b"SET"[..], b"half", &vec![b'v'; 300_000]]);
    let small = request(&["SET", "half", "value"]);
    for n in 0..300 {
        let mut client = server.client();
        let whole = if n % 10 == 0 { &large } else { &small };
        client.send(&whole[..whole.len() * (n % 29 + 1) / 30]);
        if n % 3 == 0 {
            client.end();
            assert_eq!(client.read_to_end(), b"", "what is not whole has no answer");
        }
    }
    server.wait_for_clients(Witness::CLIENTS);
    assert_eq!(server.client().run(&["EXISTS", "half"]), Reply::Int(0));
    server.assert_grew_less(before, 32 * MIB);
    witness.finish();
}

#[test]
fn in_the_middle_of_a_reply() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    for worker in 0..2 {
        server.client().ok(&[
            &b"SET"[..],
            key_of(worker, 0).as_bytes(),
            &vec![b'v'; 5_000_000],
        ]);
    }
    let before = server.peak();
    for n in 0..60 {
        let mut client = server.client();
        client.send(&request(&["GET", &key_of(n % 2, 0)]).repeat(20));
        // Closing over unread bytes resets the connection.
        let mut some = [0; 1000];
        client
            .stream()
            .read_exact(&mut some)
            .expect("the beginning");
    }
    server.wait_for_clients(Witness::CLIENTS);
    server.assert_grew_less(before, 64 * MIB);
    witness.finish();
}

/// A command over both workers is whole or not at all, whoever waits for it.
#[test]
fn in_the_middle_of_a_command_of_several_workers() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let (a, b) = (key_of(0, 0), key_of(1, 0));
    for n in 0..500 {
        let mut client = server.client();
        let value = n.to_string();
        let set = request(&["MSET", &a, &value, &b, &value]);
        client.send(
            &[
                set,
                request(&["RENAME", &a, &b]),
                request(&["COPY", &b, &a, "REPLACE"]),
            ]
            .concat(),
        );
        if n % 4 == 0 {
            // Let it get somewhere first.
            std::thread::sleep(Duration::from_micros(200));
        }
        drop(client);
    }
    server.wait_for_clients(Witness::CLIENTS);
    let mut client = server.client();
    for n in 0..100 {
        let value = format!("after{n}");
        client.ok(&["MSET", &a, &value, &b, &value]);
        let both = vec![Reply::Bulk(value.into_bytes()); 2];
        assert_eq!(
            client.run(&["MGET", &a, &b]),
            Reply::Array(both),
            "no key is held for ever"
        );
    }
    witness.finish();
}

/// `printf … | nc`: everything is sent, the sending side is closed, and then
/// the replies are read, also those of other workers.
#[test]
fn replies_reach_a_client_that_sends_no_more() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let mut expected = Vec::new();
    let mut sent = Vec::new();
    for n in 0..5000 {
        let (key, value) = (key_of(n % 2, n), format!("value{n}"));
        sent.extend_from_slice(&request(&["SET", &key, &value]));
        sent.extend_from_slice(&request(&["GET", &key]));
        expected.extend_from_slice(format!("+OK\r\n${}\r\n{value}\r\n", value.len()).as_bytes());
    }
    sent.extend_from_slice(&request(&["MGET", &key_of(0, 0), &key_of(1, 1)]));
    sent.extend_from_slice(&request(&["DBSIZE"]));
    expected.extend_from_slice(b"*2\r\n$6\r\nvalue0\r\n$6\r\nvalue1\r\n:");
    for _ in 0..20 {
        let mut client = server.client();
        let mut sender = client.sender();
        let sent = sent.clone();
        let sending = std::thread::spawn(move || {
            std::io::Write::write_all(&mut sender, &sent).expect("sent");
            sender
                .shutdown(std::net::Shutdown::Write)
                .expect("half closed");
        });
        let got = client.read_to_end();
        sending.join().expect("sent");
        assert!(
            got.starts_with(&expected),
            "{} bytes of {}",
            got.len(),
            expected.len()
        );
        assert!(got.ends_with(b"\r\n"));
    }
    // Large replies too, which do not leave at once.
    let mut client = server.client();
    client.ok(&[&b"SET"[..], key_of(0, 0).as_bytes(), &vec![b'v'; 3_000_000]]);
    client.send(&request(&["GET", &key_of(0, 0)]).repeat(20));
    client.end();
    std::thread::sleep(Duration::from_millis(100));
    let whole = 20 * (b"$3000000\r\n\r\n".len() + 3_000_000);
    assert_eq!(client.read_to_end().len(), whole);
    server.wait_for_clients(Witness::CLIENTS);
    witness.finish();
}

/// Commands that wait when their client goes neither run twice nor hold anything up.
#[test]
fn while_paused() {
    let server = Server::start(&[]);
    let mut boss = server.client();
    boss.ok(&["CLIENT", "PAUSE", "1000000", "ALL"]);
    for n in 0..100 {
        let mut client = server.stranger();
        client.send(&request(&["INCR", &key_of(n % 2, 0)]).repeat(100));
    }
    boss.ok(&["CLIENT", "UNPAUSE"]);
    server.wait_for_clients(1);
    for worker in 0..2 {
        let count = boss.run(&["INCRBY", &key_of(worker, 0), "0"]).int();
        assert!((0..=5000).contains(&count), "{count}");
    }
}
