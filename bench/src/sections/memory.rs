//! Resident memory per key while the data set grows.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::{Context, SHAPE, command, series_order};
use crate::loadgen::template::Command;
use crate::measure::preload;
use crate::options::RUFOUS;
use crate::plot::{Bar, Chart, Group};
use crate::procfs;
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::{Server, ServerSpec};
use crate::stats::Target;
use crate::table::Table;

const TARGET: Target = Target::AtMost(0.7);
/// Sizes relative to the first: tables that double have just done so at one or another of them.
const GROWTH: [f64; 6] = [1.0, 1.05, 1.2, 1.4, 1.7, 2.1];
/// Time for background rehashing and the allocator to come to rest.
const SETTLE: Duration = Duration::from_secs(2);

/// One server at one size.
#[derive(Clone, Serialize)]
struct Point {
    server: String,
    keys: u64,
    /// Resident bytes per key beyond the empty server, right after the last key was loaded…
    at_once: f64,
    /// …and two seconds later.
    settled: f64,
    /// The peak since the start, per key.
    peak: f64,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.contestants()?;
    let base = context.options.keys();
    let mut sizes: Vec<u64> = GROWTH.iter().map(|f| (base as f64 * f) as u64).collect();
    if context.options.big_keys() > base * 3 {
        sizes.push(context.options.big_keys());
    }
    let progress = Progress::new("memory", (sizes.len() * specs.len()) as u64);
    let mut points = Vec::new();
    for spec in &specs {
        points.extend(measure(context, spec, &sizes, &progress)?);
    }
    Ok(report(&points, &sizes))
}

fn measure(
    context: &mut Context,
    spec: &ServerSpec,
    sizes: &[u64],
    progress: &Progress,
) -> Result<Vec<Point>> {
    let server = Server::start(spec)?;
    context.note_version(&server)?;
    let empty = procfs::resident_bytes(server.pid())?;
    let mut loaded = 0;
    let mut points = Vec::new();
    for keys in sizes.iter().copied() {
        progress.doing(&format!("{}: {keys} keys", spec.name));
        preload(&server, Command::Set, SHAPE, loaded..keys)?;
        loaded = keys;
        let per_key = |bytes: u64| bytes.saturating_sub(empty) as f64 / keys as f64;
        let at_once = per_key(procfs::resident_bytes(server.pid())?);
        std::thread::sleep(SETTLE);
        let settled = per_key(procfs::resident_bytes(server.pid())?);
        let peak = per_key(procfs::peak_resident_bytes(server.pid())?);
        progress.say(&format!(
            "{} at {keys} keys: {at_once:.0} B/key at once, {settled:.0} settled",
            spec.name
        ));
        points.push(Point {
            server: spec.name.clone(),
            keys,
            at_once,
            settled,
            peak,
        });
        progress.advance(1);
    }
    Ok(points)
}

/// Rufous's figure relative to the lowest of the peers'.
fn ratio(points: &[&Point], field: fn(&Point) -> f64) -> Option<f64> {
    let ours = points.iter().find(|p| p.server == RUFOUS)?;
    let peers = points
        .iter()
        .filter(|p| p.server != RUFOUS)
        .map(|p| field(p));
    Some(field(ours) / peers.min_by(f64::total_cmp)?)
}

fn report(points: &[Point], sizes: &[u64]) -> Report {
    let headers =
        "keys | server | B/key at once | settled | peak | ratio at once | settled | target | ";
    let mut table = Table::new(2, headers);
    let mut names: Vec<String> = Vec::new();
    for point in points.iter().filter(|p| p.keys == sizes[0]) {
        names.push(point.server.clone());
    }
    let series = series_order(&names);
    let (mut groups, mut ratios) = (Vec::new(), Vec::new());
    for keys in sizes {
        let of_size: Vec<&Point> = points.iter().filter(|p| p.keys == *keys).collect();
        let both = ratio(&of_size, |p| p.at_once).zip(ratio(&of_size, |p| p.settled));
        for (i, point) in of_size.iter().enumerate() {
            let label = if i == 0 {
                millions(*keys)
            } else {
                String::new()
            };
            let mut cells = vec![label, point.server.clone()];
            cells.extend([point.at_once, point.settled, point.peak].map(|b| format!("{b:.0}")));
            if let Some((at_once, settled)) = both.filter(|_| point.server == RUFOUS) {
                let worse = at_once.max(settled);
                cells.extend([
                    format!("{at_once:.2}"),
                    format!("{settled:.2}"),
                    TARGET.show(),
                ]);
                cells.push(TARGET.verdict(worse).to_owned());
                ratios.push(json!({"keys": keys, "at_once": at_once, "settled": settled,
                    "met": TARGET.met(worse)}));
            }
            table.row(cells);
        }
        groups.push(group(&of_size, &series, *keys));
    }
    Report {
        slug: "memory",
        part_of: None,
        title: "Memory per key while the data set grows".into(),
        command: command("memory"),
        method: method(),
        table,
        chart: Some(Chart {
            title: "Resident bytes per key".into(),
            axis: "keys of 8 B, values of 64 B, two seconds after loading; less is better".into(),
            series,
            groups,
        }),
        notes: Vec::new(),
        data: json!({"points": points, "ratios": ratios}),
    }
}

fn group(of_size: &[&Point], series: &[String], keys: u64) -> Group {
    let bars = series.iter().enumerate().filter_map(|(i, name)| {
        let point = of_size.iter().find(|p| p.server == *name)?;
        let label = format!("{:.0} B", point.settled);
        Some(Bar::new(i, point.settled, label))
    });
    let peers = of_size
        .iter()
        .filter(|p| p.server != RUFOUS)
        .map(|p| p.settled);
    let target = peers
        .min_by(f64::total_cmp)
        .map(|best| best * TARGET.limit());
    Group {
        label: format!("{} keys", millions(keys)),
        bars: bars.collect(),
        target,
    }
}

fn millions(keys: u64) -> String {
    format!("{} M", (keys as f64 / 1e4).round() / 100.0)
}

fn method() -> Vec<String> {
    vec![
        "Keys of 8 B with values of 64 B are loaded in order into one server after the other; \
         each size continues the one before. Figures are resident bytes beyond those of the empty \
         server, divided by the keys: right after the last key, two seconds later, and the peak \
         since the start (which includes what growing took). The target holds for both ratios to \
         the better peer."
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(server: &str, at_once: f64, settled: f64) -> Point {
        Point {
            server: server.into(),
            keys: 1_050_000,
            at_once,
            settled,
            peak: settled,
        }
    }

    #[test]
    fn ratios_are_to_the_better_peer() {
        let points = [
            point("redis", 200.0, 160.0),
            point("valkey", 150.0, 150.0),
            point(RUFOUS, 120.0, 90.0),
        ];
        let all: Vec<&Point> = points.iter().collect();
        assert_eq!(ratio(&all, |p| p.at_once), Some(0.8));
        assert_eq!(ratio(&all, |p| p.settled), Some(0.6));
        assert_eq!(ratio(&all[..2], |p| p.settled), None);
        let report = report(&points, &[1_050_000]);
        assert!(report.table.terminal().contains("1.05 M"));
        assert!(report.table.terminal().contains("not met"));
    }
}
