//! The largest values and keys there may be.

use crate::common::*;

const MOST: usize = 512 * 1024 * 1024;

#[test]
fn the_largest_value_there_and_back() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let mut clients = server.one_at_each_worker();
    let value: Vec<u8> = (0..MOST).map(|n| (n >> 12) as u8).collect();
    // From a worker that does not own the key: it travels, and is not copied.
    clients[0].ok(&[&b"SET"[..], key_of(1, 0).as_bytes(), &value]);
    witness.goes_on();
    for client in &mut clients {
        let got = client.run(&["GET", &key_of(1, 0)]).bulk();
        assert!(got == value, "another value came back");
        drop(got);
        witness.goes_on();
    }
    // The value, and what it was while it grew.
    server.assert_grew_less(before, 5 * MOST as u64 / 2);
    // Not one byte more, however it is tried.
    let too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    let key = key_of(1, 0);
    for line in [
        format!("APPEND {key} x"),
        format!("SETRANGE {key} {MOST} x"),
        format!("SETRANGE {key} 536870911 xy"),
    ] {
        assert_eq!(
            clients[0].words(&line),
            Reply::Error(too_long.into()),
            "{line}"
        );
    }
    assert_eq!(clients[1].run(&["STRLEN", &key]), Reply::Int(MOST as i64));
    assert_eq!(
        clients[1].run(&["GETRANGE", &key, "0", "15"]),
        Reply::Bulk(value[..16].to_vec())
    );
    for _ in 0..3 {
        clients[0].ok(&[&b"SET"[..], key.as_bytes(), &value]);
        assert_eq!(clients[1].run(&["DEL", &key]), Reply::Int(1));
    }
    // Nor does it add up.
    server.assert_grew_less(before, 7 * MOST as u64 / 2);
    witness.finish();
}

#[test]
fn a_key_of_a_hundred_megabytes() {
    const LEN: usize = 100 * 1024 * 1024;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let mut client = server.client();
    let key = vec![b'k'; LEN];
    client.ok(&[&b"SET"[..], &key, b"value"]);
    assert_eq!(
        client.run(&[&b"GET"[..], &key]),
        Reply::Bulk(b"value".to_vec())
    );
    witness.goes_on();
    assert_eq!(
        client.run(&[&b"EXISTS"[..], &key, &key[1..]]),
        Reply::Int(1)
    );
    client.ok(&[&b"RENAME"[..], &key, b"short"]);
    assert_eq!(
        client.run(&["GET", "short"]),
        Reply::Bulk(b"value".to_vec())
    );
    assert_eq!(client.run(&[&b"DEL"[..], &key]), Reply::Int(0));
    witness.finish();
    // As an argument to several workers it is in several places at once.
    server.assert_grew_less(before, 16 * LEN as u64);
}

/// Elements of nothing, and of a hundred megabytes.
#[test]
fn elements_of_no_bytes_and_of_a_hundred_megabytes() {
    const LEN: usize = 100 * 1024 * 1024;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let large: Vec<u8> = (0..LEN).map(|n| (n >> 10) as u8).collect();
    let [mut client, mut other] = server.one_at_each_worker();
    for element in [&b""[..], &large] {
        let before = server.peak();
        for worker in 0..2 {
            let of = |n| key_of(worker, n);
            let (set, hash, zset, list, rank) = (of(1), of(2), of(3), of(4), of(5));
            let bulk = || Reply::Bulk(element.to_vec());
            let mut run = |words: &[&[u8]], reply: Reply| {
                let got = client.run(words);
                assert!(got == reply, "another reply to {:?}", words[0]);
            };
            run(&[b"SADD", set.as_bytes(), b"x", element], Reply::Int(2));
            run(&[b"SADD", set.as_bytes(), element], Reply::Int(0));
            run(&[b"SISMEMBER", set.as_bytes(), element], Reply::Int(1));
            run(&[b"HSET", hash.as_bytes(), element, element], Reply::Int(1));
            run(&[b"HGET", hash.as_bytes(), element], bulk());
            run(&[b"ZADD", zset.as_bytes(), b"1", element], Reply::Int(1));
            run(&[b"ZRANK", zset.as_bytes(), element], Reply::Int(0));
            run(&[b"RPUSH", list.as_bytes(), b"x", element], Reply::Int(2));
            run(&[b"LINDEX", list.as_bytes(), b"1"], bulk());
            run(
                &[
                    b"RPOPLPUSH",
                    list.as_bytes(),
                    key_of(1 - worker, 6).as_bytes(),
                ],
                bulk(),
            );
            run(
                &[b"RANK.ADD", rank.as_bytes(), b"3", b"1", element],
                Reply::Status("OK".into()),
            );
            witness.goes_on();
            let dumped = other.run(&["DUMP", &hash]).bulk();
            other.ok(&[&b"RESTORE"[..], of(7).as_bytes(), b"0", &dumped]);
            assert!(other.run(&[&b"HGET"[..], of(7).as_bytes(), element]).bulk() == element);
            witness.goes_on();
            for key in [set, hash, zset, list, rank, of(7), key_of(1 - worker, 6)] {
                other.run(&["DEL", &key]);
            }
        }
        // The keys: nothing, or all bytes of a bulk string.
        client.run(&[&b"RPUSH"[..], element, b"x"]);
        other.run(&[&b"RENAME"[..], element, b"{a}"]);
        other.run(&[&b"RENAME"[..], b"{a}", element]);
        assert_eq!(client.run(&[&b"LLEN"[..], element]), Reply::Int(1));
        assert_eq!(client.run(&[&b"DEL"[..], element]), Reply::Int(1));
        // What there is at once: five elements, the payload, requests, replies.
        server.assert_grew_less(before, 24 * LEN as u64);
        println!("memory grew by {} MiB", (server.peak() - before) / MIB);
    }
    assert_eq!(client.run(&["DBSIZE"]), other.run(&["DBSIZE"]));
    witness.finish();
}
