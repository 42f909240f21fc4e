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
