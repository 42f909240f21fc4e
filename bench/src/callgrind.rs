//! Instructions per command, counted by valgrind: the same each time where times are not, and so a
//! table against which a regression shows.
//!
//! One connection sends a fixed number of commands, and in a second run twice as many. The
//! difference of the two counts, divided by the difference of the commands, leaves out start,
//! preload and end.
//!
//! - [`beside`]: SET of strict keys on a node that has a lattice keyspace

mod beside;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::date;
use crate::loadgen::keys::Keys;
use crate::loadgen::load::{Load, Stop};
use crate::loadgen::source::{Limited, Mix};
use crate::loadgen::template::Command;
use crate::measure::preload;
use crate::options::RufousOptions;
use crate::progress::Progress;
use crate::sections::SHAPE;
use crate::servers::{Server, ServerSpec, on_path};
use crate::table::Table;

const PIPELINE: usize = 16;
const KEYS: u64 = 10_000;
/// A server under valgrind takes its time.
const PATIENCE: Duration = Duration::from_secs(180);
/// A command that needs this much more than the stored count has regressed.
const TOLERANCE: f64 = 0.10;
const COUNTS_FILE: &str = "callgrind.out";
const BESIDE: &str = "Instructions per SET of a strict key, beside a lattice keyspace";

const COMMANDS: [(&str, Command); 6] = [
    ("PING", Command::Ping),
    ("GET", Command::Get),
    ("SET", Command::Set),
    ("INCR", Command::Incr),
    ("MGET of 16", Command::Mget(16)),
    ("MSET of 4", Command::Mset(4)),
];

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Each command on a node without keyspaces.
    Commands,
    /// SET of strict keys on a node with and without a lattice keyspace.
    Beside,
}

/// Instructions per command by callgrind, beside the stored ones.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    pub rufous: RufousOptions,
    /// Only this table; nothing is stored then
    #[arg(long, value_enum)]
    pub only: Option<Part>,
    /// Commands in the first of the two runs
    #[arg(long, default_value_t = 20_000)]
    pub operations: u64,
    /// Runs of each length, of which the one with the fewest instructions counts: what a worker does by the clock adds to
    /// the others
    #[arg(long, default_value_t = 3)]
    pub runs: u64,
    /// Where instructions.md and instructions.json are
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    pub out: PathBuf,
    /// Change nothing, and fail if a command needs over 10 % more than stored
    #[arg(long)]
    pub check: bool,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// Instructions per command, as stored.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Counts {
    date: String,
    instructions: BTreeMap<String, f64>,
}

pub fn run(options: &Options) -> Result<()> {
    if on_path("valgrind").is_none() {
        bail!("valgrind is not installed: apt-get install valgrind");
    }
    if options.operations < PIPELINE as u64 {
        bail!("--operations must be at least {PIPELINE}");
    }
    let stored = read_stored(options)?;
    if options.check && stored.instructions.is_empty() {
        bail!(
            "nothing stored in {} to check against",
            options.out.display()
        );
    }
    let spec = under_valgrind(options.rufous.spec()?);
    let commands = options.wants(Part::Commands);
    let is_beside = options.wants(Part::Beside) && !options.check;
    let counts = u64::from(commands) * 2 * COMMANDS.len() as u64
        + u64::from(is_beside) * beside::ROWS * beside::PER_ROW;
    let progress = Progress::new("callgrind", options.runs.max(1) * counts);
    let mut now = Counts {
        date: date::today(),
        instructions: BTreeMap::new(),
    };
    if commands {
        now.instructions = count_commands(options, &spec, &progress)?;
    }
    let beside = if is_beside {
        Some(beside::table(options, &spec, &progress)?)
    } else {
        None
    };
    drop(progress);
    let (table, regressed) = compare(&now, &stored);
    if commands {
        println!("\nInstructions per command\n\n{}", table.terminal());
    }
    if let Some(beside) = &beside {
        println!("\n{BESIDE}\n\n{}", beside.terminal());
    }
    if options.check && !regressed.is_empty() {
        bail!(
            "over {:.0} % more than stored: {}",
            TOLERANCE * 100.0,
            regressed.join(", ")
        );
    }
    match beside {
        Some(beside) if commands => write(options, &now, &table, &beside),
        _ => Ok(()),
    }
}

/// Instructions of each of [`COMMANDS`].
fn count_commands(
    options: &Options,
    spec: &ServerSpec,
    progress: &Progress,
) -> Result<BTreeMap<String, f64>> {
    let mut counts = BTreeMap::new();
    for (name, command) in COMMANDS {
        let mut totals = [f64::INFINITY; 2];
        for _ in 0..options.runs.max(1) {
            for (total, times) in totals.iter_mut().zip([1, 2]) {
                progress.doing(&format!("{name}, {} commands", options.operations * times));
                let counted = instructions(spec, command, options.operations * times)?;
                *total = total.min(counted as f64);
                progress.advance(1);
            }
        }
        let batches = options.operations / PIPELINE as u64;
        let per_command = (totals[1] - totals[0]) / (batches * PIPELINE as u64) as f64;
        progress.say(&format!("{name}: {per_command:.0} instructions"));
        counts.insert(name.to_owned(), per_command);
    }
    Ok(counts)
}

fn under_valgrind(spec: ServerSpec) -> ServerSpec {
    let out = format!("--callgrind-out-file={{dir}}/{COUNTS_FILE}");
    let mut words = ["valgrind", "--tool=callgrind", &out]
        .map(str::to_owned)
        .to_vec();
    words.extend(spec.words);
    ServerSpec {
        words,
        patience: PATIENCE,
        ..spec
    }
}

/// What a run with this many commands takes in total, in whole batches.
fn instructions(spec: &ServerSpec, command: Command, operations: u64) -> Result<u64> {
    let mut server = Server::start(spec)?;
    let counters = command == Command::Incr;
    let content = if counters {
        Command::SetCounter
    } else {
        Command::Set
    };
    preload(&server, content, SHAPE, 0..KEYS)?;
    let mut load = Load::connect(server.addr, 1)?;
    let source = Mix::one(command, SHAPE, Keys::Uniform(KEYS), PIPELINE);
    let mut source = Limited {
        source,
        batches: operations / PIPELINE as u64,
    };
    load.run(&mut source, Stop::Exhausted)?;
    server.stop(PATIENCE)?;
    total(&counts_of(&server)?).context("callgrind's output has no total")
}

/// What callgrind has written about a server that has ended.
fn counts_of(server: &Server) -> Result<String> {
    let path = server.dir().join(COUNTS_FILE);
    fs::read_to_string(&path).context("reading what callgrind counted")
}

/// Instructions fetched, summed over all threads.
fn total(text: &str) -> Option<u64> {
    let line = ["totals:", "summary:"]
        .iter()
        .find_map(|field| text.lines().find_map(|line| line.strip_prefix(field)))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn read_stored(options: &Options) -> Result<Counts> {
    let path = options.out.join("instructions.json");
    match fs::read_to_string(&path) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Counts::default()),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// The table, and the commands that need too much more than before.
fn compare(now: &Counts, stored: &Counts) -> (Table, Vec<String>) {
    let mut table = Table::new(1, "command | instructions | stored | change");
    let mut regressed = Vec::new();
    for (name, _) in COMMANDS {
        let Some(count) = now.instructions.get(name) else {
            continue;
        };
        let mut cells = vec![name.to_owned(), format!("{count:.0}")];
        if let Some(before) = stored.instructions.get(name) {
            let change = count / before - 1.0;
            cells.extend([format!("{before:.0}"), format!("{:+.1} %", change * 100.0)]);
            if change > TOLERANCE {
                regressed.push(name.to_owned());
            }
        }
        table.row(cells);
    }
    (table, regressed)
}

fn write(options: &Options, now: &Counts, table: &Table, beside: &Table) -> Result<()> {
    fs::create_dir_all(&options.out)?;
    let page = format!(
        "# Instructions per command\n\nPrinted by `cargo run --release -p rufous-bench -- callgrind` on {}: one \
         worker under `valgrind --tool=callgrind`, one connection, pipeline {PIPELINE}, {KEYS} keys \
         of 8 B with values of 64 B; the difference between a run with {} commands and one with \
         twice as many, each the one of {} with the fewest instructions, as ticks of the clock add to them. *Stored* is what stood here before.\n\n{}\n\
         ## {BESIDE}\n\nKeys of 16 B and the connection are those of one worker. The node has no keyspace, or one lattice keyspace \
         that none of the keys is in, whose prefix begins with another byte than the keys or with the same. With a pipeline of 1 \
         most of the instructions are those of a turn of the worker.\n\n{}",
        now.date,
        options.operations,
        options.runs.max(1),
        table.markdown(),
        beside.markdown(),
    );
    let json = serde_json::to_string_pretty(now)? + "\n";
    for (name, text) in [("instructions.md", &page), ("instructions.json", &json)] {
        let path = options.out.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(get: f64, set: f64) -> Counts {
        let instructions = BTreeMap::from([("GET".to_owned(), get), ("SET".to_owned(), set)]);
        Counts {
            date: String::new(),
            instructions,
        }
    }

    #[test]
    fn only_what_grew_beyond_the_tolerance_has_regressed() {
        let (table, regressed) = compare(&counts(1_111.0, 1_090.0), &counts(1_000.0, 1_000.0));
        assert_eq!(regressed, ["GET"]);
        assert!(table.terminal().contains("+11.1 %"));
        let (_, regressed) = compare(&counts(9_999.0, 1.0), &Counts::default());
        assert!(regressed.is_empty());
    }

    #[test]
    fn totals_are_read() {
        assert_eq!(
            total("events: Ir\nsummary: 7\nfn=x\ntotals: 123456\n"),
            Some(123_456)
        );
        assert_eq!(total("events: Ir\nsummary: 7\n"), Some(7));
        assert_eq!(total("events: Ir\n"), None);
    }
}
