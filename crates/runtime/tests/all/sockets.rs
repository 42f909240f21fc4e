//! Connections over real sockets: replies, closes, limits.

use crate::common::*;
use rufous_base::{Input, NodeEffect};
use rufous_runtime::{Listen, start};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

#[test]
fn an_echo_comes_back_and_the_node_stops() {
    let node = echo(config(2));
    let mut clients: Vec<_> = (0..10).map(|_| client(&node)).collect();
    for round in 0..10 {
        for (n, stream) in clients.iter_mut().enumerate() {
            let line = format!("client {n} round {round}\n");
            assert_eq!(ask(stream, line.as_bytes()), line.as_bytes());
        }
    }
    let stats = node.stats();
    assert_eq!(stats.sum(|w| w.connections), 10);
    assert_eq!(stats.workers[0].connections, 5, "dealt evenly");
    let handle = node.handle();
    node.stop();
    for stream in &mut clients {
        assert_eq!(read_to_end(stream), b"");
    }
    node.join();
    let stats = handle.stats();
    assert_eq!(stats.sum(|w| w.bytes_in), stats.sum(|w| w.bytes_out));
    assert_eq!(stats.sum(|w| w.connections), 0);
}

#[test]
fn long_pipelines_come_back_whole() {
    let node = echo(config(1));
    let threads: Vec<_> = (0..4u8)
        .map(|n| {
            let mut writer = client(&node);
            std::thread::spawn(move || {
                let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8 ^ n).collect();
                let mut reader = writer.try_clone().expect("a second handle");
                let expected = sent.clone();
                let reading = std::thread::spawn(move || {
                    let mut got = vec![0; expected.len()];
                    reader.read_exact(&mut got).expect("all of it");
                    assert!(got == expected, "every byte in its place");
                });
                writer.write_all(&sent).expect("taken");
                reading.join().expect("read");
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a whole echo");
    }
}

#[test]
fn all_replies_of_a_turn_leave_in_one_send() {
    let value = Arc::new(vec![b'V'; 5000]);
    let node = start(config(1), move |_| {
        let value = Arc::clone(&value);
        by::<(), _>(move |_, input, fx| {
            let Input::Received { bytes, reads } = input else {
                return;
            };
            for read in reads {
                for byte in &bytes[read.start..read.end] {
                    say(fx, read.conn, &[*byte]);
                    // A gap that belongs to nobody: the next write is not adjacent.
                    fx.output.bytes.push(b'!');
                    let start = fx.output.mark();
                    fx.output.share(Arc::clone(&value));
                    fx.write(read.conn, start);
                }
            }
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    stream.write_all(b"abc").expect("sent");
    let mut got = vec![0; 3 * 5001];
    stream.read_exact(&mut got).expect("answered");
    for (n, byte) in b"abc".iter().enumerate() {
        assert_eq!(got[n * 5001], *byte);
        assert!(got[n * 5001 + 1..(n + 1) * 5001].iter().all(|b| *b == b'V'));
    }
    wait_until(&node, |s| s.sum(|w| w.bytes_out) == 3 * 5001);
    let stats = node.stats();
    assert_eq!(stats.sum(|w| w.sends), stats.sum(|w| w.reads));
}

#[test]
fn a_thousand_silent_connections_do_no_harm_and_half_closed_ones_are_answered() {
    let node = echo(config(2));
    let mut silent: Vec<_> = (0..1000).map(|_| client(&node)).collect();
    let mut busy = client(&node);
    for _ in 0..100 {
        assert_eq!(ask(&mut busy, b"here\n"), b"here\n");
    }
    wait_until(&node, |s| s.sum(|w| w.connections) == 1001);
    for stream in &mut silent {
        stream.write_all(b"last words\n").expect("sent");
        stream.shutdown(Shutdown::Write).expect("half closed");
    }
    for stream in &mut silent {
        assert_eq!(read_to_end(stream), b"last words\n");
    }
    wait_until(&node, |s| s.sum(|w| w.connections) == 1);
    assert_eq!(ask(&mut busy, b"still here\n"), b"still here\n");
}

#[test]
fn closing_after_replies_sends_them_first_even_over_unread_input() {
    const SIZE: usize = 16 * 1024 * 1024;
    let mut bounds = config(1);
    bounds.read_bytes = 5;
    let node = start(bounds, |_| {
        by::<(), _>(|_, input, fx| {
            if let Input::Received { bytes, reads } = input {
                assert_eq!(&bytes[reads[0].start..reads[0].end], b"quit\n");
                let start = fx.output.mark();
                fx.output.share(Arc::new(vec![b'x'; SIZE]));
                fx.write(reads[0].conn, start);
                fx.closes
                    .push((reads[0].conn, rufous_base::Close::AfterReplies));
                say(fx, reads[0].conn, b"END");
            }
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    stream.write_all(b"quit\n").expect("sent");
    stream.write_all(&[b'z'; 50_000]).expect("sent, never read");
    let got = read_to_end(&mut stream);
    assert_eq!(got.len(), SIZE + 3);
    assert!(got.ends_with(b"xEND"));
}

#[test]
fn beyond_the_most_clients_the_next_hears_why() {
    let mut few = config(1);
    few.max_clients = 1;
    let node = echo(few);
    let mut first = client(&node);
    assert_eq!(ask(&mut first, b"in\n"), b"in\n");
    let mut second = client(&node);
    assert_eq!(
        read_to_end(&mut second),
        b"-ERR max number of clients reached\r\n"
    );
    assert_eq!(node.stats().rejected, 1);
    // Connections inside the process do not count.
    let mut inside = node.connect().expect("connects");
    inside.send_blocking(b"one more\n").expect("sent");
    let mut got = Vec::new();
    while got.len() < 9 {
        assert!(inside.receive_blocking(&mut got).expect("answered") > 0);
    }
    let mut third = client(&node);
    assert_eq!(ask(&mut third, b"in as well\n"), b"in as well\n");
    drop(first);
    wait_until(&node, |s| s.sum(|w| w.connections) == 2);
    assert_eq!(
        ask(&mut client(&node), b"in its place\n"),
        b"in its place\n"
    );
}

#[test]
fn a_unix_socket_has_its_permissions_and_is_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("node.sock");
    // What a killed node leaves behind.
    drop(UnixListener::bind(&path).expect("bound"));
    assert!(path.exists());
    let mut unix = config(1);
    unix.listen = vec![Listen::Unix {
        path: path.clone(),
        mode: Some(0o750),
    }];
    let node = echo(unix);
    let mode = std::fs::metadata(&path)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
    let mut stream = UnixStream::connect(&path).expect("connects");
    let long = vec![b'u'; 100_000];
    assert_eq!(ask(&mut stream, &long), long);
    node.stop();
    assert_eq!(read_to_end(&mut stream), b"");
    node.join();
    assert!(!path.exists(), "removed");
}

#[test]
fn a_port_in_use_and_a_file_in_the_way_are_errors() {
    let node = echo(config(1));
    let mut same = config(1);
    same.listen = vec![Listen::Tcp(address(&node))];
    let error = start(same, |_| Echo).err().expect("in use").to_string();
    assert!(error.contains(&address(&node).to_string()), "{error}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut over_file = config(1);
    over_file.listen = vec![Listen::Unix {
        path: file.path().into(),
        mode: None,
    }];
    assert!(start(over_file, |_| Echo).is_err());
    assert!(file.path().exists(), "somebody's file is left alone");
    let mut none = config(1);
    none.workers = 0;
    assert!(start(none, |_| Echo).is_err());
}

#[test]
fn a_word_of_a_client_stops_the_node() {
    let node = start(config(2), |_| {
        by::<(), _>(|_, input, fx| {
            if let Input::Received { reads, .. } = input {
                say(fx, reads[0].conn, b"stopping");
                fx.node.push(NodeEffect::Stall(1000));
                fx.node.push(NodeEffect::Shutdown);
                fx.node.push(NodeEffect::Shutdown);
            }
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    stream.write_all(b"shutdown\n").expect("sent");
    assert_eq!(read_to_end(&mut stream), b"stopping");
    let handle = node.handle();
    node.join();
    assert!(handle.connect().is_err());
}
