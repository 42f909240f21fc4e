//! What a SET of a strict key costs on a node that has a lattice keyspace: nearly nothing more.
//!
//! The connection and the keys belong to one worker, so that no message to another one is counted.
//! A keyspace whose prefix begins with another byte than the keys is told from theirs by one
//! look; with the same first byte, by some more bytes.
//!
//! The difference is smaller than what starts and ticks of the clock add to the totals of runs. So only the measured
//! commands are counted, without the ticks among them.

use anyhow::{Context, Result, bail};

use super::{KEYS, Options, PATIENCE, counts_of, total};
use crate::loadgen::keys::Keys;
use crate::loadgen::load::{Load, Stop};
use crate::loadgen::source::{Limited, Mix};
use crate::loadgen::template::{Command, Shape};
use crate::measure::preload;
use crate::progress::Progress;
use crate::sections::cross::{connections_by_worker, owned_keys};
use crate::servers::{Server, ServerSpec};
use crate::table::Table;

/// Keys begin with `k`.
pub(super) const SHAPE: Shape = Shape {
    key_bytes: 16,
    value_bytes: 64,
};
/// The prefixes of lattice keyspaces that are compared, and how they differ from the keys.
const KEYSPACES: [(&str, &str); 2] = [
    ("another first byte", "cart:"),
    ("the same first byte", "kart:"),
];
const WORKERS: [usize; 2] = [1, 2];
const PIPELINES: [usize; 2] = [16, 1];

/// How the name ends of what a worker does at each tick.
const TICK: &str = "::on_tick";

/// Rows, and figures in each.
pub(super) const ROWS: u64 = (WORKERS.len() * PIPELINES.len()) as u64;
pub(super) const PER_ROW: u64 = 1 + KEYSPACES.len() as u64;

/// Instructions per SET, without and with each of the keyspaces.
pub(super) fn table(options: &Options, spec: &ServerSpec, progress: &Progress) -> Result<Table> {
    let mut spec = spec.clone();
    spec.words.insert(2, "--instr-atstart=no".to_owned());
    let mut table = Table::new(
        1,
        "workers, pipeline | none | another first byte | change | the same first byte | change",
    );
    for workers in WORKERS {
        for pipeline in PIPELINES {
            let spec = spec.with_workers(workers);
            let name = format!("{workers}, {pipeline}");
            let count = |how: &str, prefix: Option<&str>| -> Result<f64> {
                let mut least = f64::INFINITY;
                for _ in 0..options.runs.max(1) {
                    progress.doing(&format!("SET, {name}, {how}"));
                    least = least.min(run(&spec, prefix, (pipeline, options.operations))?);
                    progress.advance(1);
                }
                progress.say(&format!("SET, {name}, {how}: {least:.0} instructions"));
                Ok(least)
            };
            let none = count("none", None)?;
            let mut cells = vec![name.clone(), format!("{none:.0}")];
            for (how, prefix) in KEYSPACES {
                let beside = count(how, Some(prefix))?;
                let change = (beside / none - 1.0) * 100.0;
                cells.extend([format!("{beside:.0}"), format!("{change:+.1} %")]);
            }
            table.row(cells);
        }
    }
    Ok(table)
}

/// Instructions per command in one run, without those of ticks.
fn run(
    spec: &ServerSpec,
    prefix: Option<&str>,
    (pipeline, operations): (usize, u64),
) -> Result<f64> {
    let mut server = Server::start(spec)?;
    preload(&server, Command::Set, SHAPE, 0..KEYS)?;
    if let Some(prefix) = prefix {
        let create = [
            "KEYSPACE", "CREATE", "beside", "PREFIX", prefix, "REGIME", "lattice",
        ];
        let reply = server.client()?.call(&create)?.text()?;
        if reply != "OK" {
            bail!("KEYSPACE CREATE: {reply}");
        }
    }
    let (mut load, keys) = match spec.workers {
        1 => (Load::connect(server.addr, 1)?, Keys::Uniform(KEYS)),
        _ => of_first(&server)?,
    };
    let batches = operations / pipeline as u64;
    let mut source = Limited {
        source: Mix::one(Command::Set, SHAPE, keys, pipeline),
        batches,
    };
    instrument(&server, "on")?;
    load.run(&mut source, Stop::Exhausted)?;
    instrument(&server, "off")?;
    server.stop(PATIENCE)?;
    let text = counts_of(&server)?;
    let total = total(&text).context("callgrind's output has no total")?;
    Ok(total.saturating_sub(ticks(&text)) as f64 / (batches * pipeline as u64) as f64)
}

/// Has callgrind count from now on, or no longer.
fn instrument(server: &Server, state: &str) -> Result<()> {
    let pid = server.pid().to_string();
    let output = std::process::Command::new("callgrind_control")
        .args(["-i", state, &pid])
        .output()
        .context("running callgrind_control, which comes with valgrind")?;
    if !output.status.success() {
        bail!("callgrind_control -i {state}: {}", output.status);
    }
    Ok(())
}

/// Instructions of all calls of the function that a worker runs at each tick of its clock. In callgrind's format a line
/// `cfn=(number) name` says what is called, with its name where the number is new; the line after `calls=` ends in the cost.
fn ticks(text: &str) -> u64 {
    let mut numbers = Vec::new();
    let (mut is_tick, mut sum) = (false, 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let called = line.strip_prefix("cfn=");
        if let Some(name) = called.or_else(|| line.strip_prefix("fn=")) {
            let number = name.split(' ').next().unwrap_or_default();
            if name.ends_with(TICK) {
                numbers.push(number);
            }
            is_tick = called.is_some() && numbers.contains(&number);
        } else if line.starts_with("calls=") {
            let cost = lines.next().and_then(|line| line.split(' ').nth(1));
            let cost = cost.and_then(|cost| cost.parse::<u64>().ok());
            sum += cost.filter(|_| is_tick).unwrap_or_default();
        }
    }
    sum
}

/// A connection of the first worker, and its keys.
fn of_first(server: &Server) -> Result<(Load, Keys)> {
    let owned = owned_keys(server, SHAPE, KEYS)?.into_iter().next();
    let streams = connections_by_worker(server, 1)?.into_iter().next();
    let load = Load::adopt(streams.context("no connection")?)?;
    Ok((load, Keys::Listed(owned.context("no keys")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_all_calls_of_one_function() {
        let text = "fn=(1) a\n1 5\ncfn=(2) Front::on_tick\ncalls=3 9\n2 70\n+1 1\ncfn=(3) b\ncalls=1 1\n* 900\n\n\
            fn=(2)\n9 70\n\nfn=(4) c\ncfn=(2)\ncalls=1 9\n4 30\n";
        assert_eq!(ticks(text), 100);
    }
}
