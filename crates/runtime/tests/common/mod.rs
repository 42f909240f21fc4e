//! Actors and clients that the tests share.
#![allow(dead_code, reason = "each test binary uses a part")]

use rufous_base::{Actor, Close, ConnId, Effects, Input, NodeEffect, Now, WorkerId};
use rufous_runtime::{Config, Handle, Listen, Runtime, Snapshot};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::net::{SocketAddr, TcpStream};

/// A node on a free port of the loopback interface.
pub(crate) fn config(workers: usize) -> Config {
    Config {
        workers,
        pin: false,
        listen: vec![Listen::Tcp(([127, 0, 0, 1], 0).into())],
        ..Config::default()
    }
}

pub(crate) fn address(handle: &Handle) -> SocketAddr {
    match handle.addresses() {
        [Listen::Tcp(address), ..] => *address,
        other => panic!("no TCP listener: {other:?}"),
    }
}

pub(crate) fn client<A: Actor>(node: &Runtime<A>) -> TcpStream {
    TcpStream::connect(address(node)).expect("the node accepts")
}

/// An actor made of one function.
pub(crate) struct By<M, F> {
    step: F,
    stops: bool,
    /// Whether a client that sends no more is let go at once.
    lets_go: bool,
    messages: PhantomData<fn(M)>,
}

/// One that has nothing to finish when the node stops.
pub(crate) fn by<M, F>(step: F) -> By<M, F>
where
    F: FnMut(Now, Input<'_, M>, &mut Effects<M>),
{
    By {
        step,
        stops: true,
        lets_go: true,
        messages: PhantomData,
    }
}

/// One whose function answers `Input::Stop` itself, or does not.
pub(crate) fn by_itself<M, F>(step: F) -> By<M, F>
where
    F: FnMut(Now, Input<'_, M>, &mut Effects<M>),
{
    By {
        stops: false,
        ..by(step)
    }
}

/// One whose function answers `Input::Ended` itself.
pub(crate) fn by_hand<M, F>(step: F) -> By<M, F>
where
    F: FnMut(Now, Input<'_, M>, &mut Effects<M>),
{
    By {
        lets_go: false,
        ..by(step)
    }
}

impl<M: Send + 'static, F> Actor for By<M, F>
where
    F: FnMut(Now, Input<'_, M>, &mut Effects<M>),
{
    type Message = M;

    fn step(&mut self, now: Now, input: Input<'_, M>, fx: &mut Effects<M>) {
        if self.stops && matches!(input, Input::Stop) {
            fx.node.push(NodeEffect::Stopped);
        }
        if self.lets_go
            && let Input::Ended { conn } = input
        {
            fx.closes.push((conn, Close::AfterReplies));
        }
        (self.step)(now, input, fx);
    }
}

/// Answers what it reads by the same; a few words do more.
pub(crate) struct Echo;

impl Actor for Echo {
    type Message = ();

    fn step(&mut self, _: Now, input: Input<'_, ()>, fx: &mut Effects<()>) {
        match input {
            Input::Received { bytes, reads } => {
                for read in reads {
                    let read_bytes = &bytes[read.start..read.end];
                    say(fx, read.conn, read_bytes);
                    word(read.conn, read_bytes, fx);
                }
            }
            Input::Ended { conn } => fx.closes.push((conn, Close::AfterReplies)),
            Input::Stop => fx.node.push(NodeEffect::Stopped),
            _ => {}
        }
    }
}

pub(crate) fn word<M>(conn: ConnId, bytes: &[u8], fx: &mut Effects<M>) {
    match bytes {
        b"bye\n" => fx.closes.push((conn, Close::AfterReplies)),
        b"now\n" => fx.closes.push((conn, Close::Now)),
        b"shutdown\n" => fx.node.push(NodeEffect::Shutdown),
        b"one more\n" => fx.node.push(NodeEffect::MaxClients(2)),
        _ => {}
    }
}

pub(crate) fn say<M>(fx: &mut Effects<M>, conn: ConnId, bytes: &[u8]) {
    let start = fx.output.mark();
    fx.output.bytes.extend_from_slice(bytes);
    fx.write(conn, start);
}

pub(crate) fn echo(config: Config) -> Runtime<Echo> {
    rufous_runtime::start(config, |_: WorkerId| Echo).expect("starts")
}

pub(crate) fn ask(stream: &mut (impl Read + Write), bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).expect("sent");
    let mut reply = vec![0; bytes.len()];
    stream.read_exact(&mut reply).expect("answered");
    reply
}

pub(crate) fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("closed in order");
    all
}

/// Waits for what must happen in the end; the test runner's limit is the only clock.
pub(crate) fn wait_until(handle: &Handle, reached: impl Fn(&Snapshot) -> bool) {
    while !reached(&handle.stats()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Who opens it to read waits until [`open`] is called.
pub(crate) fn fifo(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
}

/// Lets one reader of the fifo go on.
pub(crate) fn open(fifo: &std::path::Path) {
    drop(
        std::fs::OpenOptions::new()
            .write(true)
            .open(fifo)
            .expect("opened"),
    );
}
