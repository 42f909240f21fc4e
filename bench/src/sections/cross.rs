//! What a command costs when another worker than the connection's owns its key.

use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::json;

use super::{Context, SHAPE, command};
use crate::client::{Client, encode};
use crate::loadgen::keys::{self, Keys};
use crate::loadgen::load::Load;
use crate::loadgen::source::Mix;
use crate::loadgen::template::{Command, Shape};
use crate::measure::{Measured, Rounds, Sample, preload, ratio, window};
use crate::plot::{Bar, Chart, Group};
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::Server;
use crate::stats::{Summary, Target};
use crate::table::Table;

const TARGET: Target = Target::AtMost(1.6);
const PIPELINE: usize = 16;
const WORKERS: usize = 2;
/// Questions for owners sent at once.
const ASK: u64 = 1_000;
/// Connections tried per connection wanted before giving up on a worker.
const TRIES: usize = 20;

#[derive(Serialize)]
struct Outcome {
    label: String,
    own: Measured,
    other: Measured,
    ratio: Summary,
    met: bool,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let options = &context.options;
    let cores = format!("{},{}", options.server_core, options.load_core);
    let spec = options
        .rufous
        .spec()?
        .with_workers(WORKERS)
        .on_cores(&cores);
    let (keys, connections, rounds) = (options.keys(), options.connections, options.rounds());
    let progress = Progress::new("cross", 2 + 2 * WORKERS as u64);
    progress.doing("loading");
    let server = Server::start(&spec)?;
    context.note_version(&server)?;
    preload(&server, Command::Set, SHAPE, 0..keys)?;
    progress.advance(1);
    progress.doing("asking who owns which key");
    let owned = owned_keys(&server, SHAPE, keys)?;
    let streams = connections_by_worker(&server, connections)?;
    let mut loads = streams
        .into_iter()
        .map(Load::adopt)
        .collect::<Result<Vec<_>>>()?;
    progress.advance(1);
    let mut outcomes = Vec::new();
    for (name, kind) in [("GET", Command::Get), ("SET", Command::Set)] {
        for (owner, list) in owned.iter().enumerate() {
            let label = format!("{name}, keys of worker {owner}");
            progress.doing(&label);
            let mix = Mix::one(kind, SHAPE, Keys::Listed(list.clone()), PIPELINE);
            let (own, other) = alternate(&server, &mut loads, owner, &mix, rounds)?;
            let ratio = ratio(&other, &own, |s| s.cpu_us_per_op);
            progress.say(&format!("{label}: {:.2}× across workers", ratio.median));
            outcomes.push(Outcome {
                label,
                own: Measured::of("own", &own),
                other: Measured::of("other", &other),
                ratio,
                met: TARGET.met(ratio.median),
            });
            progress.advance(1);
        }
    }
    Ok(report(&outcomes, connections))
}

/// Windows on the connections of the owner and of the other worker in turn.
fn alternate(
    server: &Server,
    loads: &mut [Load],
    owner: usize,
    mix: &Mix,
    rounds: Rounds,
) -> Result<(Vec<Sample>, Vec<Sample>)> {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    let warm_up = Duration::min(rounds.window, Duration::from_millis(200));
    for load in loads.iter_mut() {
        window(server, load, &mut mix.clone(), warm_up)?;
    }
    let mut sources = [mix.clone(), mix.clone()];
    for _ in 0..rounds.count {
        own.push(window(
            server,
            &mut loads[owner],
            &mut sources[0],
            rounds.window,
        )?);
        let foreign = &mut loads[WORKERS - 1 - owner];
        other.push(window(server, foreign, &mut sources[1], rounds.window)?);
    }
    Ok((own, other))
}

/// The numbers of the keys that each of two workers owns, as the server itself says.
pub(crate) fn owned_keys(server: &Server, shape: Shape, keys: u64) -> Result<Vec<Vec<u32>>> {
    let mut client = server.client()?;
    let mut owned = vec![Vec::new(); WORKERS];
    let prefix = keys::prefix(shape.key_bytes);
    let mut next = 0;
    while next < keys {
        let end = keys.min(next + ASK);
        let mut out = Vec::new();
        for number in next..end {
            let key = [&prefix[..], &keys::digits(number)].concat();
            encode(&mut out, &[b"DEBUG", b"OWNER", &key]);
        }
        client.send(&out)?;
        for number in next..end {
            let owner = client
                .receive()?
                .integer()
                .context("asking for DEBUG OWNER")?;
            worker_list(&mut owned, owner)?.push(number as u32);
        }
        next = end;
    }
    if owned.iter().any(Vec::is_empty) {
        bail!("one of the workers owns none of {keys} keys");
    }
    Ok(owned)
}

/// As many connections to each of two workers as wanted.
pub(crate) fn connections_by_worker(server: &Server, wanted: usize) -> Result<Vec<Vec<TcpStream>>> {
    let mut found: Vec<Vec<TcpStream>> = (0..WORKERS).map(|_| Vec::new()).collect();
    for _ in 0..wanted * TRIES {
        if found.iter().all(|list| list.len() == wanted) {
            return Ok(found);
        }
        let mut client = Client::connect(server.addr)?;
        let worker = client.call(&["DEBUG", "WORKER"])?.integer()?;
        let list = worker_list(&mut found, worker)?;
        if list.len() < wanted {
            list.push(client.into_stream()?);
        }
    }
    let counts: Vec<usize> = found.iter().map(Vec::len).collect();
    bail!("connections reached the workers {counts:?} times, {wanted} each are wanted")
}

fn worker_list<T>(lists: &mut [Vec<T>], worker: i64) -> Result<&mut Vec<T>> {
    usize::try_from(worker)
        .ok()
        .and_then(|i| lists.get_mut(i))
        .with_context(|| format!("the server speaks of worker {worker}, it was given {WORKERS}"))
}

fn report(outcomes: &[Outcome], connections: usize) -> Report {
    let headers = "command | connection's worker | CPU-µs/op (quartiles) | kops/s | p50 ms | p99 ms | \
         others' cores | ratio | target | ";
    let mut table = Table::new(2, headers);
    let mut groups = Vec::new();
    for outcome in outcomes {
        let mut cells = vec![outcome.label.clone(), "owns the key".into()];
        cells.extend(outcome.own.cells());
        table.row(cells);
        let mut cells = vec![String::new(), "does not".into()];
        cells.extend(outcome.other.cells());
        cells.push(outcome.ratio.show());
        cells.extend(TARGET.cells(outcome.ratio.median));
        table.row(cells);
        let bar = |series, measured: &Measured| {
            let value = measured.cpu_us_per_op.median;
            Bar::new(series, value, format!("{value:.2} µs"))
        };
        groups.push(Group {
            label: outcome.label.clone(),
            bars: vec![bar(0, &outcome.own), bar(1, &outcome.other)],
            target: Some(outcome.own.cpu_us_per_op.median * TARGET.limit()),
        });
    }
    Report {
        slug: "cross",
        part_of: None,
        title: "Commands on keys of another worker".into(),
        command: command("cross"),
        method: vec![format!(
            "Two workers on two processors, which the load generator shares; {connections} \
             connections of one worker at a time, pipeline {PIPELINE}, all keys owned by one \
             worker. Windows on connections of the owner and of the other worker alternate; the \
             figure is the CPU time of the whole process per command."
        )],
        table,
        chart: Some(Chart {
            title: "CPU time per command, own and other worker's keys".into(),
            axis: "CPU-µs per command; less is better".into(),
            series: vec![
                "connection's worker owns the key".into(),
                "it does not".into(),
            ],
            groups,
        }),
        notes: Vec::new(),
        data: json!(outcomes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_workers_are_refused() {
        let mut lists = vec![vec![1], vec![2]];
        assert_eq!(worker_list(&mut lists, 1).unwrap(), &vec![2]);
        assert!(worker_list(&mut lists, 2).is_err());
        assert!(worker_list(&mut lists, -1).is_err());
    }
}
