//! Several workers: messages, back-pressure, stopping; connections in process.

use crate::common::*;
use rufous_base::{Actor, ConnId, Effects, Input, NodeEffect, WorkerId};
use rufous_runtime::{Config, Runtime, start};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Travels to the next worker and back.
struct Hop {
    /// Counted per sender and receiver.
    number: u64,
    answer: bool,
    conn: ConnId,
    byte: u8,
}

/// Answers each byte after a hop to the next worker and back.
fn hopping(config: Config) -> Runtime<impl Actor> {
    let workers = config.workers as u16;
    start(config, move |me: WorkerId| {
        let mut sent = vec![0; usize::from(workers)];
        let mut got = vec![0; usize::from(workers)];
        let mut post = move |fx: &mut Effects<Hop>, to: WorkerId, answer, conn, byte| {
            let number = sent[to.index()];
            sent[to.index()] += 1;
            fx.messages.push((
                to,
                Hop {
                    number,
                    answer,
                    conn,
                    byte,
                },
            ));
        };
        by::<Hop, _>(move |_, input, fx: &mut Effects<Hop>| match input {
            Input::Received { bytes, reads } => {
                let next = WorkerId((me.0 + 1) % workers);
                for read in reads {
                    for byte in &bytes[read.start..read.end] {
                        post(fx, next, false, read.conn, *byte);
                    }
                }
            }
            Input::Message { from, message } => {
                assert_eq!(message.number, got[from.index()], "once and in order");
                got[from.index()] += 1;
                if message.answer {
                    say(fx, message.conn, &[message.byte]);
                } else {
                    post(fx, from, true, message.conn, message.byte);
                }
            }
            _ => {}
        })
    })
    .expect("starts")
}

fn flood(workers: usize, ring_messages: usize) {
    const BYTES: usize = 5_000;
    let mut tiny = config(workers);
    tiny.ring_messages = ring_messages;
    let node = hopping(tiny);
    let threads: Vec<_> = (0..2 * workers)
        .map(|n| {
            let mut writer = client(&node);
            std::thread::spawn(move || {
                let sent: Vec<u8> = (0..BYTES).map(|i| (i * (n + 1)) as u8).collect();
                writer.write_all(&sent).expect("taken");
                let mut got = vec![0; BYTES];
                writer.read_exact(&mut got).expect("all came back");
                assert!(got == sent, "in order");
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("answered");
    }
    let handle = node.handle();
    node.stop();
    node.join();
    let stats = handle.stats();
    let messages = (2 * workers * BYTES * 2) as u64;
    assert_eq!(stats.sum(|w| w.messages_sent), messages);
    assert_eq!(stats.sum(|w| w.messages_received), messages);
    assert!(stats.sum(|w| w.ring_full) > 0, "the rings were too small");
}

#[test]
fn two_workers_with_full_rings_to_each_other_do_not_deadlock() {
    flood(2, 2);
}

#[test]
fn a_cycle_of_workers_with_full_rings_does_not_deadlock() {
    flood(4, 2);
}

#[test]
fn a_sleeping_worker_is_woken_for_a_single_message() {
    let node = hopping(config(2));
    let mut stream = client(&node);
    for n in 0..500u32 {
        let byte = [n as u8];
        assert_eq!(ask(&mut stream, &byte), byte);
    }
    assert!(node.stats().sum(|w| w.wakes) > 0);
}

#[test]
fn stopping_waits_for_what_is_under_way_on_another_worker() {
    let node = start(config(2), |me: WorkerId| {
        let mut waiting = 0;
        let mut stopping = false;
        let mut owed: Option<(WorkerId, ConnId)> = None;
        by_itself::<ConnId, _>(move |now, input, fx: &mut Effects<ConnId>| {
            match input {
                Input::Received { reads, .. } => {
                    waiting += 1;
                    fx.messages.push((WorkerId(1 - me.0), reads[0].conn));
                }
                Input::Message { from, message } if waiting == 0 => {
                    owed = Some((from, message));
                    fx.wake_at_us = Some(now.mono_us + 30_000);
                }
                Input::Message { message, .. } => {
                    waiting -= 1;
                    say(fx, message, b"late but whole");
                }
                Input::Tick => fx.messages.extend(owed.take()),
                Input::Stop => stopping = true,
                _ => {}
            }
            if stopping && waiting == 0 && owed.is_none() {
                fx.node.push(NodeEffect::Stopped);
            }
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    stream.write_all(b"?").expect("sent");
    wait_until(&node, |s| s.sum(|w| w.messages_received) > 0);
    node.stop();
    assert_eq!(read_to_end(&mut stream), b"late but whole");
    node.join();
}

#[test]
fn an_actor_that_never_finishes_is_not_waited_for_for_ever() {
    let told = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&told);
    let mut hasty = config(2);
    hasty.drain = Duration::from_millis(20);
    let node = start(hasty, move |_| {
        let tell = Arc::clone(&tell);
        by_itself::<(), _>(move |_, input, _| {
            if matches!(input, Input::Stop) {
                tell.store(true, SeqCst);
            }
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    wait_until(&node, |s| s.sum(|w| w.connections) == 1);
    drop(node);
    assert!(told.load(SeqCst));
    assert_eq!(read_to_end(&mut stream), b"");
}

#[test]
fn replies_that_wait_are_sent_before_the_end() {
    const SIZE: usize = 32 * 1024 * 1024;
    let node = start(config(1), |_| {
        by::<(), _>(|_, input, fx: &mut Effects<()>| {
            if let Input::Received { reads, .. } = input {
                let start = fx.output.mark();
                fx.output.share(Arc::new(vec![b'r'; SIZE]));
                fx.write(reads[0].conn, start);
                fx.node.push(NodeEffect::Shutdown);
            }
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    stream.write_all(b"all of it").expect("sent");
    let reading = std::thread::spawn(move || read_to_end(&mut stream).len());
    node.join();
    assert_eq!(reading.join().expect("read"), SIZE);
}

#[test]
fn a_connection_inside_the_process_is_like_any_other() {
    let (seen, infos) = mpsc::channel();
    let node = start(config(2), move |_| {
        let seen = seen.clone();
        by::<(), _>(move |_, input, fx: &mut Effects<()>| match input {
            Input::Opened { info, .. } => seen.send(info).expect("the test listens"),
            Input::Received { bytes, reads } => {
                for read in reads {
                    let bytes = &bytes[read.start..read.end];
                    say(fx, read.conn, bytes);
                    word(read.conn, bytes, fx);
                }
            }
            _ => {}
        })
    })
    .expect("starts");

    let mut blocking = node.connect().expect("connects");
    assert!(infos.recv().expect("opened").is_internal());
    let sent = vec![b'i'; 200_000];
    blocking.send_blocking(&sent).expect("sent");
    let mut got = Vec::new();
    while got.len() < sent.len() {
        assert!(blocking.receive_blocking(&mut got).expect("answered") > 0);
    }
    assert_eq!(got, sent);
    blocking.send_blocking(b"bye\n").expect("sent");
    got.clear();
    while blocking.receive_blocking(&mut got).expect("read") > 0 {}
    assert_eq!(got, b"bye\n");

    let handle = node.handle();
    let (tell, told) = mpsc::channel();
    node.spawn(async move {
        let mut connection = handle.connect().expect("connects");
        connection
            .send(b"from the control thread")
            .await
            .expect("sent");
        let mut got = Vec::new();
        connection.receive(&mut got).await.expect("answered");
        tell.send(got).expect("the test listens");
    });
    assert_eq!(told.recv().expect("done"), b"from the control thread");
    wait_until(&node, |s| s.sum(|w| w.connections) == 0);

    let mut last = node.connect().expect("connects");
    drop(node);
    got.clear();
    assert_eq!(last.receive_blocking(&mut got).expect("closed in order"), 0);
}
