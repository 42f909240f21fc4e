//! Running the workloads against a server and printing what they gave.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::records::Inserted;
use super::source::{Loading, Running};
use super::workload::{Operation, Workload};
use crate::client::{Client, resolve};
use crate::loadgen::keys::MAX_KEYS;
use crate::loadgen::load::{Load, Stop, Window};
use crate::procfs;
use crate::progress::Progress;
use crate::table::Table;

const LOAD_PIPELINE: usize = 16;

/// YCSB A–F against a running server.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    #[arg(long, default_value_t = 6379)]
    pub port: u16,
    /// Sent with AUTH on every connection
    #[arg(long)]
    pub password: Option<String>,
    /// Records of 10 fields of 100 B
    #[arg(long, default_value_t = 100_000)]
    pub records: u64,
    /// Operations per workload
    #[arg(long, default_value_t = 500_000)]
    pub operations: u64,
    #[arg(long, default_value_t = 50)]
    pub connections: usize,
    /// Operations in flight per connection
    #[arg(long, default_value_t = 1)]
    pub pipeline: usize,
    /// Only these workloads (may be repeated)
    #[arg(long, value_enum)]
    pub workload: Vec<Workload>,
    /// The server's process, for its CPU time [default: what INFO says, if the host is this one]
    #[arg(long)]
    pub pid: Option<u32>,
    /// Take the records as loaded by an earlier run
    #[arg(long)]
    pub no_load: bool,
    /// Print results as JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// One workload's outcome.
struct Outcome {
    workload: Workload,
    window: Window,
    cpu: Option<Duration>,
}

pub fn run(options: &Options) -> Result<()> {
    check(options)?;
    let addr = resolve(&options.host, options.port)?;
    let pid = match options.pid {
        None => client(options, addr)?.local_pid(),
        given => given,
    };
    let mut load = connect(options, addr)?;
    if !options.no_load {
        let progress = Progress::new("load", options.records);
        progress.doing(&format!("{} records of 1,000 B", options.records));
        let mut source = Loading::new(options.records, LOAD_PIPELINE);
        load.run_with(&mut source, Stop::Exhausted, &mut |done| progress.set(done))?;
    }
    let mut inserted = Inserted::with(options.records);
    let mut outcomes = Vec::new();
    for workload in Workload::IN_ORDER {
        if !options.workload.is_empty() && !options.workload.contains(&workload) {
            continue;
        }
        let progress = Progress::new(&format!("{workload:?}"), options.operations);
        progress.doing(workload.describe());
        let Options {
            operations,
            pipeline,
            connections,
            ..
        } = *options;
        let mut source = Running::new(workload, inserted, operations, pipeline.max(1), connections);
        let before = pid.and_then(|pid| procfs::cpu_time(pid).ok());
        let window = load
            .run_with(&mut source, Stop::Exhausted, &mut |done| progress.set(done))
            .with_context(|| format!("workload {workload:?}"))?;
        let after = pid.and_then(|pid| procfs::cpu_time(pid).ok());
        let cpu = before
            .zip(after)
            .map(|(before, after)| after.saturating_sub(before));
        outcomes.push(Outcome {
            workload,
            window,
            cpu,
        });
        inserted = source.inserted;
    }
    outcomes.sort_by_key(|outcome| outcome.workload as u8);
    print(options, &outcomes)
}

fn check(options: &Options) -> Result<()> {
    if options.records == 0 || options.operations == 0 || options.connections == 0 {
        bail!("--records, --operations and --connections must be at least 1");
    }
    let inserts = options.operations / 5;
    if options.records + inserts >= MAX_KEYS {
        bail!("records, and a fifth of the operations for inserts, must stay below {MAX_KEYS}");
    }
    Ok(())
}

fn client(options: &Options, addr: SocketAddr) -> Result<Client> {
    let mut client = Client::connect(addr)?;
    if let Some(password) = &options.password {
        client.call(&["AUTH", password])?.text()?;
    }
    Ok(client)
}

fn connect(options: &Options, addr: SocketAddr) -> Result<Load> {
    let streams = (0..options.connections).map(|_| client(options, addr)?.into_stream());
    Load::adopt(streams.collect::<Result<_>>()?)
}

fn print(options: &Options, outcomes: &[Outcome]) -> Result<()> {
    if options.json {
        let all: Vec<Value> = outcomes.iter().map(json_of).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    let headers = "workload | operation | ops/s | CPU-µs/op | p50 ms | p99 ms | p99.9 ms | count";
    let mut table = Table::new(2, headers);
    for outcome in outcomes {
        outcome.rows(&mut table);
    }
    println!(
        "\nYCSB, {} records of 1,000 B, {} operations each, {} connections, pipeline {}\n\n{}",
        options.records,
        options.operations,
        options.connections,
        options.pipeline,
        table.terminal()
    );
    println!(
        "· A record is one string; an update writes one field of it in place (SETRANGE).\n\
         · E: without an ordered index, a scan is an MGET of 1–100 records in order of insertion."
    );
    Ok(())
}

impl Outcome {
    fn ops_per_second(&self) -> f64 {
        self.window.operations() as f64 / self.window.elapsed.as_secs_f64()
    }

    fn cpu_us_per_op(&self) -> Option<f64> {
        Some(self.cpu?.as_secs_f64() * 1e6 / self.window.operations() as f64)
    }

    fn rows(&self, table: &mut Table) {
        let mut label = format!("{:?}: {}", self.workload, self.workload.describe());
        let mut ops = format!("{:.0}", self.ops_per_second());
        let mut cpu = self
            .cpu_us_per_op()
            .map_or("–".to_owned(), |us| format!("{us:.2}"));
        for operation in Operation::ALL {
            let latency = &self.window.classes[operation as usize];
            if latency.count() == 0 {
                continue;
            }
            let percentiles =
                [50.0, 99.0, 99.9].map(|p| format!("{:.2}", latency.percentile_ms(p)));
            let mut cells = vec![
                std::mem::take(&mut label),
                operation.name().to_owned(),
                std::mem::take(&mut ops),
                std::mem::take(&mut cpu),
            ];
            cells.extend(percentiles);
            cells.push(latency.count().to_string());
            table.row(cells);
        }
    }
}

fn json_of(outcome: &Outcome) -> Value {
    let operations: Vec<Value> = Operation::ALL
        .iter()
        .map(|operation| (operation, &outcome.window.classes[*operation as usize]))
        .filter(|(_, latency)| latency.count() > 0)
        .map(|(operation, latency)| {
            json!({
                "operation": operation.name(),
                "count": latency.count(),
                "p50_ms": latency.percentile_ms(50.0),
                "p99_ms": latency.percentile_ms(99.0),
                "p999_ms": latency.percentile_ms(99.9),
            })
        })
        .collect();
    json!({
        "workload": format!("{:?}", outcome.workload),
        "ops_per_second": outcome.ops_per_second(),
        "cpu_us_per_op": outcome.cpu_us_per_op(),
        "operations": operations,
    })
}
