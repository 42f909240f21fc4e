//! How long writes and transactions take at fixed rates [Warp §5]: requests are sent at set times, whether those before
//! them were answered or not, as long as clients are free.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use rufous_base::rng::Rng;
use serde::Serialize;

use super::callers::{self, Callers, Ended, Schedule, are_answered, key, merged};
use super::options::{Common, rufous};
use super::warp_latency_pages::{chart, report};
use rufous_bench::client::{Client, encode};
use rufous_bench::loadgen::latency::Latency;
use rufous_bench::loadgen::zipf::{YCSB_THETA, Zipfian};
use rufous_bench::nodes::Program;
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;

/// Clients at each node.
pub(crate) const CLIENTS: usize = 8;
pub(crate) const VALUE: [u8; 64] = [b'v'; 64];
/// Of operations, in percent: YCSB's workload B.
const READS: u64 = 95;
/// Operations of a transaction, as in Warp's figure 9.
pub(crate) const SIZE: usize = 8;

/// What is sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// One operation.
    Single,
    /// Operations one behind the other.
    Pipeline,
    /// The same between `MULTI` and `EXEC`.
    Transaction,
}

impl Request {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Single => "one alone",
            Self::Pipeline => "eight in a pipeline",
            Self::Transaction => "eight in a transaction",
        }
    }

    fn operations(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Pipeline | Self::Transaction => SIZE,
        }
    }
}

/// Which of them are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Counted {
    All,
    /// Those with a write.
    Writes,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cluster {
    pub name: &'static str,
    nodes: usize,
    workers: usize,
    copies: usize,
}

const ONE: Cluster = Cluster {
    name: "one node, two workers",
    nodes: 1,
    workers: 2,
    copies: 1,
};
pub(crate) const THREE: Cluster = Cluster {
    name: "three nodes, two copies",
    nodes: 3,
    workers: 1,
    copies: 2,
};

/// A figure of the paper.
pub(crate) struct Figure {
    pub slug: &'static str,
    pub svg: &'static str,
    pub title: &'static str,
    pub command: &'static str,
    pub counted: Counted,
    clusters: &'static [Cluster],
    /// What is sent, and operations a second of that.
    loads: &'static [(Request, u32)],
}

pub(crate) const TEN: Figure = Figure {
    slug: "warp-10",
    svg: "warp-10.svg",
    title: "Latency of writes in workload B, alone and in transactions",
    command: "cargo xtask figures warp10",
    counted: Counted::Writes,
    clusters: &[ONE, THREE],
    loads: &[(Request::Single, 1600), (Request::Transaction, 1600)],
};

pub(crate) const ELEVEN: Figure = Figure {
    slug: "warp-11",
    svg: "warp-11.svg",
    title: "Latency of transactions of eight at fixed rates",
    command: "cargo xtask figures warp11",
    counted: Counted::All,
    clusters: &[THREE],
    loads: &[
        (Request::Pipeline, 200),
        (Request::Transaction, 200),
        (Request::Pipeline, 400),
        (Request::Transaction, 400),
        (Request::Pipeline, 800),
        (Request::Transaction, 800),
        (Request::Pipeline, 1600),
        (Request::Transaction, 1600),
        (Request::Pipeline, 3200),
        (Request::Transaction, 3200),
    ],
};

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// How long each row is measured [default: 15, quick 1]
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Keys [default: 100000, quick 1000]
    #[arg(long)]
    pub keys: Option<u64>,
    #[command(flatten)]
    pub program: Program,
}

impl Options {
    pub(crate) fn seconds(&self) -> u64 {
        self.common.pick(self.seconds, 15, 1).max(1)
    }

    fn keys(&self) -> u64 {
        self.common.pick(self.keys, 100_000, 1_000).max(2)
    }
}

/// Requests at one rate.
pub(crate) struct Row {
    pub cluster: Cluster,
    pub request: Request,
    /// Requests a second that were due, and that were answered.
    pub asked: f64,
    pub answered: f64,
    /// Not executed, or in doubt.
    pub failed: u64,
    pub latency: Latency,
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options, figure: &Figure) -> Result<()> {
    let machine = Machine::read();
    let (mut rows, mut version) = (Vec::new(), String::new());
    let steps = figure.clusters.len() * figure.loads.len();
    let progress = Progress::new("rates", steps as u64);
    for cluster in figure.clusters {
        let Cluster {
            nodes: count,
            workers,
            copies,
            ..
        } = *cluster;
        let (mut nodes, known) = callers::cluster(&options.program, count, workers, copies)?;
        version = known;
        callers::fill(&mut nodes.running()[0].client()?, options.keys(), &VALUE)?;
        let mut bench = Bench {
            options,
            cluster: *cluster,
            counted: figure.counted,
            popularity: Zipfian::new(options.keys(), YCSB_THETA),
            callers: Callers::connect(&callers::plain(&nodes), CLIENTS)?,
        };
        for (request, operations) in figure.loads {
            progress.doing(&format!("{}, {}", cluster.name, request.name()));
            let rate = f64::from(*operations) / request.operations() as f64;
            // What connections do first is not counted.
            bench.measure(*request, rate, Duration::from_millis(300))?;
            let time = Duration::from_secs(options.seconds());
            rows.push(bench.measure(*request, rate, time)?);
            progress.advance(1);
        }
        nodes.all_run()?;
    }
    let report = report(options, figure, &rows);
    let charts = [(figure.svg, chart(figure, &rows).svg()?)];
    let common = &options.common;
    common.publish(&machine, rufous(version), &[report], &charts)
}

/// A cluster under clients.
struct Bench<'o> {
    options: &'o Options,
    cluster: Cluster,
    counted: Counted,
    popularity: Zipfian,
    callers: Callers,
}

impl Bench<'_> {
    fn measure(&mut self, request: Request, rate: f64, time: Duration) -> Result<Row> {
        let schedule = Schedule { rate, time };
        let (clients, counted) = (self.callers.count(), self.counted);
        let (popularity, seed) = (&self.popularity, self.options.seconds());
        let began = Instant::now();
        let done = self.callers.run(|no, client| {
            let mut requests = Requests {
                request,
                popularity: popularity.clone(),
                rng: Rng::new(seed << 32 | no as u64),
            };
            let (sent, failed) = (Cell::new(0u64), Cell::new(0u64));
            let latency = schedule.keep((no, clients), began, || {
                let (writes, is_done) = requests.send(client)?;
                sent.set(sent.get() + 1);
                failed.set(failed.get() + u64::from(!is_done));
                Ok(is_done && (writes || counted == Counted::All))
            })?;
            Ok((latency, sent.get(), failed.get()))
        })?;
        // A client waits for the time of its next request only if there is one.
        let took = began.elapsed().max(time).as_secs_f64();
        let latencies: Vec<_> = done.iter().map(|client| client.0.clone()).collect();
        let sent: u64 = done.iter().map(|client| client.1).sum();
        let failed = done.iter().map(|client| client.2).sum();
        Ok(Row {
            cluster: self.cluster,
            request,
            asked: rate,
            answered: (sent - failed) as f64 / took,
            failed,
            latency: merged(&latencies)?,
        })
    }
}

/// What one client sends.
struct Requests {
    request: Request,
    popularity: Zipfian,
    rng: Rng,
}

impl Requests {
    /// Appends the next one; how many replies it gets, and whether it writes.
    fn next(&mut self, out: &mut Vec<u8>) -> (usize, bool) {
        let (mut replies, mut writes) = (self.request.operations(), false);
        let is_grouped = self.request == Request::Transaction;
        if is_grouped {
            encode(out, &[b"MULTI"]);
            replies += 2;
        }
        for _ in 0..self.request.operations() {
            let key = key(self.popularity.next(&mut self.rng));
            if self.rng.below(100) < READS {
                encode(out, &[b"GET", key.as_bytes()]);
            } else {
                encode(out, &[b"SET", key.as_bytes(), &VALUE]);
                writes = true;
            }
        }
        if is_grouped {
            encode(out, &[b"EXEC"]);
        }
        (replies, writes)
    }

    /// Sends one and waits for its replies: whether it writes, and whether it was executed.
    fn send(&mut self, client: &mut Client) -> Result<(bool, bool)> {
        let mut out = Vec::new();
        let (count, writes) = self.next(&mut out);
        client.send(&out)?;
        let replies: Result<Vec<_>> = (0..count).map(|_| client.receive()).collect();
        let replies = replies?;
        let is_done = match (self.request, replies.last()) {
            (Request::Transaction, Some(last)) => Ended::of(last)? == Ended::Committed,
            _ => are_answered(&replies)?,
        };
        Ok((writes, is_done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_of_workload_b() {
        let of = |request| {
            let mut requests = Requests {
                request,
                popularity: Zipfian::new(1000, YCSB_THETA),
                rng: Rng::new(3),
            };
            let (mut out, mut writing, mut replies) = (Vec::new(), 0, 0);
            for _ in 0..2_000 {
                let (count, writes) = requests.next(&mut out);
                writing += u32::from(writes);
                replies = count;
            }
            (String::from_utf8(out).unwrap(), writing, replies)
        };
        let (single, writing, replies) = of(Request::Single);
        assert_eq!(single.matches("SET\r\n").count(), writing as usize);
        assert!((60..140).contains(&writing) && replies == 1, "{writing}");
        let (grouped, writing, replies) = of(Request::Transaction);
        assert_eq!((grouped.matches("EXEC").count(), replies), (2_000, 10));
        // One minus 0.95 to the eighth: 34 %.
        assert!((600..750).contains(&writing), "{writing}");
        assert_eq!(of(Request::Pipeline).2, 8);
    }
}
