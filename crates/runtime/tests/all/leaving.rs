//! Connections that are closed between two requests, and a node that stops when its clients have
//! left.

use crate::common::*;
use rufous_base::{Close, Effects, Input};
use rufous_runtime::start;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The end of the connection, if it is here.
fn has_ended(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("set");
    match peeked {
        Ok(read) => read == 0,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    }
}

#[test]
fn a_client_that_has_read_its_last_reply_finds_the_connection_ended() {
    let node = start(config(1), |_| {
        by::<(), _>(|_, input, fx: &mut Effects<()>| {
            if let Input::Received { reads, .. } = input {
                say(fx, reads[0].conn, b"last\n");
                fx.closes.push((reads[0].conn, Close::AfterReplies));
            }
        })
    })
    .expect("starts");
    for _ in 0..500 {
        let mut stream = client(&node);
        assert_eq!(ask(&mut stream, b"word\n"), b"last\n");
        assert!(has_ended(&stream), "it would send its next request");
    }
}

#[test]
fn an_idle_connection_is_closed_and_one_with_unread_bytes_is_not() {
    let (entered, enters) = channel();
    let (go, goes) = channel::<()>();
    let goes = Mutex::new(Some(goes));
    let node = start(config(1), move |_| {
        let entered = entered.clone();
        let goes = goes.lock().expect("whole").take();
        by::<(), _>(move |_, input, fx: &mut Effects<()>| {
            let Input::Received { bytes, reads } = input else {
                return;
            };
            say(fx, reads[0].conn, &bytes[reads[0].start..reads[0].end]);
            fx.idle_closes.push(reads[0].conn);
            let _ = entered.send(());
            let _ = goes.as_ref().expect("one worker").recv();
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    stream.write_all(b"first").expect("sent");
    enters.recv().expect("in the step");
    // Nothing reads it before the step ends.
    stream.write_all(b"second").expect("sent");
    go.send(()).expect("goes on");
    let mut got = [0; 5];
    stream.read_exact(&mut got).expect("answered");
    enters
        .recv_timeout(Duration::from_secs(50))
        .expect("the connection is open, and read");
    go.send(()).expect("goes on");
    assert_eq!(read_to_end(&mut stream), b"second");
}

#[test]
fn a_stopping_node_serves_its_clients_until_they_have_left() {
    let mut patient = config(2);
    patient.farewell = Duration::from_secs(100);
    let node = echo(patient);
    let mut stays = client(&node);
    assert_eq!(ask(&mut stays, b"before\n"), b"before\n");
    node.stop();
    let begun = Instant::now();
    while TcpStream::connect(address(&node)).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(50), "it listens");
    }
    assert_eq!(ask(&mut stays, b"after\n"), b"after\n");
    drop(stays);
    node.join();
    assert!(begun.elapsed() < Duration::from_secs(90), "left by all");
}

#[test]
fn a_stopping_node_does_not_wait_for_ever() {
    let mut impatient = config(1);
    impatient.farewell = Duration::from_millis(50);
    let node = echo(impatient);
    let mut stays = client(&node);
    assert_eq!(ask(&mut stays, b"before\n"), b"before\n");
    node.stop();
    assert_eq!(read_to_end(&mut stays), b"");
    node.join();
}
