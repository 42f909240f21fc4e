//! Requests that announce much, and send little or never end.

use crate::common::*;

/// Memory is taken for what has arrived, not for what was announced.
#[test]
fn a_million_arguments_announced_and_never_sent() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let (before, reserved) = (server.peak(), server.reserved());
    let mut clients = Vec::new();
    for n in 0..400 {
        let mut client = server.client();
        client.send(match n % 4 {
            0 => b"*1048576\r\n",
            1 => b"*1048576\r\n$536870912\r\n",
            2 => b"*1048576\r\n$3\r\nSET\r\n$536870912\r\nabc",
            _ => b"*3\r\n$536870912\r\nx",
        });
        clients.push(client);
    }
    witness.goes_on();
    let mut asker = server.client();
    wait_until("all have been read", || {
        let list = asker.run(&["CLIENT", "LIST"]).bulk();
        list.split(|b| *b == b'\n')
            .filter(|l| l.windows(9).any(|w| w == b"cmd=NULL "))
            .count()
            == 400
    });
    server.assert_grew_less(before, 64 * MIB);
    // Nor is anything set apart that only the first byte would make memory of.
    let grew = (server.reserved() - reserved) / MIB;
    assert!(grew < 1536, "{grew} MiB of address space");
    drop(clients);
    server.wait_for_clients(Witness::CLIENTS + 1);
    witness.finish();
}

#[test]
fn the_most_arguments_at_once() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let mut client = server.client();
    let mut args = vec!["DEL"; 1024 * 1024];
    args[1] = "x";
    assert_eq!(client.run(&args), Reply::Int(0));
    args.push("one more");
    client.try_send(&request(&args));
    let got = client.read_to_end();
    // Closing over what was not read may take the error away from the client.
    assert!(
        got.is_empty() || got.starts_with(b"-ERR Protocol error: invalid multibulk length\r\n")
    );
    witness.finish();
    server.ping();
}

/// `client-query-buffer-limit`: an endless request ends.
#[test]
fn more_than_one_client_may_have_waiting() {
    let server = Server::start(&["--client-query-buffer-limit", "2mb"]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let small = [b"$10000\r\n", &[b'x'; 10_000][..], b"\r\n"].concat();
    for round in 0..20 {
        let mut client = server.client();
        match round % 2 {
            0 => {
                client.try_send(b"*1000000\r\n");
                for _ in 0..2000 {
                    client.try_send(&small);
                }
            }
            _ => {
                client.try_send(b"*2\r\n$4\r\nECHO\r\n$20000000\r\n");
                for _ in 0..2000 {
                    client.try_send(&small);
                }
            }
        }
        assert_eq!(client.read_to_end(), b"");
    }
    // What is whole by then is run: bytes alone offend nobody.
    let mut client = server.client();
    let value = vec![b'v'; 1_000_000];
    for _ in 0..10 {
        client.ok(&[&b"SET"[..], b"k", &value]);
    }
    witness.finish();
    server.assert_grew_less(before, 64 * MIB);
}
