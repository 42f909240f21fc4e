//! Actors and clients that the tests share.
#![allow(dead_code, reason = "each test binary uses a part")]

use rufous_base::{Actor, Close, ConnId, Effects, Input, NodeEffect, Now, WorkerId};
use rufous_runtime::{Config, Handle, Listen, Runtime};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A node of one worker on a free port of the loopback interface.
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

pub(crate) fn client<A>(node: &Runtime<A>) -> TcpStream {
    TcpStream::connect(address(node)).expect("the node accepts")
}

/// Answers each line by the line itself; a few words do more.
pub(crate) struct Echo;

impl Actor for Echo {
    type Message = ();

    fn step(&mut self, _: Now, input: Input<'_, ()>, fx: &mut Effects<()>) {
        match input {
            Input::Received { bytes, reads } => {
                for read in reads {
                    let start = fx.output.mark();
                    fx.output
                        .bytes
                        .extend_from_slice(&bytes[read.start..read.end]);
                    fx.write(read.conn, start);
                    word(read.conn, &bytes[read.start..read.end], fx);
                }
            }
            Input::Stop => fx.node.push(NodeEffect::Stopped),
            _ => {}
        }
    }
}

fn word<M>(conn: ConnId, bytes: &[u8], fx: &mut Effects<M>) {
    match bytes {
        b"bye\n" => fx.closes.push((conn, Close::AfterReplies)),
        b"now\n" => fx.closes.push((conn, Close::Now)),
        b"shutdown\n" => fx.node.push(NodeEffect::Shutdown),
        _ => {}
    }
}

pub(crate) fn echo(config: Config) -> Runtime<Echo> {
    rufous_runtime::start(config, |_: WorkerId| Echo).expect("starts")
}

pub(crate) fn ask(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).expect("sent");
    let mut reply = vec![0; bytes.len()];
    stream.read_exact(&mut reply).expect("answered");
    reply
}

pub(crate) fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("closed in order");
    all
}
