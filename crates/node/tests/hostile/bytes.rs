//! Keys and values of any bytes.

use crate::common::*;
use std::collections::BTreeSet;

fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    keys.extend((0..=255u8).map(|byte| vec![b'k', 0, byte, 0xff]));
    keys.push(Vec::new());
    keys.push(vec![0; 1000]);
    keys.push(b"\xc3\x28 \xe2\x82 \xf0\x28\x8c\xbc \xed\xa0\x80".to_vec());
    keys.push(b"a\r\nb\r\n$3\r\n".to_vec());
    keys.push(b"{\xff}\0{".to_vec());
    keys.push((0..=255).collect());
    keys
}

#[test]
fn any_bytes_come_back_as_they_were() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let mut clients = server.one_at_each_worker();
    let keys = odd_keys();
    for (n, key) in keys.iter().enumerate() {
        let value = [&key[..], b"\0\xfe", key].concat();
        clients[n % 2].ok(&[&b"SET"[..], key, &value]);
        let [one, other] = &mut clients;
        for client in [one, other] {
            assert_eq!(client.run(&[&b"GET"[..], key]), Reply::Bulk(value.clone()));
            assert_eq!(
                client.run(&[&b"STRLEN"[..], key]),
                Reply::Int(value.len() as i64)
            );
            assert_eq!(client.run(&[&b"EXISTS"[..], key]), Reply::Int(1));
        }
    }
    let expected: BTreeSet<Vec<u8>> = keys.iter().cloned().collect();
    assert_eq!(all_keys(&mut clients[0]), expected, "KEYS");
    assert_eq!(scan(&mut clients[1]), expected, "SCAN");
    // There and back, over workers too.
    for key in &keys {
        let there = [b"renamed\0", &key[..]].concat();
        let value = [&key[..], b"\0\xfe", key].concat();
        clients[0].ok(&[&b"RENAME"[..], key, &there]);
        assert_eq!(clients[1].run(&[&b"EXISTS"[..], key]), Reply::Int(0));
        assert_eq!(
            clients[1].run(&[&b"GET"[..], &there]),
            Reply::Bulk(value.clone())
        );
        clients[1].ok(&[&b"RENAME"[..], &there, key]);
        assert_eq!(clients[0].run(&[&b"GETDEL"[..], key]), Reply::Bulk(value));
    }
    assert!(scan(&mut clients[0]).is_empty());
    witness.finish();
}

/// The witness has keys of its own.
fn others(keys: Vec<Reply>) -> impl Iterator<Item = Vec<u8>> {
    keys.into_iter()
        .map(Reply::bulk)
        .filter(|key| !key.starts_with(b"witness:"))
}

fn all_keys(client: &mut Client) -> BTreeSet<Vec<u8>> {
    others(client.run(&["KEYS", "*"]).array()).collect()
}

fn scan(client: &mut Client) -> BTreeSet<Vec<u8>> {
    let (mut found, mut cursor) = (BTreeSet::new(), b"0".to_vec());
    loop {
        let [next, keys] =
            <[Reply; 2]>::try_from(client.run(&[&b"SCAN"[..], &cursor]).array()).expect("two");
        found.extend(others(keys.array()));
        cursor = next.bulk();
        if cursor == b"0" {
            return found;
        }
    }
}

/// Names of clients, passwords and patterns are bytes as well.
#[test]
fn any_bytes_as_other_arguments() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for byte in 0..=255u8 {
        let odd = [&[byte][..], b"\xc3", &[byte]].concat();
        let commands: [&[&[u8]]; 9] = [
            &[&odd],
            &[b"SET", b"k", b"v", &odd],
            &[b"CLIENT", b"SETNAME", &odd],
            &[b"CLIENT", &odd],
            &[b"CONFIG", b"GET", &odd],
            &[b"KEYS", &odd],
            &[b"SCAN", &odd],
            &[b"COMMAND", b"INFO", &odd],
            &[b"INFO", &odd],
        ];
        for command in commands {
            client.send(&[request(command), request(&[b"ECHO", &odd[..]])].concat());
            client.read();
            assert_eq!(client.read(), Reply::Bulk(odd.clone()), "{command:?}");
        }
    }
}
