//! Windows of load against running servers, interleaved, with the CPU time that each one took.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::loadgen::load::{Load, Stop};
use crate::loadgen::source::{Mix, Preload, Source};
use crate::loadgen::template::{Command, Shape};
use crate::procfs;
use crate::servers::{Server, ServerSpec};
use crate::stats::Summary;

/// Keys are loaded by this many connections, with this many commands per write.
const PRELOAD_CONNECTIONS: usize = 8;
const PRELOAD_PIPELINE: usize = 32;

/// How windows follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub count: usize,
    pub window: Duration,
}

/// What one window gave.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    pub operations: u64,
    pub cpu_us_per_op: f64,
    pub kops: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Processors' worth of time used by anything but the server and this process.
    pub others_cores: f64,
}

/// CPU time of the server, of this process and of the whole machine at one moment.
struct CpuMark {
    server: Duration,
    own: Duration,
    machine: Duration,
}

impl CpuMark {
    fn now(server: &Server) -> Result<Self> {
        Ok(Self {
            server: server.cpu_time()?,
            own: procfs::cpu_time(std::process::id())?,
            machine: procfs::machine_busy_time()?,
        })
    }
}

/// A running server with its measuring connections.
pub struct Contestant {
    pub server: Server,
    load: Load,
}

impl Contestant {
    /// Starts a server and loads `keys` with `command`, which takes one key.
    pub fn start(
        spec: &ServerSpec,
        command: Command,
        shape: Shape,
        keys: u64,
        connections: usize,
    ) -> Result<Self> {
        let server = Server::start(spec)?;
        preload(&server, command, shape, 0..keys)?;
        let load = Load::connect(server.addr, connections)?;
        Ok(Self { server, load })
    }

    /// As many connections from now on.
    pub fn reconnect(&mut self, connections: usize) -> Result<()> {
        self.load = Load::connect(self.server.addr, connections)?;
        Ok(())
    }

    /// One window of load.
    pub fn window(&mut self, source: &mut dyn Source, time: Duration) -> Result<Sample> {
        window(&self.server, &mut self.load, source, time)
    }
}

/// One window of load over any connections to `server`.
pub fn window(
    server: &Server,
    load: &mut Load,
    source: &mut dyn Source,
    time: Duration,
) -> Result<Sample> {
    let before = CpuMark::now(server)?;
    let window = load.run(source, Stop::After(time))?;
    let after = CpuMark::now(server)?;
    let operations = window.operations() as f64;
    if operations == 0.0 {
        bail!("{} completed nothing in {time:?}", server.name);
    }
    let server_cpu = (after.server - before.server).as_secs_f64();
    let own_cpu = (after.own - before.own).as_secs_f64();
    let machine_cpu = (after.machine - before.machine).as_secs_f64();
    let elapsed = window.elapsed.as_secs_f64();
    let latency = window.latency()?;
    Ok(Sample {
        operations: window.operations(),
        cpu_us_per_op: server_cpu * 1e6 / operations,
        kops: operations / elapsed / 1e3,
        p50_ms: latency.percentile_ms(50.0),
        p99_ms: latency.percentile_ms(99.0),
        others_cores: ((machine_cpu - server_cpu - own_cpu) / elapsed).max(0.0),
    })
}

/// Runs `command` over all keys of the range, which becomes part of the data set.
pub fn preload(
    server: &Server,
    command: Command,
    shape: Shape,
    keys: std::ops::Range<u64>,
) -> Result<()> {
    exhaust(
        server,
        &mut Preload::new(command, shape, keys, PRELOAD_PIPELINE),
    )
}

/// Sends all that `source` has, over a few connections.
pub fn exhaust(server: &Server, source: &mut dyn Source) -> Result<()> {
    let mut load = Load::connect(server.addr, PRELOAD_CONNECTIONS)?;
    load.run(source, Stop::Exhausted)?;
    Ok(())
}

/// Windows in turn, so that whatever else the machine does meets all contestants alike; one short
/// window each comes first and is not counted. Every contestant draws the same keys.
pub fn interleave<S: Source + Clone>(
    contestants: &mut [Contestant],
    source: &S,
    rounds: Rounds,
) -> Result<Vec<Vec<Sample>>> {
    let mut sources = vec![source.clone(); contestants.len()];
    let mut samples = vec![Vec::with_capacity(rounds.count); contestants.len()];
    for round in 0..=rounds.count {
        for (i, contestant) in contestants.iter_mut().enumerate() {
            let time = if round == 0 {
                rounds.window / 3
            } else {
                rounds.window
            };
            let sample = contestant.window(&mut sources[i], time)?;
            if round > 0 {
                samples[i].push(sample);
            }
        }
    }
    Ok(samples)
}

/// As [`interleave`], for servers that work on after the last reply: all CPU time up to `settle` after
/// the round's last window is charged to the contestant's window.
pub fn interleave_settled(
    contestants: &mut [Contestant],
    source: &Mix,
    rounds: Rounds,
    settle: Duration,
) -> Result<Vec<Vec<Sample>>> {
    let mut sources = vec![source.clone(); contestants.len()];
    let mut samples = vec![Vec::with_capacity(rounds.count); contestants.len()];
    for round in 0..=rounds.count {
        let mut taken = Vec::with_capacity(contestants.len());
        for (contestant, source) in contestants.iter_mut().zip(&mut sources) {
            let before = contestant.server.cpu_time()?;
            taken.push((before, contestant.window(source, rounds.window)?));
        }
        std::thread::sleep(settle);
        for (i, (before, mut sample)) in taken.into_iter().enumerate() {
            let cpu = contestants[i].server.cpu_time()? - before;
            sample.cpu_us_per_op = cpu.as_secs_f64() * 1e6 / sample.operations as f64;
            if round > 0 {
                samples[i].push(sample);
            }
        }
    }
    Ok(samples)
}

/// The windows of one server in one row, summed up.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub server: String,
    pub cpu_us_per_op: Summary,
    pub kops: Summary,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub others_cores: f64,
}

impl Measured {
    pub fn of(server: &str, samples: &[Sample]) -> Self {
        let summary = |field: fn(&Sample) -> f64| Summary::of(samples.iter().map(field));
        Self {
            server: server.to_owned(),
            cpu_us_per_op: summary(|s| s.cpu_us_per_op),
            kops: summary(|s| s.kops),
            p50_ms: summary(|s| s.p50_ms).median,
            p99_ms: summary(|s| s.p99_ms).median,
            others_cores: summary(|s| s.others_cores).median,
        }
    }

    /// CPU per operation with its quartiles, throughput, p50, p99 and what others used.
    pub fn cells(&self) -> Vec<String> {
        vec![
            self.cpu_us_per_op.show(),
            format!("{:.0}", self.kops.median),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
            format!("{:.1}", self.others_cores),
        ]
    }
}

/// The ratio of two fields window by window: neighbours in time share the machine's mood.
pub fn ratio(of: &[Sample], to: &[Sample], field: fn(&Sample) -> f64) -> Summary {
    Summary::of(of.iter().zip(to).map(|(a, b)| field(a) / field(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu: f64) -> Sample {
        Sample {
            operations: 1,
            cpu_us_per_op: cpu,
            kops: 1.0,
            p50_ms: 1.0,
            p99_ms: 2.0,
            others_cores: 0.0,
        }
    }

    /// A slow spell that meets both servers leaves the ratio alone.
    #[test]
    fn ratios_pair_neighbouring_windows() {
        let ours: Vec<Sample> = [1.0, 2.0, 1.0].map(sample).to_vec();
        let theirs: Vec<Sample> = [2.0, 4.0, 2.0].map(sample).to_vec();
        assert_eq!(ratio(&ours, &theirs, |s| s.cpu_us_per_op).median, 0.5);
        assert_eq!(Measured::of("x", &ours).cpu_us_per_op.median, 1.0);
    }
}
