//! Clients that send and never read.

use crate::common::*;
use std::io::{ErrorKind, Write};
use std::time::Duration;

/// Sends the same over and over until the server has stopped reading for a
/// while, or has closed, or `most` bytes are sent. Returns the bytes sent.
fn push_until_blocked(client: &Client, bytes: &[u8], most: usize) -> usize {
    let mut stream = client.sender();
    stream
        .set_write_timeout(Some(Duration::from_secs(1)))
        .expect("set");
    let mut sent = 0;
    while sent < most {
        match stream.write(&bytes[sent % bytes.len()..]) {
            Ok(n) => sent += n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(_) => break,
        }
    }
    stream.set_write_timeout(Some(HANG)).expect("set");
    sent
}

/// It is no longer read from once a mebibyte or so waits; when it reads after
/// all, it gets every answer.
#[test]
fn reads_of_large_values_stop_at_the_high_water_mark() {
    const VALUE: usize = 100_000;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    for (n, size) in [(1, VALUE), (2, 3000)] {
        for worker in 0..2 {
            server
                .client()
                .ok(&[&b"SET"[..], key_of(worker, n).as_bytes(), &vec![b'v'; size]]);
        }
        let get = [
            request(&["GET", &key_of(0, n)]),
            request(&["GET", &key_of(1, n)]),
        ]
        .concat();
        let before = server.rss();
        let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
        let many = get.repeat(2000);
        let sent: Vec<usize> = clients
            .iter()
            .map(|c| push_until_blocked(c, &many, 64 << 20))
            .collect();
        assert!(
            sent.iter().all(|sent| *sent < 64 << 20),
            "reading never stopped: {sent:?}"
        );
        witness.goes_on();
        let grew = server.rss().saturating_sub(before);
        println!(
            "values of {size} bytes: {sent:?} bytes taken, memory grew by {} KiB",
            grew / 1024
        );
        assert!(grew < 96 * MIB, "memory grew by {} KiB", grew / 1024);
        // One of them reads after all; the others are dropped.
        let whole = sent[0] / (get.len() / 2);
        let reader = &mut clients[0];
        let rest = sent[0] % (get.len() / 2);
        for _ in 0..whole {
            assert_eq!(reader.read().bulk().len(), size);
        }
        if rest > 0 {
            reader.send(&get[..get.len() / 2][rest..]);
            reader.read();
        }
        assert_eq!(reader.run(&["ECHO", "all"]), Reply::Bulk(b"all".to_vec()));
        drop(clients);
        server.wait_for_clients(Witness::CLIENTS);
    }
    assert!(
        !server.log().contains("does not read"),
        "nobody was dropped: {}",
        server.log()
    );
    witness.finish();
}

/// One pipeline that would make copies of a large value without end.
#[test]
fn one_batch_of_requests_makes_no_gigabytes() {
    const VALUE: usize = 4_000_000;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    for worker in 0..2 {
        let mut asker = server
            .one_at_each_worker()
            .into_iter()
            .nth(worker)
            .expect("two");
        let key = key_of(worker, 7);
        asker.ok(&[&b"SET"[..], key.as_bytes(), &vec![b'v'; VALUE]]);
        let before = server.peak();
        let pair = [
            request(&["GET", &key]),
            request(&["SETRANGE", &key, "0", "x"]),
        ]
        .concat();
        asker.send(&pair.repeat(400));
        for _ in 0..400 {
            assert_eq!(asker.read().bulk().len(), VALUE);
            assert_eq!(asker.read(), Reply::Int(VALUE as i64));
        }
        server.assert_grew_less(before, 200 * MIB);
    }
    witness.finish();
}

#[test]
fn a_monitor_that_never_reads_is_dropped_alone() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let mut reading = server.client();
    reading.ok(&["MONITOR"]);
    let reader = std::thread::spawn(move || while reading.try_read().is_ok() {});
    let mut deaf: Vec<Client> = (0..4).map(|_| server.client()).collect();
    deaf.iter_mut().for_each(|client| client.ok(&["MONITOR"]));
    let before = server.peak();
    let mut writer = server.client();
    let value = vec![b'v'; 60_000];
    let mut dropped = false;
    for _ in 0..4000 {
        writer.ok(&[&b"SET"[..], b"k", &value]);
        dropped = server.log().matches("does not read").count() == 4;
        if dropped {
            break;
        }
    }
    assert!(
        dropped,
        "four monitors that do not read are dropped: {}",
        server.log()
    );
    // What they had waiting, and nothing for those who read.
    server.assert_grew_less(before, 400 * MIB);
    witness.goes_on();
    server.wait_for_clients(Witness::CLIENTS + 2);
    writer.ok(&["SET", "k", "small"]);
    drop((deaf, writer));
    witness.finish();
    drop(server);
    assert!(reader.join().is_ok());
}

/// Before authentication there is next to nothing to be had.
#[test]
fn strangers_have_hardly_any_room_for_replies() {
    const STRANGERS: usize = 40;
    let server = Server::start(&["--requirepass", "secret"]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let junk = b"a\r\n".repeat(20_000);
    let strangers: Vec<Client> = (0..STRANGERS).map(|_| server.stranger()).collect();
    for stranger in &strangers {
        let sent = push_until_blocked(stranger, &junk, 256 << 20);
        assert!(sent < 256 << 20, "reading never stopped");
    }
    witness.goes_on();
    server.assert_grew_less(before, (STRANGERS as u64) * MIB / 2 + 24 * MIB);
    drop(strangers);
    server.wait_for_clients(Witness::CLIENTS);
    witness.finish();
}

const ELEMENTS: usize = 1_000_000;

/// Makes collections of a million elements, and gives requests for all of one
/// with the length of the reply: of both workers in turn.
fn millions(server: &Server) -> [(Vec<u8>, usize); 4] {
    let keys = [0, 1, 0, 1].map(|worker| key_of(worker, worker));
    let [list, set, hash, zset] = [0, 1, 2, 3].map(|n| format!("{}:{n}", keys[n]));
    let mut writer = server.client();
    for from in (0..ELEMENTS).step_by(10_000) {
        let names = (from..from + 10_000).map(|n| format!("{n:012}"));
        let (mut once, mut twice) = (vec![String::new(); 2], vec![String::new(); 2]);
        for name in names {
            once.push(name.clone());
            twice.extend([name.clone(), name]);
        }
        for (command, key, words) in [
            ("RPUSH", &list, &once),
            ("SADD", &set, &once),
            ("HSET", &hash, &twice),
            ("ZADD", &zset, &twice),
        ] {
            let mut words = words.clone();
            words[0] = command.to_owned();
            words[1].clone_from(key);
            assert!(writer.run(&words).int() >= 10_000);
        }
    }
    [
        (request(&["LRANGE", &list, "0", "-1"]), ELEMENTS),
        (request(&["SMEMBERS", &set]), ELEMENTS),
        (request(&["HGETALL", &hash]), 2 * ELEMENTS),
        (
            request(&["ZRANGE", &zset, "0", "-1", "WITHSCORES"]),
            2 * ELEMENTS,
        ),
    ]
}

/// A reply of a million elements is built whole. Who never reads has one of
/// them waiting, however many it asks for; and not even those add up without end.
#[test]
fn replies_of_a_million_elements_to_many_who_never_read() {
    const READERS: usize = 20;
    const EACH: usize = 4;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let asks = millions(&server);
    let before = server.peak();
    let mut readers: Vec<Client> = (0..READERS).map(|_| server.client()).collect();
    // Each asks for what its own worker has: the next is only run when it has read.
    let mut asked = Vec::new();
    for (n, reader) in readers.iter_mut().enumerate() {
        let ask = reader.worker(2) + n / 2 % 2 * 2;
        reader.send(&asks[ask].0.repeat(EACH));
        asked.push(asks[ask].1);
    }
    // Two of them read in the end, when all that may wait for the others does.
    for (reader, elements) in readers.iter_mut().zip(asked).take(2) {
        for _ in 0..EACH {
            assert_eq!(reader.read().array().len(), elements);
        }
    }
    witness.goes_on();
    let grew = server.peak().saturating_sub(before);
    println!("{READERS} readers: memory grew by {} MiB", grew / MIB);
    // 19 to 38 MB each, by capacity at most twice that while it is built.
    server.assert_grew_less(before, READERS as u64 * 80 * MIB);
    drop(readers);
    server.wait_for_clients(Witness::CLIENTS);
    witness.finish();
}

/// What is sent ahead for keys of another worker than the connection's own
/// waits for the reader likewise, but for the first two.
#[test]
fn replies_of_a_million_elements_of_any_worker_to_many_who_never_read() {
    const READERS: usize = 8;
    const EACH: usize = 20;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let asks = millions(&server);
    let before = server.peak();
    let mut readers: Vec<Client> = (0..READERS).map(|_| server.client()).collect();
    let mut asked = Vec::new();
    for (n, reader) in readers.iter_mut().enumerate() {
        let other = 1 - reader.worker(2);
        // Those of the other worker only, or of both in turn.
        let step = if n < READERS / 2 { 2 } else { 1 };
        let which: Vec<usize> = (0..EACH).map(|i| (other + step * i) % 4).collect();
        let sent: Vec<&[u8]> = which.iter().map(|&i| &asks[i].0[..]).collect();
        reader.send(&sent.concat());
        asked.push(which);
    }
    witness.goes_on();
    for n in [0, READERS - 1] {
        for &ask in asked[n].iter().take(6) {
            assert_eq!(readers[n].read().array().len(), asks[ask].1);
        }
    }
    witness.goes_on();
    let grew = server.peak().saturating_sub(before);
    println!("{READERS} readers: memory grew by {} MiB", grew / MIB);
    // Three replies of 38 MB at most, and what building one takes.
    server.assert_grew_less(before, READERS as u64 * 200 * MIB);
    drop(readers);
    server.wait_for_clients(Witness::CLIENTS);
    witness.finish();
}

/// Replies as long as a request says, to clients that never read: they do not exist before they are read, and
/// other clients do not wait for them.
#[test]
fn long_draws_take_no_memory_and_delay_no_other_client() {
    const ELEMENTS: usize = 20_000;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let mut writer = server.client();
    for from in (0..ELEMENTS).step_by(1000) {
        let names: Vec<String> = (from..from + 1000).map(|n| format!("element{n}")).collect();
        let names = names.iter().map(String::as_str);
        let set: Vec<&str> = ["SADD", "set"].into_iter().chain(names.clone()).collect();
        let hash = ["HSET", "hash"].into_iter();
        let hash: Vec<&str> = hash
            .chain(names.clone().flat_map(|n| [n, "value"]))
            .collect();
        let sorted = ["ZADD", "sorted"].into_iter();
        let sorted: Vec<&str> = sorted.chain(names.flat_map(|n| ["1", n])).collect();
        for words in [set, hash, sorted] {
            assert_eq!(writer.run(&words), Reply::Int(1000));
        }
    }
    let before = server.peak();
    let draws = [
        request(&["SRANDMEMBER", "set", "-100000000"]),
        request(&["HRANDFIELD", "hash", "-100000000", "WITHVALUES"]),
        request(&["ZRANDMEMBER", "sorted", "-100000000", "WITHSCORES"]),
    ];
    let mut deaf: Vec<Client> = (0..12).map(|_| server.client()).collect();
    for (client, draw) in deaf.iter_mut().zip(draws.iter().cycle()) {
        client.send(draw);
        witness.goes_on();
    }
    // One reads some, and the next reply comes behind it all.
    let mut reader = server.client();
    reader.send(&request(&["SRANDMEMBER", "set", "-100000"]));
    reader.send(&request(&["ECHO", "end"]));
    assert!(matches!(reader.read(), Reply::Array(all) if all.len() == 100_000));
    assert_eq!(reader.read(), Reply::Bulk(b"end".to_vec()));
    witness.goes_on();
    server.assert_grew_less(before, 64 * MIB);
    drop((deaf, reader, writer));
    server.wait_for_clients(Witness::CLIENTS);
    witness.finish();
}
