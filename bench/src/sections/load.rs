//! How fast a server starts from a snapshot, and from its log alone.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;

use super::durable::{LOGGED, PAGE, order};
use super::{Context, command, type_memory};
use crate::loadgen::calls::{Caller, Calls};
use crate::loadgen::template::{Command, Shape};
use crate::measure::{exhaust, preload};
use crate::options::RUFOUS;
use crate::procfs;
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::{Server, ServerSpec};
use crate::stats::{Summary, Target};
use crate::table::Table;

const KEY_BYTES: usize = 16;
/// Each for a quarter of the keys.
const VALUE_BYTES: [usize; 4] = [32, 43, 53, 64];
/// Million strings per second of one processor.
const RATE: Target = Target::AtLeast(1.0);
/// Of Rufous's rate to the better peer's.
const AHEAD: Target = Target::AtLeast(1.0);
const STOP: Duration = Duration::from_secs(60);

/// Elements of a collection: packed ones, to which commands add ten at a time.
const COLLECTION: u64 = 100;
const PIPELINE: usize = 16;

/// What is loaded: strings, or elements of collections.
#[derive(Clone, Copy)]
struct Kind {
    label: &'static str,
    caller: Option<Caller>,
}

impl Kind {
    fn all() -> Vec<Self> {
        let strings = Self {
            label: "string",
            caller: None,
        };
        let collections = type_memory::KINDS.map(|(label, caller)| Self {
            label,
            caller: Some(caller),
        });
        [&[strings][..], &collections].concat()
    }

    /// Keys for so many values.
    fn keys(self, values: u64) -> u64 {
        self.caller.map_or(values, |_| values / COLLECTION)
    }

    fn write(self, server: &Server, values: u64) -> Result<()> {
        if let Some(caller) = self.caller {
            let (calls, collections) = (values / type_memory::STEP, values / COLLECTION);
            let calls = Calls::new(caller, 0..calls, PIPELINE);
            return exhaust(server, &mut calls.over(collections, COLLECTION));
        }
        let quarters = VALUE_BYTES.len() as u64;
        for (i, value_bytes) in (0..).zip(VALUE_BYTES) {
            let shape = Shape {
                key_bytes: KEY_BYTES,
                value_bytes,
            };
            let range = values * i / quarters..values * (i + 1) / quarters;
            preload(server, Command::Set, shape, range)?;
        }
        Ok(())
    }
}

/// What the data comes from.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum From {
    Snapshot,
    Log,
}

impl From {
    const ALL: [Self; 2] = [Self::Snapshot, Self::Log];

    fn label(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Log => "log alone",
        }
    }

    fn of(self, kind: &str) -> String {
        format!("{}: {kind}", self.label())
    }

    /// The server as it is started, both to write the data and to read it. Peers neither compress
    /// values, as Rufous does not, nor begin their log with a snapshot.
    fn spec(self, spec: &ServerSpec) -> ServerSpec {
        let spec = match self {
            Self::Snapshot => spec.clone(),
            Self::Log => spec.with(&LOGGED).with(&["--appendfsync", "everysec"]),
        };
        if spec.name == RUFOUS {
            return spec;
        }
        spec.with(&["--rdbcompression", "no", "--aof-use-rdb-preamble", "no"])
    }
}

/// A folder with data of a server that has ended.
struct Prepared {
    spec: ServerSpec,
    from: From,
    kind: Kind,
    folder: Arc<TempDir>,
    starts: Vec<Start>,
}

/// One start.
#[derive(Clone, Copy, Serialize)]
struct Start {
    cpu_s: f64,
    wall_s: f64,
}

/// All starts of a server from one kind of data.
#[derive(Serialize)]
struct Outcome {
    server: String,
    from: From,
    kind: &'static str,
    bytes: u64,
    starts: Vec<Start>,
    /// Million strings per second: of processor time, and of time.
    per_cpu: Summary,
    per_wall: Summary,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.durable_contestants()?;
    // Whole collections.
    let keys = context.options.durable_keys().next_multiple_of(COLLECTION);
    let kinds = Kind::all();
    let runs = if context.options.quick { 1 } else { 3 };
    let steps = From::ALL.len() * kinds.len() * specs.len() * (1 + runs);
    let progress = Progress::new("load", steps as u64);
    let mut prepared = Vec::new();
    for (from, kind) in From::ALL
        .iter()
        .flat_map(|from| kinds.iter().map(move |k| (*from, *k)))
    {
        for spec in &specs {
            let (name, what) = (&spec.name, from.of(kind.label));
            progress.doing(&format!("{name}: writing its {what}"));
            prepared.push(prepare(context, spec, from, kind, keys)?);
            progress.advance(1);
        }
    }
    for _ in 0..runs {
        for data in &mut prepared {
            let (name, from) = (data.spec.name.clone(), data.from.of(data.kind.label));
            progress.doing(&format!("{name}: starting from its {from}"));
            let start = start(data, keys)?;
            progress.say(&format!(
                "{name}, {from}: {keys} values in {:.2} s, {:.2} s of CPU time",
                start.wall_s, start.cpu_s
            ));
            data.starts.push(start);
            progress.advance(1);
        }
    }
    let outcomes: Result<Vec<Outcome>> = prepared
        .into_iter()
        .map(|data| outcome(data, keys))
        .collect();
    Ok(report(&outcomes?, keys, runs))
}

fn prepare(
    context: &mut Context,
    spec: &ServerSpec,
    from: From,
    kind: Kind,
    keys: u64,
) -> Result<Prepared> {
    let spec = from.spec(spec);
    let folder = spec.folder()?;
    let mut server = Server::start_in(&spec, Arc::clone(&folder))?;
    context.note_version(&server)?;
    kind.write(&server, keys)?;
    if from == From::Snapshot {
        order(&mut server.client()?, &["SAVE"])?;
    }
    server.stop(STOP)?;
    Ok(Prepared {
        spec,
        from,
        kind,
        folder,
        starts: Vec::new(),
    })
}

fn start(data: &Prepared, keys: u64) -> Result<Start> {
    let begin = Instant::now();
    let mut server = Server::start_in(&data.spec, Arc::clone(&data.folder))?;
    let wall = begin.elapsed();
    let cpu = procfs::cpu_time_of_all(server.pid())?;
    let found = server.client()?.call(&["DBSIZE"])?.integer()?;
    let keys = data.kind.keys(keys);
    if u64::try_from(found) != Ok(keys) {
        let name = &data.spec.name;
        bail!("{name} has {found} of {keys} keys after its start");
    }
    server.stop(STOP)?;
    Ok(Start {
        cpu_s: cpu.as_secs_f64(),
        wall_s: wall.as_secs_f64(),
    })
}

fn outcome(data: Prepared, keys: u64) -> Result<Outcome> {
    let millions = keys as f64 / 1e6;
    let rate = |seconds: fn(&Start) -> f64| {
        Summary::of(data.starts.iter().map(|start| millions / seconds(start)))
    };
    Ok(Outcome {
        server: data.spec.name.clone(),
        from: data.from,
        kind: data.kind.label,
        bytes: size(data.folder.path())?,
        per_cpu: rate(|start| start.cpu_s),
        per_wall: rate(|start| start.wall_s),
        starts: data.starts,
    })
}

/// The bytes that a folder and those in it take.
fn size(folder: &Path) -> Result<u64> {
    let mut total = 0;
    let entries = std::fs::read_dir(folder);
    for entry in entries.with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(total)
}

fn report(outcomes: &[Outcome], keys: u64, runs: usize) -> Report {
    let headers = "from | server | MB on disk | seconds | CPU seconds | M values/s | \
         M values/s of CPU time | target |  | to the better peer | target | ";
    let mut table = Table::new(2, headers);
    for of in outcomes.chunk_by(|a, b| (a.from, a.kind) == (b.from, b.kind)) {
        let peers = of.iter().filter(|o| o.server != RUFOUS);
        let best = peers.map(|o| o.per_cpu.median).fold(0.0, f64::max);
        for (i, outcome) in of.iter().enumerate() {
            let label = match i {
                0 => outcome.from.of(outcome.kind),
                _ => String::new(),
            };
            table.row(cells(outcome, label, best));
        }
    }
    Report {
        slug: "load",
        part_of: Some(PAGE),
        title: "Start from a snapshot and from a log".into(),
        command: command("load"),
        method: vec![format!(
            "{keys} keys of 16 B with values of 32 to 64 B, each written once; and \
             as many elements in collections of {COLLECTION}, ten written at a time (9 B, values of 16 B, \
             integers as scores). From the start of the \
             process until it answers PING, with one worker, everything on one processor and the files \
             in the page cache; {runs} starts each, in turns, medians shown. The log alone is what \
             the commands wrote (peers: aof-use-rdb-preamble no); snapshots of the peers are not \
             compressed, as Rufous's are not. Every start is checked to have all keys.",
        )],
        table,
        chart: None,
        notes: Vec::new(),
        data: json!(outcomes),
    }
}

fn cells(outcome: &Outcome, label: String, best_peer: f64) -> Vec<String> {
    let median = |field: fn(&Start) -> f64| Summary::of(outcome.starts.iter().map(field)).median;
    let mut cells = vec![
        label,
        outcome.server.clone(),
        format!("{:.0}", outcome.bytes as f64 / 1e6),
        format!("{:.2}", median(|start| start.wall_s)),
        format!("{:.2}", median(|start| start.cpu_s)),
        format!("{:.2}", outcome.per_wall.median),
        format!("{:.2}", outcome.per_cpu.median),
    ];
    if outcome.server == RUFOUS {
        let rate = outcome.per_cpu.median;
        let ahead = rate / best_peer;
        cells.extend(match outcome.kind {
            "string" => [RATE.show(), RATE.verdict(rate).to_owned()],
            _ => [String::new(), String::new()],
        });
        cells.extend([format!("{ahead:.2}"), AHEAD.show()]);
        cells.push(AHEAD.verdict(ahead).to_owned());
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_within_count() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), [0; 7]).unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        std::fs::write(folder.path().join("b/c"), [0; 5]).unwrap();
        assert_eq!(size(folder.path()).unwrap(), 12);
    }
}
