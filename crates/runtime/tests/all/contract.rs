//! What the contract of `rufous_base::actor` promises an actor, recorded by one.

use crate::common::*;
use rufous_base::{ConnId, Effects, Input, Now};
use rufous_runtime::start;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Life {
    inputs: usize,
    closed: usize,
    peer: String,
}

/// Fails the process where the order of one connection's inputs is wrong.
#[derive(Default)]
struct Lives {
    lives: HashMap<ConnId, Life>,
    last_us: u64,
}

impl Lives {
    fn note(&mut self, now: Now, input: &Input<'_, ()>) {
        assert!(now.mono_us >= self.last_us, "time never goes back");
        self.last_us = now.mono_us;
        match input {
            Input::Opened { conn, info } => {
                assert!(info.is_local && !info.is_internal());
                let life = Life {
                    peer: info.peer.clone(),
                    ..Life::default()
                };
                assert!(self.lives.insert(*conn, life).is_none(), "an id once");
            }
            Input::Received { bytes, reads } => {
                let mut seen = Vec::new();
                let mut at = 0;
                for read in *reads {
                    assert!(!seen.contains(&read.conn), "each connection once");
                    assert!(read.start == at && read.end > at && read.end <= bytes.len());
                    at = read.end;
                    seen.push(read.conn);
                    self.open(read.conn);
                }
            }
            Input::Drained { conn } => self.open(*conn),
            Input::Closed { conn } => {
                self.open(*conn);
                self.lives.get_mut(conn).expect("opened").closed += 1;
            }
            _ => {}
        }
    }

    fn open(&mut self, conn: ConnId) {
        let life = self.lives.get_mut(&conn).expect("opened before anything");
        assert_eq!(life.closed, 0, "closed is the last");
        life.inputs += 1;
    }
}

#[test]
fn connections_open_first_and_close_last_and_once_whoever_closes() {
    let lives = Arc::new(Mutex::new(Lives::default()));
    let recorded = Arc::clone(&lives);
    let node = start(config(1), move |_| {
        let lives = Arc::clone(&recorded);
        by::<(), _>(move |now, input, fx: &mut Effects<()>| {
            lives.lock().expect("whole").note(now, &input);
            if let Input::Received { bytes, reads } = input {
                for read in reads {
                    let bytes = &bytes[read.start..read.end];
                    say(fx, read.conn, bytes);
                    word(read.conn, bytes, fx);
                    // Asking twice is no error.
                    word(read.conn, bytes, fx);
                }
            }
        })
    })
    .expect("starts");
    let mut total = 0;
    for round in 0..40 {
        let mut streams: Vec<TcpStream> = (0..6).map(|_| client(&node)).collect();
        total += streams.len() as u64;
        for stream in &mut streams {
            assert_eq!(ask(stream, b"hello\n"), b"hello\n");
        }
        let [a, b, c, d, e, f] = streams.as_mut_slice() else {
            unreachable!("six");
        };
        // The client closes; resets over an unread reply; half-closes.
        a.shutdown(Shutdown::Both).expect("closed");
        b.write_all(b"never read\n").expect("sent");
        c.shutdown(Shutdown::Write).expect("half closed");
        // The node closes, with and without its reply; both at once.
        d.write_all(b"bye\n").expect("sent");
        e.write_all(b"now\n").expect("sent");
        f.write_all(b"bye\n").expect("sent");
        f.shutdown(Shutdown::Both).expect("closed");
        assert_eq!(read_to_end(c), b"");
        assert_eq!(read_to_end(d), b"bye\n");
        let mut rest = Vec::new();
        if e.read_to_end(&mut rest).is_ok() {
            assert!(rest.is_empty() || rest == b"now\n", "round {round}");
        }
        drop(streams);
        wait_until(&node, |s| s.sum(|w| w.connections) == 0);
    }
    drop(node);
    let lives = lives.lock().expect("whole");
    assert_eq!(lives.lives.len() as u64, total);
    for (conn, life) in &lives.lives {
        assert_eq!(life.closed, 1, "{conn:?} of {}", life.peer);
        assert!(life.inputs >= 2, "{conn:?}");
    }
}

#[test]
fn work_left_over_is_resumed_with_the_same_bytes_before_anything_else() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 200;
    let node = start(config(1), move |_| {
        // Where the last `Received` lay, and what of it is not answered yet.
        let mut left: Vec<(ConnId, usize, usize)> = Vec::new();
        let mut held = Vec::new();
        let mut last_us = 0;
        by::<(), _>(move |now, input, fx: &mut Effects<()>| {
            assert!(now.mono_us >= last_us, "not back after a `Resume` either");
            last_us = now.mono_us;
            let bytes = match input {
                Input::Received { bytes, reads } => {
                    assert!(left.is_empty(), "the rest comes before new bytes");
                    left.extend(reads.iter().rev().map(|r| (r.conn, r.start, r.end)));
                    held = bytes.to_vec();
                    bytes
                }
                Input::Resume { bytes } => {
                    assert!(!left.is_empty(), "only where work was left over");
                    assert_eq!(bytes, held, "the bytes of the last `Received`");
                    bytes
                }
                _ => {
                    assert!(left.is_empty(), "the rest comes before anything else");
                    return;
                }
            };
            // A `Tick` later in the same turn.
            fx.wake_at_us = Some(now.mono_us);
            // A step that takes its time: what follows must not see older time.
            let until = std::time::Instant::now() + std::time::Duration::from_micros(3);
            while std::time::Instant::now() < until {}
            // One byte a step, so that there is always a rest.
            if let Some((conn, start, end)) = left.pop() {
                say(fx, conn, &bytes[start..start + 1]);
                if start + 1 < end {
                    left.push((conn, start + 1, end));
                }
            }
            fx.more = !left.is_empty();
        })
    })
    .expect("starts");
    let mut streams: Vec<_> = (0..CLIENTS).map(|_| client(&node)).collect();
    for round in 0..ROUNDS {
        for (n, stream) in streams.iter_mut().enumerate() {
            let line = format!("line {round} of {n}\n");
            stream.write_all(line.as_bytes()).expect("sent");
        }
        for (n, stream) in streams.iter_mut().enumerate() {
            let line = format!("line {round} of {n}\n");
            let mut got = vec![0; line.len()];
            stream.read_exact(&mut got).expect("answered");
            assert_eq!(got, line.as_bytes());
        }
    }
    let handle = node.handle();
    drop(streams);
    wait_until(&handle, |s| s.sum(|w| w.connections) == 0);
    let stats = handle.stats();
    assert_eq!(
        stats.sum(|w| w.sends),
        stats.sum(|w| w.reads),
        "replies leave after the last step of the turn, together"
    );
}

#[test]
fn a_held_connection_is_not_read_until_it_is_let_go() {
    let node = start(config(1), |_| {
        let mut held = None;
        by::<(), _>(move |_, input, fx: &mut Effects<()>| {
            let Input::Received { bytes, reads } = input else {
                return;
            };
            for read in reads {
                assert_ne!(held, Some(read.conn), "read while held");
                match &bytes[read.start..read.end] {
                    b"hold me\n" => {
                        held = Some(read.conn);
                        fx.holds.push((read.conn, true));
                        say(fx, read.conn, b"held\n");
                    }
                    b"let go\n" => {
                        fx.holds.push((held.take().expect("held"), false));
                        say(fx, read.conn, b"gone\n");
                    }
                    other => say(fx, read.conn, other),
                }
            }
        })
    })
    .expect("starts");
    let (mut one, mut two) = (client(&node), client(&node));
    let mut answer = [0; 5];
    for _ in 0..50 {
        one.write_all(b"hold me\n").expect("sent");
        one.read_exact(&mut answer).expect("held");
        one.write_all(b"waits\n").expect("sent");
        for _ in 0..5 {
            assert_eq!(ask(&mut two, b"meanwhile\n"), b"meanwhile\n");
        }
        two.write_all(b"let go\n").expect("sent");
        two.read_exact(&mut answer).expect("let go");
        let mut waited = [0; 6];
        one.read_exact(&mut waited).expect("read at last");
        assert_eq!(&waited, b"waits\n");
    }
}

#[test]
fn ticks_come_when_they_are_due_and_the_last_wish_holds() {
    let node = start(config(1), |_| {
        let mut due = None;
        let mut conn = None;
        by::<(), _>(move |now, input, fx: &mut Effects<()>| match input {
            Input::Opened { conn: opened, .. } => {
                conn = Some(opened);
                // Later, then sooner: the last one holds.
                fx.wake_at_us = Some(now.mono_us + 3_600_000_000);
                fx.wake_at_us = Some(now.mono_us + 5_000);
                due = fx.wake_at_us;
            }
            Input::Tick => {
                let at = due.take().expect("a tick only where one was asked for");
                assert!(now.mono_us >= at, "never too early");
                say(fx, conn.expect("opened"), b"tick\n");
            }
            Input::Received { .. } => {
                // Sooner than a wish that is far away already.
                fx.wake_at_us = Some(now.mono_us);
                due = fx.wake_at_us;
            }
            _ => {}
        })
    })
    .expect("starts");
    let mut stream = client(&node);
    let mut tick = [0; 5];
    for _ in 0..20 {
        stream.read_exact(&mut tick).expect("a tick");
        assert_eq!(&tick, b"tick\n");
        stream.write_all(b"again\n").expect("sent");
    }
}
