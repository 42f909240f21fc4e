//! One load against a running server, for trying things out and for profiling.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::client::{Client, resolve};
use crate::loadgen::keys::{DIGITS, Keys, MAX_KEYS};
use crate::loadgen::load::{Load, Stop};
use crate::loadgen::source::{Mix, Preload};
use crate::loadgen::template::{Command, Shape};
use crate::loadgen::zipf::ScrambledZipfian;
use crate::procfs;
use crate::progress::Progress;
use crate::servers::pin_this_thread;

/// One load against a running server.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    #[arg(long, default_value_t = 6379)]
    pub port: u16,
    /// Commands and weights: ping, get, set, incr, mget<n>, mset<n>
    #[arg(long, default_value = "get:1", value_delimiter = ',')]
    pub mix: Vec<String>,
    #[arg(long, default_value_t = 50)]
    pub connections: usize,
    #[arg(long, default_value_t = 1)]
    pub pipeline: usize,
    #[arg(long, default_value_t = 1_000_000)]
    pub keys: u64,
    /// At least 8
    #[arg(long, default_value_t = 8)]
    pub key_size: usize,
    #[arg(long, default_value_t = 64)]
    pub value_size: usize,
    /// Skew of zipfian keys, between 0 and 1 [default: uniform]
    #[arg(long)]
    pub zipf: Option<f64>,
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// The keys are there already
    #[arg(long)]
    pub no_preload: bool,
    /// Bind the load generator to this processor
    #[arg(long)]
    pub load_core: Option<usize>,
}

pub fn run(options: &Options) -> Result<()> {
    let mix = parse_mix(&options.mix)?;
    let counters = mix.iter().any(|(_, command)| *command == Command::Incr);
    if counters && mix.len() > 1 {
        bail!("incr needs keys that hold integers and cannot be mixed with other commands");
    }
    if options.key_size < DIGITS || options.keys == 0 || options.keys > MAX_KEYS {
        bail!("keys have at least {DIGITS} bytes, and there are 1 to {MAX_KEYS} of them");
    }
    if let Some(core) = options.load_core {
        pin_this_thread(core)?;
    }
    let addr = resolve(&options.host, options.port)?;
    let shape = Shape {
        key_bytes: options.key_size,
        value_bytes: options.value_size,
    };
    let keys = match options.zipf {
        None => Keys::Uniform(options.keys),
        Some(theta) if theta > 0.0 && theta < 1.0 => {
            Keys::Zipfian(ScrambledZipfian::new(options.keys, theta), options.keys)
        }
        Some(theta) => bail!("a skew of {theta} is not between 0 and 1"),
    };
    let mut load = Load::connect(addr, options.connections)?;
    if !options.no_preload {
        let command = if counters {
            Command::SetCounter
        } else {
            Command::Set
        };
        let progress = Progress::new("preload", options.keys);
        let mut source = Preload::new(command, shape, 0..options.keys, 32);
        load.run_with(&mut source, Stop::Exhausted, &mut |done| progress.set(done))?;
    }
    measure(
        options,
        addr,
        &mut load,
        Mix::new(&mix, shape, keys, options.pipeline.max(1)),
    )
}

fn measure(options: &Options, addr: SocketAddr, load: &mut Load, mut mix: Mix) -> Result<()> {
    let pid = Client::connect(addr)?.local_pid();
    let own = std::process::id();
    let server_before = pid.map(procfs::cpu_time).transpose()?;
    let own_before = procfs::cpu_time(own)?;
    let time = Duration::try_from_secs_f64(options.seconds)?;
    let window = load.run(&mut mix, Stop::After(time))?;
    let own_cpu = procfs::cpu_time(own)? - own_before;
    let server_after = pid.map(procfs::cpu_time).transpose()?;
    let operations = window.operations() as f64;
    let latency = window.latency()?;
    let per_op = |cpu: Duration| cpu.as_secs_f64() * 1e6 / operations;
    println!(
        "{:.0} ops/s; p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms; load generator {:.2} CPU-µs/op",
        operations / window.elapsed.as_secs_f64(),
        latency.percentile_ms(50.0),
        latency.percentile_ms(99.0),
        latency.percentile_ms(99.9),
        per_op(own_cpu),
    );
    if let Some((before, after)) = server_before.zip(server_after) {
        println!("server {:.2} CPU-µs/op", per_op(after - before));
    }
    Ok(())
}

fn parse_mix(words: &[String]) -> Result<Vec<(u64, Command)>> {
    words
        .iter()
        .map(|word| {
            let (name, weight) = word.split_once(':').unwrap_or((word, "1"));
            let weight: u64 = weight
                .parse()
                .with_context(|| format!("the weight in {word}"))?;
            Ok((weight.max(1), name.parse()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_parse() {
        let words = ["get:95".to_owned(), "mset4".to_owned()];
        assert_eq!(
            parse_mix(&words).unwrap(),
            [(95, Command::Get), (1, Command::Mset(4))]
        );
        assert!(parse_mix(&["get:x".to_owned()]).is_err());
    }
}
