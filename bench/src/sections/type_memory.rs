//! Resident memory per element of collections of several sizes.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::{Context, command, series_order};
use crate::loadgen::calls::{Call, Caller, Calls};
use crate::loadgen::reply::Check;
use crate::measure::exhaust;
use crate::options::RUFOUS;
use crate::plot::{Bar, Chart, Group};
use crate::procfs;
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::{Server, ServerSpec};
use crate::stats::Target;
use crate::table::Table;

const TARGET: Target = Target::AtMost(0.9);
/// Time for background rehashing and the allocator to come to rest.
const SETTLE: Duration = Duration::from_secs(2);
/// Elements per command; sizes are multiples of it.
pub(super) const STEP: u64 = 10;
const SIZES: [u64; 3] = [10, 100, 1_000_000];
const PIPELINE: usize = 16;

pub(super) const KINDS: [(&str, Caller); 3] = [
    ("hash", |call, number| {
        ten(call, number, "HSET", |call, i| {
            call.name(b'f', i).word(b"sixteen bytes...");
        })
    }),
    ("set", |call, number| {
        ten(call, number, "SADD", |call, i| {
            call.name(b'm', i);
        })
    }),
    ("sorted set", |call, number| {
        ten(call, number, "ZADD", |call, i| {
            let score = call.rng.below(1_000_000_000);
            call.number(score).name(b'm', i);
        })
    }),
];

/// Ten elements of the collection whose turn it is; element `i` of all is written once.
fn ten(call: &mut Call<'_>, number: u64, name: &str, one: fn(&mut Call<'_>, u64)) -> Check {
    let words = if name == "SADD" { 1 } else { 2 };
    let first = number * STEP;
    call.begin(2 + words * STEP, name);
    call.name(b'k', first / call.elements);
    for i in 0..STEP {
        one(call, first + i);
    }
    Check::Integer
}

/// One server with one kind and size.
#[derive(Clone, Serialize)]
struct Point {
    kind: &'static str,
    size: u64,
    server: String,
    bytes_per_element: f64,
    peak: f64,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.contestants()?;
    let elements = context.options.elements();
    let rows = KINDS.len() * SIZES.len();
    let progress = Progress::new("type-memory", (rows * specs.len()) as u64);
    let mut points = Vec::new();
    for (kind, caller) in KINDS {
        for size in SIZES {
            let of_all = (elements / size).max(1) * size;
            for spec in &specs {
                progress.doing(&format!("{}: {kind} of {size}", spec.name));
                let point = measure(context, spec, (kind, caller), size, of_all)?;
                progress.say(&format!(
                    "{kind} of {size}, {}: {:.1} B/element",
                    spec.name, point.bytes_per_element
                ));
                points.push(point);
                progress.advance(1);
            }
        }
    }
    Ok(report(&points, elements))
}

fn measure(
    context: &mut Context,
    spec: &ServerSpec,
    (kind, caller): (&'static str, Caller),
    size: u64,
    elements: u64,
) -> Result<Point> {
    let server = Server::start(spec)?;
    context.note_version(&server)?;
    let empty = procfs::resident_bytes(server.pid())?;
    let mut calls = Calls::new(caller, 0..elements / STEP, PIPELINE).over(elements / size, size);
    exhaust(&server, &mut calls)?;
    std::thread::sleep(SETTLE);
    let per_element = |bytes: u64| bytes.saturating_sub(empty) as f64 / elements as f64;
    Ok(Point {
        kind,
        size,
        server: spec.name.clone(),
        bytes_per_element: per_element(procfs::resident_bytes(server.pid())?),
        peak: per_element(procfs::peak_resident_bytes(server.pid())?),
    })
}

/// Rufous's figure relative to the lowest of the peers'.
fn ratio(points: &[&Point]) -> Option<f64> {
    let ours = points.iter().find(|p| p.server == RUFOUS)?;
    let peers = points.iter().filter(|p| p.server != RUFOUS);
    let best = peers.map(|p| p.bytes_per_element).min_by(f64::total_cmp)?;
    Some(ours.bytes_per_element / best)
}

fn report(points: &[Point], elements: u64) -> Report {
    let headers = "collections | server | B/element | peak | ratio | target | ";
    let mut table = Table::new(2, headers);
    let mut names: Vec<String> = Vec::new();
    for point in points {
        if !names.contains(&point.server) {
            names.push(point.server.clone());
        }
    }
    let series = series_order(&names);
    let (mut groups, mut ratios) = (Vec::new(), Vec::new());
    for rows in points.chunk_by(|a, b| (a.kind, a.size) == (b.kind, b.size)) {
        let rows: Vec<&Point> = rows.iter().collect();
        let label = format!("{} of {}", rows[0].kind, rows[0].size);
        let ratio = ratio(&rows);
        for (i, point) in rows.iter().enumerate() {
            let first = if i == 0 { label.clone() } else { String::new() };
            let mut cells = vec![first, point.server.clone()];
            cells.extend([point.bytes_per_element, point.peak].map(|b| format!("{b:.1}")));
            if let Some(ratio) = ratio.filter(|_| point.server == RUFOUS) {
                cells.extend([format!("{ratio:.2}"), TARGET.show()]);
                cells.push(TARGET.verdict(ratio).to_owned());
                ratios.push(json!({"collections": label, "ratio": ratio,
                    "met": TARGET.met(ratio)}));
            }
            table.row(cells);
        }
        groups.push(group(&rows, &series, label));
    }
    let met = ratios.iter().filter(|r| r["met"] == true).count();
    Report {
        slug: "type-memory",
        part_of: None,
        title: "Memory per element of collections".into(),
        command: command("type-memory"),
        method: method(elements),
        table,
        chart: Some(Chart {
            title: "Resident bytes per element".into(),
            axis: "fields and members of 9 B, values of 16 B; less is better".into(),
            series,
            groups,
        }),
        notes: vec![format!("{met} of {} targets met.", ratios.len())],
        data: json!({"points": points, "ratios": ratios}),
    }
}

fn group(rows: &[&Point], series: &[String], label: String) -> Group {
    let bars = series.iter().enumerate().filter_map(|(i, name)| {
        let point = rows.iter().find(|p| p.server == *name)?;
        let (value, series) = (point.bytes_per_element, i);
        let label = format!("{value:.1} B");
        Some(Bar::new(series, value, label))
    });
    let peers = rows.iter().filter(|p| p.server != RUFOUS);
    let best = peers.map(|p| p.bytes_per_element).min_by(f64::total_cmp);
    Group {
        label,
        bars: bars.collect(),
        target: best.map(|best| best * TARGET.limit()),
    }
}

fn method(elements: u64) -> Vec<String> {
    vec![format!(
        "{elements} elements (at least one collection) in collections of each size, written ten at a \
         time, each collection after the one before: fields and members of 9 B that are no integers, \
         values of 16 B, scores that are random integers below a billion. Every row has a server of its \
         own. Figures are resident bytes beyond those of the empty server, divided by the elements: {} ms \
         after the last element, and the peak since the start. What a key and its name take is included.",
        SETTLE.as_millis()
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(server: &str, bytes_per_element: f64) -> Point {
        Point {
            kind: "set",
            size: 100,
            server: server.into(),
            bytes_per_element,
            peak: bytes_per_element,
        }
    }

    #[test]
    fn ratios_are_to_the_better_peer() {
        let points = [
            point("redis", 40.0),
            point("valkey", 20.0),
            point(RUFOUS, 19.0),
        ];
        let report = report(&points, 1_000);
        assert_eq!(report.data["ratios"][0]["ratio"], 0.95);
        assert!(report.table.terminal().contains("not met"));
        let all: Vec<&Point> = points.iter().collect();
        assert_eq!(ratio(&all[..2]), None);
    }
}
