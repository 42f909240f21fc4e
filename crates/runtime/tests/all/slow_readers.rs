//! Clients that do not read their replies.

use crate::common::*;
use rufous_base::{Actor, Backlog, Close, Input};
use rufous_runtime::{Config, Runtime, start};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const LINE: usize = 64;
const REPLY: usize = 1024 * 1024;

#[derive(Default)]
struct Seen {
    big: AtomicUsize,
    drained: AtomicUsize,
}

/// Answers a line of `B`s with so many mebibytes by reference, one of `C`s with
/// as many copied, one of `S`s likewise as a stranger, one of `N`s as `B`s to a node,
/// others by themselves.
fn node(config: Config, times: usize, seen: &Arc<Seen>) -> Runtime<impl Actor + use<>> {
    let seen = Arc::clone(seen);
    start(config, move |_| {
        let seen = Arc::clone(&seen);
        let value = Arc::new(vec![b'v'; REPLY]);
        by::<(), _>(move |_, input, fx| match input {
            Input::Received { bytes, reads } => {
                for read in reads {
                    let kind = bytes[read.start];
                    if kind == b'N' {
                        fx.backlogs.push((read.conn, Backlog::Node));
                    }
                    if !matches!(kind, b'B' | b'C' | b'S' | b'N') {
                        say(fx, read.conn, &bytes[read.start..read.end]);
                        continue;
                    }
                    if kind == b'S' {
                        fx.backlogs.push((read.conn, Backlog::Stranger));
                    }
                    seen.big.fetch_add(1, SeqCst);
                    let start = fx.output.mark();
                    for _ in 0..times {
                        match kind {
                            b'B' | b'N' => fx.output.share(Arc::clone(&value)),
                            _ => fx.output.bytes.extend_from_slice(&value),
                        }
                    }
                    fx.write(read.conn, start);
                }
            }
            Input::Drained { .. } => {
                seen.drained.fetch_add(1, SeqCst);
            }
            _ => {}
        })
    })
    .expect("starts")
}

#[test]
fn a_slow_reader_is_not_read_until_it_has_drained_and_others_go_on() {
    const LINES: usize = 64;
    let mut one_line_each = config(1);
    one_line_each.read_bytes = LINE;
    let seen = Arc::new(Seen::default());
    let node = node(one_line_each, 1, &seen);
    let mut slow = client(&node);
    slow.write_all(&[b'B'; LINE * LINES]).expect("sent");
    let mut other = client(&node);
    for _ in 0..200 {
        assert_eq!(ask(&mut other, b"quick\n"), b"quick\n");
    }
    // The kernel's buffers and the high-water mark hold far less than all replies.
    assert!(seen.big.load(SeqCst) < LINES);
    assert_eq!(seen.drained.load(SeqCst), 0);
    let mut got = vec![0; REPLY];
    for _ in 0..LINES {
        slow.read_exact(&mut got).expect("in the end all of them");
        assert!(got.iter().all(|byte| *byte == b'v'));
    }
    assert_eq!(seen.big.load(SeqCst), LINES);
    assert!(seen.drained.load(SeqCst) > 0);
    assert_eq!(ask(&mut slow, b"back again\n"), b"back again\n");
}

#[test]
fn another_node_is_read_whatever_waits_for_it() {
    const LINES: usize = 64;
    let mut one_line_each = config(1);
    one_line_each.read_bytes = LINE;
    let seen = Arc::new(Seen::default());
    let node = node(one_line_each, 1, &seen);
    let mut slow = client(&node);
    slow.write_all(&[b'N'; LINE * LINES]).expect("sent");
    wait_until(&node, |_| seen.big.load(SeqCst) == LINES);
    let mut got = vec![0; REPLY];
    for _ in 0..LINES {
        slow.read_exact(&mut got).expect("in the end all of them");
    }
}

#[test]
fn over_the_hard_limit_one_connection_is_dropped_alone() {
    let mut bounds = config(1);
    bounds.output_hard_limit = 16 * REPLY;
    let seen = Arc::new(Seen::default());
    let node = node(bounds, 64, &seen);
    let mut other = client(&node);
    assert_eq!(ask(&mut other, b"before\n"), b"before\n");
    let mut greedy = client(&node);
    greedy.write_all(&[b'C'; LINE]).expect("sent");
    let mut all = Vec::new();
    let _ = greedy.read_to_end(&mut all);
    assert!(all.len() < 64 * REPLY, "dropped, not served");
    wait_until(&node, |s| s.sum(|w| w.dropped_for_output) == 1);
    wait_until(&node, |s| s.sum(|w| w.connections) == 1);
    assert_eq!(ask(&mut other, b"after\n"), b"after\n");
}

#[test]
fn over_the_limit_of_all_only_who_asks_for_much_is_dropped() {
    const EACH: usize = 32;
    let mut bounds = config(1);
    bounds.output_total_limit = 3 * EACH * REPLY - 1;
    let seen = Arc::new(Seen::default());
    let node = node(bounds, EACH, &seen);
    let mut other = client(&node);
    let mut patient: Vec<_> = (0..2).map(|_| client(&node)).collect();
    for client in &mut patient {
        client.write_all(&[b'C'; LINE]).expect("sent");
    }
    wait_until(&node, |_| seen.big.load(SeqCst) == 2);
    let mut got = vec![0; EACH * REPLY];
    // More ask than there is room for; whoever is dropped, the first are not.
    let mut late: Vec<_> = (0..3).map(|_| client(&node)).collect();
    for client in &mut late {
        client.write_all(&[b'C'; LINE]).expect("sent");
    }
    wait_until(&node, |s| s.sum(|w| w.dropped_for_output) >= 1);
    assert_eq!(ask(&mut other, b"after\n"), b"after\n");
    for client in &mut patient {
        client.read_exact(&mut got).expect("all of them");
    }
    // What was read makes room again.
    drop(late);
    wait_until(&node, |s| s.sum(|w| w.connections) == 3);
    let dropped = node.stats().sum(|w| w.dropped_for_output);
    for client in &mut patient {
        client.write_all(&[b'C'; LINE]).expect("sent");
    }
    for client in &mut patient {
        client.read_exact(&mut got).expect("all of them");
    }
    assert_eq!(node.stats().sum(|w| w.dropped_for_output), dropped);
}

#[test]
fn what_is_held_elsewhere_counts_for_nothing() {
    let mut bounds = config(1);
    bounds.output_hard_limit = REPLY;
    let node = node(bounds, 64, &Arc::default());
    let mut patient = client(&node);
    patient.write_all(&[b'B'; LINE]).expect("sent");
    let mut got = vec![0; REPLY];
    for _ in 0..64 {
        patient.read_exact(&mut got).expect("all of them");
        assert!(got.iter().all(|byte| *byte == b'v'));
    }
    assert_eq!(node.stats().sum(|w| w.dropped_for_output), 0);
}

#[test]
fn a_stranger_is_dropped_sooner() {
    let node = node(config(1), 16, &Arc::default());
    let mut client_of_ours = client(&node);
    client_of_ours.write_all(&[b'C'; LINE]).expect("sent");
    let mut stranger = client(&node);
    stranger.write_all(&[b'S'; LINE]).expect("sent");
    wait_until(&node, |s| s.sum(|w| w.dropped_for_output) == 1);
    let mut all = Vec::new();
    let _ = stranger.read_to_end(&mut all);
    assert!(all.len() < 16 * REPLY, "dropped, not served");
    let mut got = vec![0; 16 * REPLY];
    client_of_ours.read_exact(&mut got).expect("all of them");
}

/// Replies that come long after the client has ended its side still reach it.
#[test]
fn a_client_that_sends_no_more_gets_its_replies() {
    let ended = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&ended);
    let node = start(config(1), move |_| {
        let noted = Arc::clone(&noted);
        let mut asked = None;
        by_hand::<(), _>(move |now, input, fx| match input {
            Input::Received { reads, .. } => asked = reads.first().map(|read| read.conn),
            Input::Ended { conn } => {
                assert_eq!(asked, Some(conn), "after what came before");
                noted.fetch_add(1, SeqCst);
                fx.wake_at_us = Some(now.mono_us + 50_000);
            }
            Input::Tick => {
                let conn = asked.expect("asked before");
                say(fx, conn, b"late");
                fx.closes.push((conn, Close::AfterReplies));
            }
            _ => {}
        })
    })
    .expect("starts");
    let mut one = client(&node);
    one.write_all(b"question").expect("sent");
    one.shutdown(Shutdown::Write).expect("half closed");
    assert_eq!(read_to_end(&mut one), b"late");
    assert_eq!(ended.load(SeqCst), 1, "told once");
    wait_until(&node, |s| s.sum(|w| w.connections) == 0);
}

/// An actor that looks at nothing but `Drained` hears of it when it asks.
#[test]
fn drained_comes_also_where_nothing_waits() {
    let node = start(config(1), |_| {
        by::<(), _>(|_, input, fx| match input {
            Input::Received { reads, .. } => fx.drains.extend(reads.iter().map(|read| read.conn)),
            Input::Drained { conn } => say(fx, conn, b"drained"),
            _ => {}
        })
    })
    .expect("starts");
    let mut one = client(&node);
    one.write_all(b"tell me").expect("sent");
    let mut got = [0; 7];
    one.read_exact(&mut got).expect("told");
    assert_eq!(&got, b"drained");
}
