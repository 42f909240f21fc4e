//! A node that answers `PING` and nothing else: what the driver alone costs.
//!
//! `cargo run --release -p rufous-runtime --example ping -- 7777`, and beside
//! it, on another core, `redis-benchmark -p 7777 -t ping_mbulk -n 3000000`.

use rufous_base::{Actor, Close, Effects, Input, NodeEffect, Now};
use rufous_runtime::{Config, Listen, start};

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// How many bytes of a request each connection has sent so far.
#[derive(Default)]
struct Ping {
    begun: Vec<usize>,
}

impl Actor for Ping {
    type Message = ();

    fn step(&mut self, _: Now, input: Input<'_, ()>, fx: &mut Effects<()>) {
        match input {
            Input::Opened { conn, .. } => {
                if self.begun.len() <= conn.index() {
                    self.begun.resize(conn.index() + 1, 0);
                }
                self.begun[conn.index()] = 0;
            }
            Input::Received { bytes, reads } => {
                for read in reads {
                    let start = fx.output.mark();
                    let begun = &mut self.begun[read.conn.index()];
                    if *begun == 0 && !bytes[read.start..read.end].starts_with(b"*1") {
                        fx.output.bytes.extend_from_slice(b"-ERR only PING\r\n");
                    } else {
                        *begun += read.end - read.start;
                        while *begun >= PING.len() {
                            *begun -= PING.len();
                            fx.output.bytes.extend_from_slice(b"+PONG\r\n");
                        }
                    }
                    fx.write(read.conn, start);
                }
            }
            Input::Ended { conn } => fx.closes.push((conn, Close::AfterReplies)),
            Input::Stop => fx.node.push(NodeEffect::Stopped),
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).map_or(Ok(7777), |a| a.parse())?;
    let node = start(
        Config {
            workers: 1,
            listen: vec![Listen::Tcp(([127, 0, 0, 1], port).into())],
            ..Config::default()
        },
        |_| Ping::default(),
    )?;
    node.join();
    Ok(())
}
