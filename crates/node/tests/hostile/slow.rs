//! Clients that send one byte at a time.

use crate::common::*;

#[test]
fn a_thousand_half_written_commands() {
    const CLIENTS: usize = 1000;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect();
    let requests: Vec<Vec<u8>> = (0..CLIENTS)
        .map(|n| request(&["SET", &key_of(n / 2 % 2, n), &format!("value{n:06}")]))
        .collect();
    let longest = requests.iter().map(Vec::len).max().expect("some");
    for at in 0..longest - 1 {
        for (client, request) in clients.iter_mut().zip(&requests) {
            if let Some(byte) = request[..request.len() - 1].get(at) {
                client.send(&[*byte]);
            }
        }
        if at % 16 == 0 {
            witness.goes_on();
        }
    }
    // Nothing has run yet; half of them never send the rest.
    assert_eq!(
        server.client().run(&["EXISTS", &key_of(0, 0)]),
        Reply::Int(0)
    );
    clients.truncate(CLIENTS / 2);
    for (client, request) in clients.iter_mut().zip(&requests) {
        client.send(&request[request.len() - 1..]);
        assert_eq!(client.read(), client::ok());
    }
    let mut asker = server.client();
    for n in 0..CLIENTS {
        let expected = if n < CLIENTS / 2 {
            Reply::Bulk(format!("value{n:06}").into_bytes())
        } else {
            Reply::Null
        };
        assert_eq!(asker.run(&["GET", &key_of(n / 2 % 2, n)]), expected);
    }
    server.assert_grew_less(before, 32 * MIB);
    drop((clients, asker));
    server.wait_for_clients(Witness::CLIENTS);
    witness.finish();
}

/// The same byte by byte, for everything that a request is made of.
#[test]
fn replies_do_not_depend_on_how_bytes_arrive() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let large = vec![b'L'; 70_000];
    let mut bytes = request(&["SET", &key_of(0, 1), "one"]);
    bytes.extend_from_slice(b"get {b}:1\r\nECHO \"a\\x41\"\r\n*0\r\n");
    bytes.extend_from_slice(&request(&[&b"SET"[..], key_of(1, 1).as_bytes(), &large]));
    bytes.extend_from_slice(&request(&["STRLEN", &key_of(1, 1)]));
    for chunk in [1, 7, 4096] {
        for part in bytes.chunks(chunk) {
            client.send(part);
        }
        assert_eq!(client.read(), client::ok());
        assert_eq!(client.read(), Reply::Bulk(b"one".to_vec()));
        assert_eq!(client.read(), Reply::Bulk(b"aA".to_vec()));
        assert_eq!(client.read(), client::ok());
        assert_eq!(client.read(), Reply::Int(70_000));
    }
}
