//! The page of Anna's Figure 10: levels beside eventual consistency, over TCP and in process, what they
//! are in lines of code, and what causal cuts cost.

use anyhow::Result;
use serde_json::json;

use super::anna10::{CUT_PIPELINE, EVENTUAL, InProcess, Measured, Options, Row, SKEW, WORKERS};
use super::options::rufous;
use super::rufous::GOSSIP_MS;
use super::served::{self, Sample};
use super::sixes::{OPERATIONS, Way};
use rufous_bench::plot::{Bar, Chart, Group};
use rufous_bench::procfs::Machine;
use rufous_bench::report::Report;
use rufous_bench::stats::{Summary, Target};
use rufous_bench::table::Table;

const COMMAND: &str = "cargo xtask figures anna10";
const PAGE: &str = "anna-10.md";

/// Prints everything, and writes it where the options say.
pub(crate) fn show(options: &Options, machine: &Machine, measured: &Measured) -> Result<()> {
    let reports = [
        levels(options, measured),
        in_process(options, measured),
        cuts(options, measured),
        code(measured),
    ];
    let (common, versions) = (&options.common, rufous(measured.version.clone()));
    common.publish(machine, versions, &reports, &[])
}

/// A row while it is measured.
pub(crate) fn line(row: &Row) -> String {
    format!(
        "zipf {}, {}: {:.0} k/s, {:.2} CPU-µs each, {:.1} ms stale",
        row.skew,
        row.name,
        median(row, |s| s.kops),
        median(row, |s| s.cpu_us),
        row.stale_us / 1e3
    )
}

fn summary(row: &Row, field: impl Fn(&Sample) -> f64) -> Summary {
    served::summary(&row.samples, field)
}

fn median(row: &Row, field: impl Fn(&Sample) -> f64) -> f64 {
    summary(row, field).median
}

fn kops(row: &Row) -> String {
    let all = summary(row, |s| s.kops);
    format!(
        "{:.0} ({:.0}–{:.0})",
        all.median, all.low_quartile, all.high_quartile
    )
}

/// What a level is to reach beside eventual consistency.
fn target(round_trips: usize) -> Target {
    Target::AtLeast(if round_trips < OPERATIONS { 1.0 } else { 0.8 })
}

/// The row of eventual consistency under the same mix.
fn eventual<'a>(rows: &'a [Row], of: &Row) -> Option<&'a Row> {
    let is = |row: &&Row| row.name == EVENTUAL && row.skew == of.skew;
    rows.iter().find(is)
}

fn levels(options: &Options, measured: &Measured) -> Report {
    let headers = "level | waits for a reply | k/s (quartiles) | CPU-µs/op (quartiles) | ms stale | \
         others' cores | to eventual | target | ";
    let mut table = Table::new(1, headers);
    let (mut groups, mut missed) = (Vec::new(), Vec::new());
    for row in &measured.levels {
        let Some(eventual) = eventual(&measured.levels, row) else {
            continue;
        };
        let ratio = served::ratio(&row.samples, &eventual.samples, |s| s.kops);
        let target = target(row.round_trips);
        let verdict = target.verdict(ratio.median);
        table.row(vec![
            row.name.to_owned(),
            row.round_trips.to_string(),
            kops(row),
            summary(row, |s| s.cpu_us).show(),
            format!("{:.1}", row.stale_us / 1e3),
            format!("{:.2}", median(row, |s| s.others_cores)),
            ratio.show(),
            target.show(),
            verdict.to_owned(),
        ]);
        if !target.met(ratio.median) {
            missed.push((row.name, ratio.median, target));
        }
        groups.push(group(row.name, 0, ratio.median, Some(target.limit())));
    }
    Report {
        slug: "anna-10",
        part_of: None,
        title: "What consistency levels cost".into(),
        command: COMMAND.into(),
        method: levels_method(options),
        table,
        chart: Some(Chart {
            title: "Six operations at each level, over TCP, beside eventual consistency".into(),
            axis: "throughput at level eventual = 1; more is better".into(),
            series: vec!["over TCP".into()],
            groups,
        }),
        notes: notes(&missed, &measured.refused),
        data: json!(measured.levels),
    }
}

fn group(name: &str, series: usize, value: f64, target: Option<f64>) -> Group {
    Group {
        label: name.to_owned(),
        bars: vec![Bar::new(series, value, format!("{value:.2}"))],
        target,
    }
}

/// What was not reached, and what could not be measured.
fn notes(missed: &[(&str, f64, Target)], refused: &[(&'static str, String)]) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, ratio, target) in missed {
        let limit = target.limit();
        notes.push(format!(
            "{name}: **not reached**, {ratio:.2} instead of {limit}."
        ));
    }
    if missed.is_empty() {
        notes.push("Every level that is here reaches its target.".into());
    }
    let mut said = Vec::new();
    for (name, text) in refused {
        if !said.contains(name) {
            notes.push(format!(
                "{name}: **not measured**, this server answered `{}`.",
                text.replace('`', "'")
            ));
            said.push(*name);
        }
    }
    notes
}

fn levels_method(options: &Options) -> Vec<String> {
    vec![
        format!(
            "After Figure 10 of Anna (2018): {} keys of 25 B, values of 1 KiB, zipf {SKEW}, six \
             operations at a time: two records are read, one is written, both are read again, and the \
             other is written. {} clients in one thread, each with one request under way, against \
             {WORKERS} workers with full replication and epochs of {GOSSIP_MS} ms; a server for each \
             level. Servers and clients share two processors. Windows of {} ms, all levels in turn, {} \
             each; medians and quartiles of windows, ratios of windows side by side.",
            options.keys(),
            options.clients(),
            options.window().as_millis(),
            options.windows(),
        ),
        format!(
            "Clients do as their level asks. *read-committed* keeps the writes with the client until \
             the end and sends them as one MULTI; *item-cut* does so, too, and does not ask again for \
             what it has read: {} and {} waits for a reply instead of {}. *read-uncommitted* and the \
             rows with BEGIN put BEGIN before the first operation and COMMIT behind the last. All \
             others do each operation by itself; on one node sessions need nothing of clients, as a \
             connection always talks to the same replica of a key.",
            Way::Buffered.round_trips(),
            Way::Cached.round_trips(),
            Way::Single.round_trips(),
        ),
        "*ms stale* is the average over epochs from the first change to its being merged at the other \
         worker."
            .into(),
    ]
}

fn in_process(options: &Options, measured: &Measured) -> Report {
    let headers = "level | M operations/s (quartiles) | by CPU | to eventual | by CPU | target | ";
    let mut table = Table::new(1, headers);
    let eventual = measured.in_process.iter().find(|row| row.name == EVENTUAL);
    let (mut groups, mut missed) = (Vec::new(), Vec::new());
    for row in &measured.in_process {
        let Some(eventual) = eventual else { continue };
        let ratio = |of: fn(&InProcess) -> &[f64]| {
            Summary::of(of(row).iter().zip(of(eventual)).map(|(a, b)| a / b))
        };
        let (wall, cpu) = (ratio(|row| &row.rates), ratio(|row| &row.cpu_rates));
        let target = Target::AtLeast(0.8);
        table.row(vec![
            row.name.clone(),
            Summary::of(row.rates.iter().copied()).show(),
            format!("{:.2}", Summary::of(row.cpu_rates.iter().copied()).median),
            wall.show(),
            cpu.show(),
            target.show(),
            target.verdict(cpu.median).to_owned(),
        ]);
        if !target.met(cpu.median) {
            missed.push((row.name.as_str(), cpu.median, target));
        }
        groups.push(group(&row.name, 0, cpu.median, Some(target.limit())));
    }
    Report {
        slug: "anna-10-in-process",
        part_of: Some(PAGE),
        title: "Sessions and transactions in process".into(),
        command: COMMAND.into(),
        method: vec![in_process_method(options)],
        table,
        chart: Some(Chart {
            title: "Six operations at each level, in process, beside eventual consistency".into(),
            axis: "operations per CPU time at level eventual = 1; more is better".into(),
            series: vec!["in process".into()],
            groups,
        }),
        notes: notes(&missed, &[]),
        data: json!(measured.in_process),
    }
}

fn in_process_method(options: &Options) -> String {
    format!(
        "The same six operations of the same keys without connections and commands: {WORKERS} workers \
         as in [anna-4](anna-4.md), windows of {} ms, {} for each level. A session stays \
         with its worker, as every connection to a node does, and keeps nothing: its level is what the \
         worker does. Clients of the levels of transactions keep writes, and what they have read, in memory of their own. \
         After the windows all replicas hold the same, or nothing is printed. *causal* is the \
         server's business, and only in the table above. The target is compared by CPU.",
        options.window().as_millis() / 2,
        options.windows(),
    )
}

fn cuts(options: &Options, measured: &Measured) -> Report {
    let headers = "mix | level | k/s (quartiles) | CPU-µs/op (quartiles) | p99 ms | ms stale | \
         others' cores | throughput with CUT to without | CPU with CUT to without";
    let mut table = Table::new(2, headers);
    let mut last = String::new();
    for row in &measured.cuts {
        let mix = format!("zipf {}", row.skew);
        let label = if mix == last { "" } else { &mix };
        let mut cells = vec![
            label.to_owned(),
            row.name.to_owned(),
            kops(row),
            summary(row, |s| s.cpu_us).show(),
            format!("{:.2}", median(row, |s| s.p99_ms)),
            format!("{:.1}", row.stale_us / 1e3),
            format!("{:.2}", median(row, |s| s.others_cores)),
        ];
        if let Some(without) = without_cut(&measured.cuts, row) {
            for field in [|s: &Sample| s.kops, |s: &Sample| s.cpu_us] {
                cells.push(served::ratio(&row.samples, &without.samples, field).show());
            }
        }
        table.row(cells);
        last = mix;
    }
    Report {
        slug: "anna-10-cut",
        part_of: Some(PAGE),
        title: "What causal cuts cost".into(),
        command: COMMAND.into(),
        method: vec![format!(
            "A keyspace with CUT never shows a write before those of the keyspace that it may depend \
             on: changes of an epoch are taken over together, when all that their sender had heard of \
             is there. Records are read and then written as in [anna-8](anna-8.md), {CUT_PIPELINE} \
             requests at a time of each of {} clients, {} keys, {WORKERS} workers.",
            options.clients(),
            options.keys(),
        )],
        table,
        chart: None,
        notes: cut_notes(&measured.cuts),
        data: json!(measured.cuts),
    }
}

/// The row of the same level without cuts, where `row` is one with them.
fn without_cut<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    let name = row.name.strip_suffix(", CUT")?;
    rows.iter().find(|r| r.name == name && r.skew == row.skew)
}

fn cut_notes(rows: &[Row]) -> Vec<String> {
    let pairs = rows
        .iter()
        .filter_map(|row| Some((row, without_cut(rows, row)?)));
    let notes = pairs.map(|(row, without)| {
        let kops = served::ratio(&row.samples, &without.samples, |s| s.kops).median;
        let cpu = served::ratio(&row.samples, &without.samples, |s| s.cpu_us).median;
        format!(
            "zipf {}, {}: {:+.0} % throughput, {:+.0} % CPU time per operation, {:.1} ms stale instead \
             of {:.1}.",
            row.skew,
            row.name,
            (kops - 1.0) * 100.0,
            (cpu - 1.0) * 100.0,
            row.stale_us / 1e3,
            without.stale_us / 1e3
        )
    });
    notes.collect()
}

fn code(measured: &Measured) -> Report {
    let headers = "level or file | lines | Anna: lattice | server | client proxy | together";
    let mut table = Table::new(1, headers);
    let (levels, shared) = &measured.code;
    for counted in levels.iter().chain(shared) {
        let mut cells = vec![counted.name.clone(), counted.lines.to_string()];
        if let Some(anna) = counted.anna {
            cells.extend(anna.map(|lines| lines.to_string()));
            cells.push(anna.iter().sum::<u32>().to_string());
        }
        table.row(cells);
    }
    Report {
        slug: "anna-10-lines",
        part_of: Some(PAGE),
        title: "Lines of code of each level".into(),
        command: COMMAND.into(),
        method: vec![
            "Lines of each level's file in `crates/store/src/level`, without comments, empty \
             lines and tests, counted by the command itself, beside the lines of C++ that Anna needs on \
             top of simple eventual consistency (Figure 3 of the paper: lattice, server, client proxy). \
             The files named by their paths are what levels share: the lattices of strings, the list of \
             levels, a transaction under way, and what connections have seen at level \
             causal. What serves commands, and stands \
             between these and a connection, is not counted here."
                .into(),
        ],
        table,
        chart: None,
        notes: Vec::new(),
        data: json!({"levels": levels, "shared": shared}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, kops: f64) -> Row {
        let sample = Sample {
            operations: 1e4,
            elapsed: 1.0,
            kops,
            cpu_us: 1e3 / kops,
            bound_us: 1.0,
            load_us: 1.0,
            p50_ms: 1.0,
            p99_ms: 1.0,
            others_cores: 0.0,
        };
        Row {
            name,
            skew: 4.0,
            round_trips: 6,
            samples: vec![sample; 3],
            stale_us: 2_000.0,
        }
    }

    #[test]
    fn cuts_are_compared_with_the_same_level_without() {
        let rows = [
            row("eventual", 100.0),
            row("eventual, CUT", 80.0),
            row("causal", 50.0),
        ];
        let notes = cut_notes(&rows);
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].contains("-20 % throughput, +25 % CPU"),
            "{notes:?}"
        );
        assert!(without_cut(&rows, &rows[2]).is_none());
    }

    #[test]
    fn what_is_missing_is_said() {
        let refused = [("causal", "ERR no".to_owned()), ("causal", "ERR no".into())];
        let said = notes(&[("pram", 0.5, target(OPERATIONS))], &refused);
        assert_eq!(said.len(), 2);
        assert!(
            said[0].contains("pram: **not reached**, 0.50 instead of 0.8"),
            "{said:?}"
        );
        assert!(said[1].contains("not measured") && said[1].contains("ERR no"));
        assert!(notes(&[], &[])[0].contains("reaches its target"));
        assert_eq!(target(4), Target::AtLeast(1.0));
    }
}
