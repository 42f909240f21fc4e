//! Replies that are made while they are sent.

use crate::common::*;
use rufous_base::{Actor, Input, Source};
use rufous_runtime::{Config, Runtime, start};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const LENGTH: usize = 64 * 1024 * 1024;

/// So many bytes, which keep as much memory as a test says.
#[derive(Clone, Debug)]
struct Numbers {
    next: usize,
    held: Arc<AtomicUsize>,
    copies: Arc<()>,
}

impl Source for Numbers {
    fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
        let end = (self.next + room).min(LENGTH);
        out.extend((self.next..end).map(|n| n as u8));
        self.next = end;
        end < LENGTH
    }

    fn remaining(&self) -> u64 {
        (LENGTH - self.next) as u64
    }

    fn held(&self) -> usize {
        self.held.load(SeqCst)
    }

    fn copy(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

/// Answers a line that begins with `M` with numbers between brackets, others by themselves.
fn node(
    config: Config,
    numbers: &Numbers,
    drained: &Arc<AtomicUsize>,
) -> Runtime<impl Actor + use<>> {
    let (numbers, drained) = (numbers.clone(), Arc::clone(drained));
    start(config, move |_| {
        let (numbers, drained) = (numbers.clone(), Arc::clone(&drained));
        by::<(), _>(move |_, input, fx| match input {
            Input::Received { bytes, reads } => {
                for read in reads {
                    let line = &bytes[read.start..read.end];
                    if line[0] != b'M' {
                        say(fx, read.conn, line);
                        continue;
                    }
                    let begin = fx.output.mark();
                    fx.output.bytes.push(b'(');
                    fx.output.make(numbers.copy());
                    fx.output.bytes.push(b')');
                    fx.write(read.conn, begin);
                }
            }
            Input::Drained { .. } => {
                drained.fetch_add(1, SeqCst);
            }
            _ => {}
        })
    })
    .expect("starts")
}

fn numbers() -> Numbers {
    Numbers {
        next: 0,
        held: Arc::default(),
        copies: Arc::default(),
    }
}

#[test]
fn no_more_is_made_than_the_client_takes() {
    let (numbers, drained) = (numbers(), Arc::default());
    let node = node(config(1), &numbers, &drained);
    let mut slow = client(&node);
    slow.write_all(b"M\n").expect("sent");
    let mut other = client(&node);
    wait_until(&node, |s| s.sum(|w| w.pieces_made) > 0);
    for _ in 0..200 {
        assert_eq!(ask(&mut other, b"quick\n"), b"quick\n");
    }
    let made = node.stats().sum(|w| w.pieces_made) as usize;
    assert!(
        made * 64 * 1024 < LENGTH / 4,
        "{made} pieces: the kernel's buffers"
    );
    // It is not read before it has everything.
    slow.write_all(b"later\n").expect("sent");
    assert_eq!(ask(&mut other, b"quick\n"), b"quick\n");
    assert_eq!(drained.load(SeqCst), 0);
    let mut got = vec![0; LENGTH + 2];
    slow.read_exact(&mut got).expect("all of it");
    assert_eq!((got[0], got[LENGTH + 1]), (b'(', b')'));
    assert!(
        got[1..=LENGTH]
            .iter()
            .enumerate()
            .all(|(n, byte)| *byte == n as u8)
    );
    let mut got = [0; 6];
    slow.read_exact(&mut got).expect("the next reply");
    assert_eq!(&got, b"later\n");
    assert_eq!(drained.load(SeqCst), 1);
    assert_eq!(node.stats().sum(|w| w.dropped_for_output), 0);
    // The test's, and the node's.
    let copies = || Arc::strong_count(&numbers.copies);
    wait_until(&node, |_| copies() <= 3);
}

/// What a source keeps grows when others change the data, whether the client reads or not.
#[test]
fn a_client_that_does_not_read_is_dropped_for_what_its_reply_keeps() {
    let mut bounds = config(1);
    bounds.output_hard_limit = LENGTH;
    let (numbers, drained) = (numbers(), Arc::default());
    let node = node(bounds, &numbers, &drained);
    let mut deaf = client(&node);
    deaf.write_all(b"M\n").expect("sent");
    let mut other = client(&node);
    wait_until(&node, |s| s.sum(|w| w.pieces_made) > 0);
    for _ in 0..500 {
        assert_eq!(ask(&mut other, b"quick\n"), b"quick\n");
    }
    assert_eq!(node.stats().sum(|w| w.dropped_for_output), 0);
    numbers.held.store(LENGTH + 1, SeqCst);
    while node.stats().sum(|w| w.dropped_for_output) == 0 {
        assert_eq!(ask(&mut other, b"quick\n"), b"quick\n");
    }
    wait_until(&node, |s| s.sum(|w| w.connections) == 1);
    let copies = || Arc::strong_count(&numbers.copies);
    wait_until(&node, |_| copies() <= 3);
}
