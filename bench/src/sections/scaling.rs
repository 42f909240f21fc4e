//! Throughput of two workers against one, the load generator sharing the two processors.

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::{Context, SHAPE, command};
use crate::loadgen::keys::Keys;
use crate::loadgen::source::Mix;
use crate::loadgen::template::Command;
use crate::measure::{Contestant, Measured, interleave, ratio};
use crate::plot::{Bar, Chart, Group};
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::{pin_this_thread, set_affinity};
use crate::stats::{Summary, Target};
use crate::table::Table;

const TARGET: Target = Target::AtLeast(1.5);
const PIPELINE: usize = 64;

#[derive(Serialize)]
struct Outcome {
    label: &'static str,
    /// With one worker, then with two.
    workers: Vec<Measured>,
    ratio: Summary,
    met: bool,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let (server_core, load_core) = (context.options.server_core, context.options.load_core);
    set_affinity(&[server_core, load_core])?;
    let outcomes = measure(context);
    pin_this_thread(load_core)?;
    Ok(report(&outcomes?, context.options.connections))
}

fn measure(context: &mut Context) -> Result<Vec<Outcome>> {
    let options = &context.options;
    let cores = format!("{},{}", options.server_core, options.load_core);
    let spec = options.rufous.spec()?.on_cores(&cores);
    let (keys, connections, rounds) = (options.keys(), options.connections, options.rounds());
    let progress = Progress::new("scaling", 4);
    let mut contestants = Vec::new();
    for workers in [1, 2] {
        progress.doing(&format!("loading, {workers} workers"));
        let spec = spec.with_workers(workers);
        contestants.push(Contestant::start(
            &spec,
            Command::Set,
            SHAPE,
            keys,
            connections,
        )?);
        progress.advance(1);
    }
    context.note_version(&contestants[0].server)?;
    let mut outcomes = Vec::new();
    for (label, kind) in [
        ("GET, pipeline 64", Command::Get),
        ("SET, pipeline 64", Command::Set),
    ] {
        progress.doing(label);
        let source = Mix::one(kind, SHAPE, Keys::Uniform(keys), PIPELINE);
        let samples = interleave(&mut contestants, &source, rounds)?;
        let ratio = ratio(&samples[1], &samples[0], |s| s.kops);
        progress.say(&format!("{label}: {:.2}× with two workers", ratio.median));
        let workers = ["1", "2"]
            .iter()
            .zip(&samples)
            .map(|(n, s)| Measured::of(n, s))
            .collect();
        outcomes.push(Outcome {
            label,
            workers,
            ratio,
            met: TARGET.met(ratio.median),
        });
        progress.advance(1);
    }
    Ok(outcomes)
}

fn report(outcomes: &[Outcome], connections: usize) -> Report {
    let headers = "command | workers | CPU-µs/op (quartiles) | kops/s | p50 ms | p99 ms | others' cores | \
         throughput ratio | target | ";
    let mut table = Table::new(2, headers);
    let mut groups = Vec::new();
    for outcome in outcomes {
        for (i, measured) in outcome.workers.iter().enumerate() {
            let label = if i == 0 { outcome.label } else { "" };
            let mut cells = vec![label.to_owned(), measured.server.clone()];
            cells.extend(measured.cells());
            if i == 1 {
                cells.push(outcome.ratio.show());
                cells.extend(TARGET.cells(outcome.ratio.median));
            }
            table.row(cells);
        }
        groups.push(group(outcome));
    }
    Report {
        slug: "scaling",
        part_of: None,
        title: "Two workers against one".into(),
        command: command("scaling"),
        method: vec![format!(
            "Servers with one and with two workers in turn, {connections} connections, pipeline \
             {PIPELINE}. Server and load generator share two processors, so two workers never have \
             both to themselves; keys are uniform, so half of the commands reach the other worker."
        )],
        table,
        chart: Some(Chart {
            title: "Throughput with one and two workers".into(),
            axis: "thousand commands per second; more is better".into(),
            series: vec!["one worker".into(), "two workers".into()],
            groups,
        }),
        notes: Vec::new(),
        data: json!(outcomes),
    }
}

fn group(outcome: &Outcome) -> Group {
    let bar = |(series, measured): (usize, &Measured)| {
        let value = measured.kops.median;
        Bar::new(series, value, format!("{value:.0} k/s"))
    };
    let one = outcome.workers.first();
    Group {
        label: outcome.label.to_owned(),
        bars: outcome.workers.iter().enumerate().map(bar).collect(),
        target: one.map(|m| m.kops.median * TARGET.limit()),
    }
}
