//! What it costs to let replies wait for the disk: processor time per request
//! of an echo, with and without a log of 100 bytes per request, over 50
//! connections; and how long one request takes where nobody else asks.
//!
//! `cargo run --release -p rufous-runtime --example gated -- [folder]`

use rufous_base::disk::{DiskOp, DiskReply, DiskRequest, FileName, Lane};
use rufous_base::{Actor, Close, Effects, Input, NodeEffect, Now};
use rufous_runtime::{Config, Listen, start};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const REQUEST: usize = 32;
const RECORD: usize = 100;
/// Each client has so many connections.
const CONNECTIONS: usize = 10;
const CLIENTS: usize = 5;
const TIME: Duration = Duration::from_secs(3);
const FILE_BYTES: u64 = 64 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    NoLog,
    Write,
    Sync,
}

/// Echoes, and writes what it was asked to a file that it goes round in. One
/// write is under way at a time; what comes meanwhile forms the next.
struct Logged {
    mode: Mode,
    file: FileName,
    pending: Vec<u8>,
    spare: Vec<u8>,
    /// Records asked for, and those in the write that is under way.
    records: u64,
    writing: Option<u64>,
    at: u64,
    waits: bool,
}

impl Logged {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            file: "log".into(),
            pending: Vec::new(),
            spare: Vec::new(),
            records: 0,
            writing: None,
            at: 0,
            waits: false,
        }
    }

    fn write<M>(&mut self, fx: &mut Effects<M>) {
        if self.writing.is_some() || self.pending.is_empty() {
            return;
        }
        let bytes = std::mem::replace(&mut self.pending, std::mem::take(&mut self.spare));
        if self.at + bytes.len() as u64 > FILE_BYTES {
            self.at = 0;
        }
        self.writing = Some(self.records);
        fx.disk.push(DiskRequest {
            id: 0,
            lane: Lane::Log,
            op: DiskOp::Write {
                file: self.file.clone(),
                at: self.at,
                sync: self.mode == Mode::Sync,
                bytes,
            },
        });
    }
}

impl Actor for Logged {
    type Message = ();

    fn step(&mut self, _: Now, input: Input<'_, ()>, fx: &mut Effects<()>) {
        match input {
            Input::Received { bytes, reads } => {
                for read in reads {
                    let start = fx.output.mark();
                    let part = &bytes[read.start..read.end];
                    fx.output.bytes.extend_from_slice(part);
                    fx.write(read.conn, start);
                    let records = part.len() / REQUEST;
                    self.records += records as u64;
                    if self.mode != Mode::NoLog {
                        self.pending
                            .resize(self.pending.len() + records * RECORD, b'r');
                        self.waits = true;
                    }
                }
            }
            Input::Disk(done) => match done.result {
                Ok(DiskReply::Wrote(mut bytes)) => {
                    self.at += bytes.len() as u64;
                    bytes.clear();
                    self.spare = bytes;
                    fx.passed = self.writing.take().unwrap_or(fx.passed);
                }
                other => panic!("cannot write: {other:?}"),
            },
            Input::Ended { conn } => fx.closes.push((conn, Close::AfterReplies)),
            Input::Stop => fx.node.push(NodeEffect::Stopped),
            _ => {}
        }
    }

    fn end_turn(&mut self, _: Now, fx: &mut Effects<()>) {
        self.write(fx);
        if std::mem::take(&mut self.waits) {
            fx.gate = Some(self.records);
        }
    }
}

/// Sends to its connections in turn and then reads from them; returns requests.
fn drive(
    at: SocketAddr,
    connections: usize,
    pipeline: usize,
    until: Instant,
) -> std::io::Result<u64> {
    let mut streams = (0..connections)
        .map(|_| {
            let stream = TcpStream::connect(at)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
        .collect::<std::io::Result<Vec<TcpStream>>>()?;
    let request = vec![b'q'; REQUEST * pipeline];
    let mut reply = vec![0; request.len()];
    let mut sent = 0;
    for stream in &mut streams {
        stream.write_all(&request)?;
    }
    while Instant::now() < until {
        for stream in &mut streams {
            stream.read_exact(&mut reply)?;
            stream.write_all(&request)?;
            sent += pipeline as u64;
        }
    }
    Ok(sent)
}

/// Processor time of this process's threads whose names start so.
fn cpu(name: &str) -> std::io::Result<Duration> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.starts_with(name) {
            let stat = std::fs::read_to_string(task.join("schedstat"))?;
            let first = stat.split_whitespace().next();
            sum += first.and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Ok(Duration::from_nanos(sum))
}

fn measure(
    mode: Mode,
    (clients, connections): (usize, usize),
    pipeline: usize,
    folder: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let node = start(
        Config {
            workers: 1,
            pin: false,
            listen: vec![Listen::Tcp(([127, 0, 0, 1], 0).into())],
            data_dir: Some(folder.to_path_buf()),
            ..Config::default()
        },
        move |_| Logged::new(mode),
    )?;
    let [Listen::Tcp(at)] = *node.addresses() else {
        return Err("no address".into());
    };
    let begun = Instant::now();
    let threads: Vec<_> = (0..clients)
        .map(|_| std::thread::spawn(move || drive(at, connections, pipeline, begun + TIME)))
        .collect();
    let mut requests = 0;
    for client in threads {
        requests += client.join().map_err(|_| "a client failed")??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let worker = cpu("rufous-0")?.as_secs_f64() * 1e6 / requests as f64;
    let lanes = cpu("rufous-disk")?.as_secs_f64() * 1e6 / requests as f64;
    let name = match mode {
        Mode::NoLog => "no log",
        Mode::Write => "write",
        Mode::Sync => "write and sync",
    };
    let rate = requests as f64 / seconds / 1000.0;
    let turns = node.stats().sum(|w| w.turns) as f64 / requests as f64;
    if clients * connections == 1 {
        let us = seconds * 1e6 / requests as f64;
        println!("one connection, {name:14}: {us:.1} us a request");
        return Ok(());
    }
    println!(
        "pipeline {pipeline:2}, {name:14}: {worker:.3} us worker + {lanes:.3} us disk a request, \
         {rate:.0} thousand/s, {turns:.3} turns a request"
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder: PathBuf = std::env::args_os()
        .nth(1)
        .map_or(std::env::temp_dir(), Into::into);
    std::fs::write(folder.join("log"), vec![0; FILE_BYTES as usize])?;
    for pipeline in [16, 1] {
        for mode in [Mode::NoLog, Mode::Write, Mode::Sync] {
            measure(mode, (CLIENTS, CONNECTIONS), pipeline, &folder)?;
        }
    }
    for mode in [Mode::NoLog, Mode::Write, Mode::Sync] {
        measure(mode, (1, 1), 1, &folder)?;
    }
    std::fs::remove_file(folder.join("log"))?;
    Ok(())
}
