//! Replies that wait: they leave in order, when their gate opens, or never.

use crate::common::*;
use rufous_base::disk::{DiskOp, DiskRequest, Lane};
use rufous_base::{Actor, Close, ConnId, Effects, Input, NodeEffect, Now, Until, WorkerId};
use rufous_runtime::{Runtime, start};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Does what its clients say, a word at a time:
/// `+` answers behind a new gate, `.` without one, `q` likewise and closes, `x` closes at once,
/// `l` answers what only the log has to have, behind a new gate,
/// `i` closes if the connection is idle, `d` asks for a `Drained`, a digit passes gates up to it, `A` to `Z` likewise in the log alone, `*` all, `!` abandons and
/// answers, `-` likewise but for what waits for the log alone, `?` abandons what it answers as well. A `Drained` answers `D`.
#[derive(Default)]
struct Words {
    gates: u64,
    gate: Option<u64>,
    turns: u64,
    told: Arc<AtomicU64>,
}

impl Words {
    fn say(&mut self, conn: ConnId, word: u8, fx: &mut Effects<()>) {
        match word {
            b'+' | b'?' | b'l' => {
                self.gates += 1;
                self.gate = Some(self.gates);
                if word == b'?' {
                    fx.abandon(Until::Logged);
                }
            }
            b'0'..=b'9' => return fx.passed = u64::from(word - b'0'),
            b'*' => return fx.passed = self.gates,
            b'A'..=b'Z' => return fx.logged = u64::from(word - b'A'),
            b'd' => return fx.drains.push(conn),
            b'q' => fx.closes.push((conn, Close::AfterReplies)),
            b'i' => return fx.idle_closes.push(conn),
            b'x' => return fx.at_once.closes.push((conn, Close::Now)),
            b'!' => fx.abandon(Until::Logged),
            b'-' => fx.abandon(Until::Passed),
            _ => {}
        }
        let start = fx.output.mark();
        fx.output.bytes.push(word);
        let until = match word {
            b'l' => Until::Logged,
            _ => Until::Passed,
        };
        fx.write_until(conn, start, until);
    }
}

impl Actor for Words {
    type Message = ();

    fn step(&mut self, _: Now, input: Input<'_, ()>, fx: &mut Effects<()>) {
        match input {
            Input::Received { bytes, reads } => {
                for read in reads {
                    for word in &bytes[read.start..read.end] {
                        self.say(read.conn, *word, fx);
                    }
                }
            }
            Input::Drained { conn } => say(fx, conn, b"D"),
            Input::Ended { conn } => fx.closes.push((conn, Close::AfterReplies)),
            Input::Stop => fx.node.push(NodeEffect::Stopped),
            _ => {}
        }
    }

    fn end_turn(&mut self, _: Now, fx: &mut Effects<()>) {
        fx.gate = self.gate.take();
        self.turns += 1;
        self.told.store(self.turns, SeqCst);
    }
}

fn words() -> Runtime<Words> {
    start(config(1), |_| Words::default()).expect("starts")
}

fn held(node: &Runtime<Words>, turns: u64) {
    wait_until(node, |s| s.sum(|w| w.held_turns) == turns);
}

/// Sends, and waits until so many turns are held.
fn holds(node: &Runtime<Words>, stream: &mut TcpStream, bytes: &[u8], turns: u64) {
    stream.write_all(bytes).expect("sent");
    held(node, turns);
}

fn has_nothing(stream: &TcpStream) {
    stream.set_nonblocking(true).expect("set");
    let error = (&mut &*stream).read(&mut [0]).expect_err("no reply yet");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).expect("set");
}

fn gets(stream: &mut TcpStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).expect("answered");
    assert_eq!(got, bytes);
}

#[test]
fn replies_wait_for_their_gate_and_later_ones_behind_them() {
    let node = words();
    let [mut a, mut b, mut c, mut control] = [(); 4].map(|()| client(&node));
    holds(&node, &mut a, b"+", 1);
    holds(&node, &mut b, b".", 2);
    holds(&node, &mut a, b"+", 3);
    holds(&node, &mut c, b".q", 4);
    [&a, &b, &c].into_iter().for_each(has_nothing);
    // Gate 1 lets the second go as well, which has none of its own.
    holds(&node, &mut control, b"1", 2);
    gets(&mut a, b"+");
    gets(&mut b, b".");
    [&a, &b, &c].into_iter().for_each(has_nothing);
    assert_eq!(node.stats().sum(|w| w.connections), 4, "closes wait too");
    control.write_all(b"2").expect("sent");
    gets(&mut a, b"+");
    assert_eq!(read_to_end(&mut c), b".q");
    held(&node, 0);
    // Nothing waits: no gate, no wait.
    assert_eq!(ask(&mut b, b"."), b".");
    // Passed in the turn that waits for it.
    b.write_all(b"9").expect("sent");
    assert_eq!(ask(&mut b, b"+"), b"+");
}

#[test]
fn a_connection_that_a_reply_waits_for_is_not_idle() {
    let node = words();
    let [mut a, mut b, mut control] = [(); 3].map(|()| client(&node));
    holds(&node, &mut a, b"+", 1);
    a.write_all(b"i").expect("sent");
    b.write_all(b"i").expect("sent");
    assert_eq!(read_to_end(&mut b), b"", "others do not matter");
    wait_until(&node, |s| s.sum(|w| w.connections) == 2);
    control.write_all(b"*").expect("sent");
    gets(&mut a, b"+");
    a.write_all(b"i").expect("sent");
    assert_eq!(read_to_end(&mut a), b"");
}

#[test]
fn what_only_the_log_has_to_have_does_not_wait_for_more() {
    let node = words();
    let [mut a, mut b, mut c, mut d, mut control] = [(); 5].map(|()| client(&node));
    holds(&node, &mut a, b"+", 1);
    holds(&node, &mut b, b"l", 2);
    holds(&node, &mut d, b"ld", 3);
    // It is in no log yet, and nothing passes what came before it.
    control.write_all(b"B").expect("sent");
    [&a, &b, &d].into_iter().for_each(has_nothing);
    control.write_all(b"C").expect("sent");
    gets(&mut b, b"l");
    held(&node, 2);
    // What is said to be drained has left; the answer to that waits behind the first.
    control.write_all(b"D").expect("sent");
    gets(&mut d, b"l");
    held(&node, 2);
    // In the log already: it does not wait at all.
    control.write_all(b"Z").expect("sent");
    assert_eq!(ask(&mut b, b"l"), b"l");
    [&a, &d].into_iter().for_each(has_nothing);
    // Behind others of its own connection, in its turn and after it.
    holds(&node, &mut a, b"l", 3);
    holds(&node, &mut b, b"+l", 4);
    holds(&node, &mut b, b"ll", 5);
    c.write_all(b"l+lq").expect("sent");
    gets(&mut c, b"l");
    held(&node, 6);
    [&a, &b, &c, &d].into_iter().for_each(has_nothing);
    control.write_all(b"*").expect("sent");
    gets(&mut a, b"+l");
    gets(&mut b, b"+lll");
    gets(&mut d, b"D");
    assert_eq!(read_to_end(&mut c), b"+lq");
    held(&node, 0);
}

#[test]
fn what_waits_for_the_log_alone_outlives_what_waits_for_more() {
    let node = words();
    let [mut a, mut b, mut c, mut control] = [(); 4].map(|()| client(&node));
    holds(&node, &mut a, b"+", 1);
    holds(&node, &mut b, b"l", 2);
    holds(&node, &mut c, b"l+", 4);
    // What is said in the turn itself waits behind what is left.
    control.write_all(b"-").expect("sent");
    assert_eq!(read_to_end(&mut a), b"");
    assert_eq!(read_to_end(&mut c), b"");
    has_nothing(&b);
    held(&node, 3);
    let mut control = client(&node);
    control.write_all(b"Z").expect("sent");
    gets(&mut b, b"l");
    held(&node, 1);
    holds(&node, &mut control, b"*", 0);
    assert_eq!(ask(&mut b, b"l"), b"l");
}

#[test]
fn what_closes_at_once_does_not_wait_for_replies() {
    let node = words();
    let [mut a, mut b, mut control] = [(); 3].map(|()| client(&node));
    holds(&node, &mut a, b"+", 1);
    b.write_all(b"x").expect("sent");
    assert_eq!(read_to_end(&mut b), b"");
    has_nothing(&a);
    control.write_all(b"1").expect("sent");
    gets(&mut a, b"+");
}

#[test]
fn replies_of_one_connection_from_many_turns_leave_in_order() {
    let node = words();
    let (mut a, mut control) = (client(&node), client(&node));
    let mut all = Vec::new();
    for turn in 0..40 {
        let bytes: Vec<u8> = match turn {
            3 => vec![b'.'; 50_000],
            n if n % 5 == 0 => b"+".to_vec(),
            n => vec![b'a' + n as u8 % 3; n],
        };
        a.write_all(&bytes).expect("sent");
        all.extend_from_slice(&bytes);
        wait_until(&node, |s| s.sum(|w| w.bytes_in) == all.len() as u64);
    }
    has_nothing(&a);
    control.write_all(b"9").expect("sent");
    gets(&mut a, &all);
}

#[test]
fn a_drain_is_told_after_the_replies_that_it_follows() {
    let node = words();
    let (mut a, mut control) = (client(&node), client(&node));
    holds(&node, &mut a, b"+d", 1);
    has_nothing(&a);
    control.write_all(b"1").expect("sent");
    gets(&mut a, b"+D");
}

#[test]
fn what_is_abandoned_is_never_answered_and_its_connections_are_closed() {
    let node = words();
    let [mut a, mut b, mut c, mut d, mut other] = [(); 5].map(|()| client(&node));
    holds(&node, &mut a, b"+", 1);
    holds(&node, &mut b, b".", 2);
    // One that only waits to be told goes on.
    holds(&node, &mut d, b"d", 3);
    // Its own reply waits for nothing that failed.
    other.write_all(b"!").expect("sent");
    gets(&mut other, b"!");
    for stream in [&mut a, &mut b] {
        assert_eq!(read_to_end(stream), b"");
    }
    gets(&mut d, b"D");
    held(&node, 0);
    wait_until(&node, |s| s.sum(|w| w.connections) == 3);
    assert_eq!(ask(&mut other, b"."), b".");
    // This one's does, and so its connection goes with the others.
    c.write_all(b"?").expect("sent");
    assert_eq!(read_to_end(&mut c), b"");
    assert_eq!(ask(&mut other, b"."), b".");
}

#[test]
fn what_was_passed_leaves_before_the_rest_is_abandoned() {
    let node = words();
    let [mut a, mut b, mut other] = [(); 3].map(|()| client(&node));
    holds(&node, &mut a, b"+", 1);
    holds(&node, &mut b, b"+", 2);
    other.write_all(b"1!").expect("sent");
    gets(&mut a, b"+");
    gets(&mut other, b"!");
    assert_eq!(read_to_end(&mut b), b"");
    assert_eq!(ask(&mut a, b"."), b".");
}

#[test]
fn a_turn_is_ended_once() {
    let told = Arc::new(AtomicU64::new(0));
    let tell = Arc::clone(&told);
    let node = start(config(1), move |_| Words {
        told: Arc::clone(&tell),
        ..Words::default()
    })
    .expect("starts");
    let mut a = client(&node);
    for _ in 0..100 {
        assert_eq!(ask(&mut a, b"."), b".");
    }
    let handle = node.handle();
    drop(node);
    // The last one closes what is still open, after the last of the loop.
    assert_eq!(told.load(SeqCst), handle.stats().sum(|w| w.turns) + 1);
}

/// Answers `size` bytes to each read, behind a write to a file; the first read
/// also makes the lane of the writes wait for somebody to open the fifo.
struct Keeper {
    size: usize,
    writes: u64,
    gates: u64,
    /// Reads that came while the fifo was shut.
    reads: Arc<AtomicU64>,
    bytes: usize,
}

const BLOCKER: u64 = 0;

impl Keeper {
    fn ask(&mut self, op: DiskOp, id: u64, fx: &mut Effects<()>) {
        fx.disk.push(DiskRequest {
            id,
            lane: Lane::Log,
            op,
        });
    }
}

impl Actor for Keeper {
    type Message = ();

    fn step(&mut self, _: Now, input: Input<'_, ()>, fx: &mut Effects<()>) {
        match input {
            Input::Received { reads, .. } => {
                if self.writes == 0 {
                    let block = DiskOp::Read {
                        file: "fifo".into(),
                        at: 0,
                        bytes: 1,
                    };
                    self.ask(block, BLOCKER, fx);
                }
                self.reads.fetch_add(reads.len() as u64, SeqCst);
                for read in reads {
                    let start = fx.output.mark();
                    fx.output.share(Arc::new(vec![b'r'; self.size]));
                    fx.write(read.conn, start);
                }
                self.writes += 1;
                let write = DiskOp::Write {
                    file: "file".into(),
                    at: self.writes - 1,
                    bytes: vec![b'w'; self.bytes],
                    sync: self.writes == 1,
                };
                self.ask(write, self.writes, fx);
            }
            Input::Disk(done) => {
                done.result.expect("done");
                if done.id != BLOCKER {
                    assert_eq!(done.id, fx.passed + 1, "in order");
                    fx.passed = done.id;
                }
            }
            Input::Ended { conn } => fx.closes.push((conn, Close::AfterReplies)),
            Input::Stop => fx.node.push(NodeEffect::Stopped),
            _ => {}
        }
    }

    fn end_turn(&mut self, _: Now, fx: &mut Effects<()>) {
        if self.gates < self.writes {
            self.gates = self.writes;
            fx.gate = Some(self.gates);
        }
    }
}

/// A node whose disk stands still until `open` is called.
fn keeper(folder: &Path, size: usize, bytes: usize) -> (Runtime<Keeper>, Arc<AtomicU64>) {
    fifo(&folder.join("fifo"));
    std::fs::write(folder.join("file"), b"").expect("made");
    let mut config = config(1);
    config.data_dir = Some(folder.to_path_buf());
    let reads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&reads);
    let node = start(config, move |_: WorkerId| Keeper {
        size,
        writes: 0,
        gates: 0,
        reads: Arc::clone(&counted),
        bytes,
    });
    (node.expect("starts"), reads)
}

#[test]
fn a_reply_does_not_leave_before_its_write_is_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, _) = keeper(folder.path(), 3, 4);
    let mut stream = client(&node);
    stream.write_all(b"x").expect("sent");
    wait_until(&node, |s| s.sum(|w| w.disk_requests) == 2);
    wait_until(&node, |s| s.sum(|w| w.held_turns) == 1);
    has_nothing(&stream);
    let file = folder.path().join("file");
    assert_eq!(std::fs::read(&file).expect("read"), b"");
    open(&folder.path().join("fifo"));
    gets(&mut stream, b"rrr");
    assert_eq!(std::fs::read(&file).expect("read"), b"wwww");
}

#[test]
fn a_node_that_stops_waits_for_what_its_replies_wait_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, _) = keeper(folder.path(), 3, 4);
    let mut stream = client(&node);
    stream.write_all(b"x").expect("sent");
    wait_until(&node, |s| s.sum(|w| w.held_turns) == 1);
    node.stop();
    let fifo = folder.path().join("fifo");
    let opener = std::thread::spawn(move || {
        // A node that does not wait ends meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(50));
        open(&fifo);
    });
    assert_eq!(read_to_end(&mut stream), b"rrr");
    opener.join().expect("opened");
    node.join();
}

#[test]
fn nothing_is_read_while_much_waits_to_be_answered() {
    const SIZE: usize = 8 << 20;
    // The eighth goes over the bound of 64 MiB: it counts its bookkeeping too.
    const FIRST: u64 = 8;
    let folder = tempfile::tempdir().expect("a folder");
    let (node, reads) = keeper(folder.path(), SIZE, 1);
    let mut streams: Vec<TcpStream> = (0..=FIRST).map(|_| client(&node)).collect();
    for (n, stream) in streams.iter_mut().enumerate().take(FIRST as usize) {
        stream.write_all(b"x").expect("sent");
        wait_until(&node, |s| s.sum(|w| w.held_turns) == n as u64 + 1);
    }
    let seen = reads_of_one_more(&reads, &mut streams[FIRST as usize]);
    open(&folder.path().join("fifo"));
    assert_eq!(seen, FIRST);
    for stream in &mut streams {
        gets(stream, &vec![b'r'; SIZE]);
    }
    assert_eq!(reads.load(SeqCst), FIRST + 1);
}

#[test]
fn nothing_is_read_while_much_waits_to_be_written() {
    // The fifth goes over the bound of 256 MiB.
    const FIRST: u64 = 5;
    let folder = tempfile::tempdir().expect("a folder");
    let (node, reads) = keeper(folder.path(), 1, 52 << 20);
    let mut stream = client(&node);
    for n in 0..FIRST {
        stream.write_all(b"x").expect("sent");
        wait_until(&node, |s| s.sum(|w| w.held_turns) == n + 1);
    }
    let seen = reads_of_one_more(&reads, &mut stream);
    open(&folder.path().join("fifo"));
    assert_eq!(seen, FIRST);
    gets(&mut stream, b"rrrrrr");
}

/// How many reads there were after one more request had all the time it needs.
fn reads_of_one_more(reads: &AtomicU64, stream: &mut TcpStream) -> u64 {
    stream.write_all(b"x").expect("sent");
    std::thread::sleep(std::time::Duration::from_millis(50));
    reads.load(SeqCst)
}
