//! CPU time per command beside the peers, at several pipeline depths and value sizes.

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::{Context, command, series_order};
use crate::loadgen::keys::Keys;
use crate::loadgen::source::Mix;
use crate::loadgen::template::{Command, Shape};
use crate::measure::{Contestant, Measured, Sample, interleave, ratio};
use crate::options::RUFOUS;
use crate::plot::{Bar, Chart, Group};
use crate::progress::Progress;
use crate::report::Report;
use crate::stats::{Summary, Target};
use crate::table::Table;

const SMALL: Shape = Shape {
    key_bytes: 8,
    value_bytes: 64,
};
const LARGE: Shape = Shape {
    key_bytes: 8,
    value_bytes: 1_024,
};

/// One line of the comparison.
struct Row {
    label: &'static str,
    command: Command,
    pipeline: usize,
    /// Of Rufous's CPU per operation to the better peer's.
    at_most: f64,
}

/// Rows that share one loaded data set.
struct DataSet {
    name: &'static str,
    preload: Command,
    shape: Shape,
    rows: &'static [Row],
}

const fn row(label: &'static str, command: Command, pipeline: usize, at_most: f64) -> Row {
    Row {
        label,
        command,
        pipeline,
        at_most,
    }
}

const DATA_SETS: [DataSet; 3] = [
    DataSet {
        name: "values of 64 B",
        preload: Command::Set,
        shape: SMALL,
        rows: &[
            row("GET", Command::Get, 1, 0.85),
            row("SET", Command::Set, 1, 0.85),
            row("GET, pipeline 16", Command::Get, 16, 0.55),
            row("SET, pipeline 16", Command::Set, 16, 0.45),
            row("GET, pipeline 64", Command::Get, 64, 0.4),
            row("SET, pipeline 64", Command::Set, 64, 0.3),
            row("MGET of 16, pipeline 16", Command::Mget(16), 16, 0.5),
            row("MSET of 4, pipeline 16", Command::Mset(4), 16, 0.5),
        ],
    },
    DataSet {
        name: "values of 1 KiB",
        preload: Command::Set,
        shape: LARGE,
        rows: &[
            row("GET 1 KiB, pipeline 16", Command::Get, 16, 0.6),
            row("SET 1 KiB, pipeline 16", Command::Set, 16, 0.6),
        ],
    },
    DataSet {
        name: "counters",
        preload: Command::SetCounter,
        shape: SMALL,
        rows: &[row("INCR, pipeline 16", Command::Incr, 16, 0.5)],
    },
];

/// A measured line.
#[derive(Serialize)]
pub(super) struct Outcome {
    label: &'static str,
    servers: Vec<Measured>,
    better_peer: String,
    ratio: Summary,
    target: Target,
    met: bool,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let rows: usize = DATA_SETS.iter().map(|set| set.rows.len()).sum();
    let specs = context.options.contestants()?;
    let progress = Progress::new("commands", (rows + DATA_SETS.len() * specs.len()) as u64);
    let mut outcomes = Vec::new();
    for set in &DATA_SETS {
        let mut contestants = Vec::new();
        for spec in &specs {
            progress.doing(&format!("loading {} into {}", set.name, spec.name));
            let (keys, connections) = (context.options.keys(), context.options.connections);
            let contestant = Contestant::start(spec, set.preload, set.shape, keys, connections)?;
            context.note_version(&contestant.server)?;
            contestants.push(contestant);
            progress.advance(1);
        }
        for row in set.rows {
            progress.doing(row.label);
            let outcome = measure(context, set, row, &mut contestants)?;
            progress.say(&outcome.line());
            outcomes.push(outcome);
            progress.advance(1);
        }
    }
    let title = "CPU time per command beside the peers";
    Ok(report("commands", title, method(context), &outcomes))
}

fn measure(
    context: &Context,
    set: &DataSet,
    row: &Row,
    contestants: &mut [Contestant],
) -> Result<Outcome> {
    let keys = Keys::Uniform(context.options.keys());
    let source = Mix::one(row.command, set.shape, keys, row.pipeline);
    let samples = interleave(contestants, &source, context.options.rounds())?;
    Ok(compare(row.label, row.at_most, contestants, &samples))
}

/// Sums up the windows of a line; Rufous is the last contestant, everything before it a peer.
pub(super) fn compare(
    label: &'static str,
    at_most: f64,
    contestants: &[Contestant],
    samples: &[Vec<Sample>],
) -> Outcome {
    let servers: Vec<Measured> = contestants
        .iter()
        .zip(samples)
        .map(|(contestant, samples)| Measured::of(&contestant.server.name, samples))
        .collect();
    let ours = servers.len() - 1;
    let better = (0..ours)
        .min_by(|a, b| {
            let cpu = |i: usize| servers[i].cpu_us_per_op.median;
            cpu(*a).total_cmp(&cpu(*b))
        })
        .unwrap_or(0);
    let ratio = ratio(&samples[ours], &samples[better], |s| s.cpu_us_per_op);
    let target = Target::AtMost(at_most);
    Outcome {
        label,
        better_peer: servers[better].server.clone(),
        servers,
        ratio,
        target,
        met: target.met(ratio.median),
    }
}

impl Outcome {
    pub(super) fn line(&self) -> String {
        let figures: Vec<String> = self
            .servers
            .iter()
            .map(|m| format!("{} {:.2}", m.server, m.cpu_us_per_op.median))
            .collect();
        format!(
            "{}: CPU-µs/op {}; ratio {:.2}, target {}: {}",
            self.label,
            figures.join(", "),
            self.ratio.median,
            self.target.show(),
            self.target.verdict(self.ratio.median),
        )
    }

    fn rows(&self, table: &mut Table) {
        for (i, measured) in self.servers.iter().enumerate() {
            let label = if i == 0 { self.label } else { "" };
            let mut cells = vec![label.to_owned(), measured.server.clone()];
            cells.extend(measured.cells());
            if measured.server == RUFOUS {
                cells.push(self.ratio.show());
                cells.extend(self.target.cells(self.ratio.median));
            }
            table.row(cells);
        }
    }

    fn bars(&self, series: &[String]) -> Group {
        let peer = self.servers.iter().find(|m| m.server == self.better_peer);
        let unit = peer.map_or(1.0, |m| m.cpu_us_per_op.median);
        let bars = series
            .iter()
            .enumerate()
            .filter_map(|(i, name)| {
                let measured = self.servers.iter().find(|m| m.server == *name)?;
                let cpu = measured.cpu_us_per_op.median;
                let value = if name == RUFOUS {
                    self.ratio.median
                } else {
                    cpu / unit
                };
                Some(Bar::new(i, value, format!("{value:.2}× · {cpu:.2} µs")))
            })
            .collect();
        Group {
            label: self.label.to_owned(),
            bars,
            target: Some(self.target.limit()),
        }
    }
}

/// The page of a comparison: its table, its chart, and how many targets were met.
pub(super) fn report(
    slug: &'static str,
    title: &str,
    method: Vec<String>,
    outcomes: &[Outcome],
) -> Report {
    let mut table = Table::new(
        2,
        "command | server | CPU-µs/op (quartiles) | kops/s | p50 ms | p99 ms | \
             others' cores | ratio to the better peer | target | ",
    );
    outcomes.iter().for_each(|outcome| outcome.rows(&mut table));
    let names: Vec<String> = outcomes
        .first()
        .map(|o| o.servers.iter().map(|m| m.server.clone()).collect())
        .unwrap_or_default();
    let series = series_order(&names);
    let chart = Chart {
        title: "CPU time per command".into(),
        axis: "relative to the better peer, less is better; one core, interleaved windows".into(),
        groups: outcomes
            .iter()
            .map(|outcome| outcome.bars(&series))
            .collect(),
        series,
    };
    let met = outcomes.iter().filter(|outcome| outcome.met).count();
    Report {
        slug,
        part_of: None,
        title: title.into(),
        command: command(slug),
        method,
        table,
        chart: Some(chart),
        notes: vec![format!("{met} of {} targets met.", outcomes.len())],
        data: json!(outcomes),
    }
}

fn method(context: &Context) -> Vec<String> {
    let options = &context.options;
    let rounds = options.rounds();
    vec![
        format!(
            "Each server runs on processor {} alone, the load generator on processor {}: a closed \
             loop over {} connections, keys of 8 B drawn uniformly from {}, values of 64 B unless \
             stated, every reply checked. Windows of {} ms alternate between the servers, {} each; \
             the table shows medians and quartiles.",
            options.server_core,
            options.load_core,
            options.connections,
            options.keys(),
            rounds.window.as_millis(),
            rounds.count,
        ),
        "CPU-µs/op is the server's user and system time divided by completed commands. The ratio is \
         taken window by window against the peer with the lower median, because neighbours on the \
         machine move all absolute figures; *others' cores* says how much they used meanwhile. \
         Latency is that of a whole pipeline."
            .into(),
    ]
}
