//! Clients that do not read their replies.

mod common;

use common::*;
use rufous_base::Input;
use rufous_runtime::{Config, Runtime, start};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const LINE: usize = 64;
const REPLY: usize = 1024 * 1024;

#[derive(Default)]
struct Seen {
    big: AtomicUsize,
    drained: AtomicUsize,
}

/// Answers a line of `B`s with a mebibyte per `B` wanted, others by themselves.
fn node(config: Config, times: usize, seen: &Arc<Seen>) -> Runtime<impl Sized> {
    let seen = Arc::clone(seen);
    start(config, move |_| {
        let seen = Arc::clone(&seen);
        let value = Arc::new(vec![b'v'; REPLY]);
        by::<(), _>(move |_, input, fx| match input {
            Input::Received { bytes, reads } => {
                for read in reads {
                    if bytes[read.start] != b'B' {
                        say(fx, read.conn, &bytes[read.start..read.end]);
                        continue;
                    }
                    seen.big.fetch_add(1, SeqCst);
                    let start = fx.output.mark();
                    for _ in 0..times {
                        fx.output.share(Arc::clone(&value));
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
fn over_the_hard_limit_one_connection_is_dropped_alone() {
    let mut bounds = config(1);
    bounds.output_hard_limit = 16 * REPLY;
    let seen = Arc::new(Seen::default());
    let node = node(bounds, 64, &seen);
    let mut other = client(&node);
    assert_eq!(ask(&mut other, b"before\n"), b"before\n");
    let mut greedy = client(&node);
    greedy.write_all(&[b'B'; LINE]).expect("sent");
    let mut all = Vec::new();
    let _ = greedy.read_to_end(&mut all);
    assert!(all.len() < 64 * REPLY, "dropped, not served");
    wait_until(&node, |s| s.sum(|w| w.dropped_for_output) == 1);
    wait_until(&node, |s| s.sum(|w| w.connections) == 1);
    assert_eq!(ask(&mut other, b"after\n"), b"after\n");
}
