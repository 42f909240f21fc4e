//! How a cluster's own talk grows with its nodes: mappings, leases, heartbeats and what nodes tell of
//! lattice keyspaces, from 10 to 1,000 nodes in one process.
//!
//! | module | concept |
//! |---|---|
//! | [`mapping`] | mappings: their bytes, who plans them, who acts by them |
//! | [`gossiping`] | nodes that tell each other of a lattice keyspace |
//!
//! The state machines are those of the server. Sockets are not there: what a message costs on its way
//! through frames and the system is measured once, and multiplied.

pub(crate) mod gossiping;
pub(crate) mod mapping;

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result, bail};
use clap::Args;
use rufous_wire::frame::{self, Frames, MAX_FRAME};
use rufous_wire::message::{Envelope, Gossip};
use rufous_wire::{Body, Class};
use serde_json::json;

use self::gossiping::Said;
use self::mapping::Mapped;
use super::drive::thread_cpu_ns;
use super::lines::{Line, LineChart};
use super::options::{Common, rufous};
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::table::Table;

const NODES: [usize; 5] = [10, 30, 100, 300, 1000];
const QUICK: [usize; 2] = [4, 10];
/// Beyond that, what nodes tell of lattice keyspaces is reckoned: state machines of all pairs would need
/// more memory than there is.
const MOST_AT_ONCE: usize = 300;
/// Each end of each session says that it is there so often in a second.
const BEATS_S: f64 = 2.0;
/// What a cluster may cost each of its nodes, in µs of a second.
const BOUND_US: f64 = 10_000.0;
/// Bytes of a message of no weight: of a heartbeat, or a lease, with its frame.
const SMALL: f64 = 40.0;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
}

/// A cluster of so many nodes.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Row {
    nodes: usize,
    mapped: Mapped,
    idle: Said,
    busy: Said,
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let message_us = message_us()?;
    let all: &[usize] = if options.common.quick { &QUICK } else { &NODES };
    let progress = Progress::new("clusters", all.len() as u64);
    let mut rows = Vec::new();
    for &nodes in all {
        progress.doing(&format!("{nodes} nodes"));
        let seconds = if options.common.quick { 1 } else { 3 };
        let [idle, busy] = match nodes > MOST_AT_ONCE {
            false => gossiping::measure(nodes, seconds * 1_000_000)?,
            true => beyond(&rows, nodes)?,
        };
        let mapped = mapping::measure(nodes)?;
        rows.push(Row {
            nodes,
            mapped,
            idle,
            busy,
        });
        progress.advance(1);
    }
    let report = report(&rows, message_us);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let charts = [("scale.svg", chart(&rows, message_us).svg()?)];
    let common = &options.common;
    common.publish(&machine, rufous(version), &[report], &charts)
}

/// By the line through the last two clusters: each node has something to say to each other one.
fn beyond(rows: &[Row], nodes: usize) -> Result<[Said; 2]> {
    let [.., low, high] = rows else {
        bail!("two clusters are measured before");
    };
    let between = (high.nodes - low.nodes) as f64;
    let on = |low: f64, high: f64| {
        high + (high - low) / between * (nodes as f64 - rows[rows.len() - 1].nodes as f64)
    };
    let said = |of: fn(&Row) -> Said| {
        let (low, high) = (of(low), of(high));
        Said {
            messages_s: on(low.messages_s, high.messages_s),
            bytes_s: on(low.bytes_s, high.bytes_s),
            cpu_us_s: on(low.cpu_us_s, high.cpu_us_s),
        }
    };
    Ok([said(|row| row.idle), said(|row| row.busy)])
}

/// What a small message costs one of its two ends, in µs of CPU time: its frame, and its way through a
/// socket of its own.
fn message_us() -> Result<f64> {
    const MESSAGES: usize = 20_000;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut out = TcpStream::connect(listener.local_addr()?)?;
    let (mut to, _) = listener.accept()?;
    out.set_nodelay(true)?;
    let envelope = Envelope {
        epoch: 7,
        from: 0,
        to: 0,
        body: Some(Body::Gossip(Gossip {
            batch: vec![7; 60].into(),
        })),
    };
    let (mut bytes, mut read, mut frames) = (Vec::new(), [0; 4096], Frames::default());
    let before = thread_cpu_ns();
    for _ in 0..MESSAGES {
        bytes.clear();
        frame::encode(1, Class::Gossip, &envelope, &mut bytes)
            .ok()
            .context("a small message")?;
        out.write_all(&bytes)?;
        let mut come = 0;
        while come < bytes.len() {
            let more = to.read(&mut read)?;
            frames.push(&read[..more]);
            come += more;
        }
        black_box(frames.next(MAX_FRAME).ok().context("a frame")?);
    }
    Ok((thread_cpu_ns() - before) / 1e3 / MESSAGES as f64 / 2.0)
}

impl Row {
    /// Heartbeats and leases that a node says in a second. It hears as many.
    fn small_s(&self) -> f64 {
        // Who asks is answered, and asked.
        (self.nodes - 1) as f64 * BEATS_S + 2.0 * self.mapped.asks_s
    }

    fn messages_s(&self, said: &Said) -> f64 {
        self.small_s() + said.messages_s
    }

    fn bytes_s(&self, said: &Said) -> f64 {
        self.small_s() * SMALL + said.bytes_s
    }

    /// CPU time of a second: what is said, what is heard, and the state machines between.
    fn cpu_us_s(&self, said: &Said, message_us: f64) -> f64 {
        2.0 * self.messages_s(said) * message_us + said.cpu_us_s
    }
}

/// How many nodes cost each of them no more than the bound, on a line between what was measured.
fn most(rows: &[Row], of: impl Fn(&Row) -> f64) -> String {
    let costs: Vec<_> = rows.iter().map(|row| (row.nodes as f64, of(row))).collect();
    let over = costs.iter().position(|(_, cost)| *cost > BOUND_US);
    match over {
        None => format!("more than {}", rows.last().map_or(0, |row| row.nodes)),
        Some(0) => format!("fewer than {}", rows[0].nodes),
        Some(at) => {
            let ((less, low), (more, high)) = (costs[at - 1], costs[at]);
            let nodes = less + (more - less) * (BOUND_US - low) / (high - low);
            format!("{nodes:.0}")
        }
    }
}

fn report(rows: &[Row], message_us: f64) -> Report {
    let headers = "nodes | mapping, KB | acting by one, ms | planning one, ms | epochs as one joins | \
         peers that share slots | messages/s idle | busy | KB/s idle | busy | \
         CPU idle, % of a core | busy";
    let mut table = Table::new(0, headers);
    for row in rows {
        let percent = |said| row.cpu_us_s(said, message_us) / 1e4;
        table.row(vec![
            row.nodes.to_string(),
            format!("{:.1}", row.mapped.bytes as f64 / 1e3),
            format!("{:.2}", row.mapped.take_up_ms),
            format!("{:.2}", row.mapped.plan_ms),
            row.mapped.epochs_of_join.to_string(),
            row.mapped.peers.to_string(),
            format!("{:.0}", row.messages_s(&row.idle)),
            format!("{:.0}", row.messages_s(&row.busy)),
            format!("{:.1}", row.bytes_s(&row.idle) / 1e3),
            format!("{:.1}", row.bytes_s(&row.busy) / 1e3),
            format!("{:.2}", percent(&row.idle)),
            format!("{:.2}", percent(&row.busy)),
        ]);
    }
    let idle = most(rows, |row| row.cpu_us_s(&row.idle, message_us));
    let busy = most(rows, |row| row.cpu_us_s(&row.busy, message_us));
    Report {
        slug: "scale",
        part_of: None,
        title: "What a cluster says to itself, from 10 to 1,000 nodes".into(),
        command: "cargo xtask figures scale".into(),
        method: vec![
            "Nodes with one worker each and two copies of each slot, in one process: the planner, the chains' leases and \
             the streams of lattice keyspaces are those of the server, messages are bytes, and time is virtual. \
             *Busy*: every node writes one key of 18 bytes of a lattice keyspace in each epoch of 100 ms, so each has something \
             to say to each other one; *idle*: nobody writes. Messages are those that a node says in a second; it hears as many. \
             With more than 300 nodes these are reckoned by the line through the two clusters before."
                .into(),
            format!(
                "CPU time is that of the state machines, and {message_us:.1} µs for each end of a message: its frame, and its \
                 way through a socket, measured in the same run with messages that go one by one. \
                 Heartbeats ({BEATS_S:.0} a second and node) and leases count as {SMALL:.0} bytes. Mappings go to all nodes \
                 by the coordinator; acting by one is decoding it, checking it and taking it up at one worker, and each \
                 epoch of a join costs that at each node."
            ),
            "![CPU time of a node](scale.svg)".into(),
        ],
        table,
        chart: None,
        notes: vec![format!(
            "Under 1 % of a core: {idle} nodes where nobody writes, {busy} where all do in each epoch."
        )],
        data: json!({ "rows": rows, "message_us": message_us }),
    }
}

fn chart(rows: &[Row], message_us: f64) -> LineChart {
    let line = |name: &str, of: &dyn Fn(&Row) -> f64| {
        let points: Vec<_> = rows
            .iter()
            .map(|row| (row.nodes as f64, of(row) / 1e4))
            .collect();
        Line {
            name: name.into(),
            curve: points.clone(),
            measured: points,
        }
    };
    LineChart {
        title: "CPU time that a cluster costs each of its nodes".into(),
        x_axis: "nodes".into(),
        y_axis: "% of a core".into(),
        lines: vec![
            line("every node writes", &|row| {
                row.cpu_us_s(&row.busy, message_us)
            }),
            line("nobody writes", &|row| row.cpu_us_s(&row.idle, message_us)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(nodes: usize, cpu_us_s: f64) -> Row {
        let said = Said {
            messages_s: 0.0,
            bytes_s: 0.0,
            cpu_us_s,
        };
        let mapped = Mapped {
            bytes: 0,
            take_up_ms: 0.0,
            plan_ms: 0.0,
            epochs_of_join: 0,
            peers: 0,
            asks_s: 0.0,
        };
        Row {
            nodes,
            mapped,
            idle: said,
            busy: said,
        }
    }

    #[test]
    fn the_bound_lies_between_what_was_measured() {
        let rows = [row(10, 4_000.0), row(20, 8_000.0), row(40, 16_000.0)];
        let cost = |row: &Row| row.busy.cpu_us_s;
        assert_eq!(most(&rows, cost), "25");
        assert_eq!(most(&rows[..2], cost), "more than 20");
        assert_eq!(most(&rows[2..], cost), "fewer than 40");
        assert_eq!(row(11, 0.0).small_s(), 20.0);
        let further = beyond(&rows, 60).expect("two before");
        assert_eq!(further[1].cpu_us_s, 24_000.0);
    }
}
