//! The pages of latencies at fixed rates.

use serde_json::{Value, json};

use super::curves::{Curve, CurveChart};
use super::warp_latency::{CLIENTS, Counted, Figure, Options, Request, Row, SIZE, VALUE};
use rufous_bench::report::Report;
use rufous_bench::table::Table;

/// What a cluster answers, of what it is asked, while it keeps up.
const KEEPS_UP: f64 = 0.95;
const PERCENTS: [f64; 3] = [50.0, 95.0, 99.0];

const HEADERS: &str = "cluster | operations | requests/s due | answered/s | counted | p50, ms | p95, ms | p99, ms | failed | keeps up";

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(2, HEADERS);
    for row in rows {
        let [median, most, nearly_all] = PERCENTS.map(|percent| row.latency.percentile_ms(percent));
        table.row(vec![
            row.cluster.name.to_owned(),
            row.request.name().to_owned(),
            format!("{:.0}", row.asked),
            format!("{:.0}", row.answered),
            row.latency.count().to_string(),
            format!("{median:.2}"),
            format!("{most:.2}"),
            format!("{nearly_all:.2}"),
            row.failed.to_string(),
            if keeps_up(row) { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

fn keeps_up(row: &Row) -> bool {
    row.answered >= row.asked * KEEPS_UP
}

pub(crate) fn report(options: &Options, figure: &Figure, rows: &[Row]) -> Report {
    let counted = match figure.counted {
        Counted::All => "All requests are counted.",
        Counted::Writes => {
            "Requests with a write are counted: a SET alone, or a transaction with at least one."
        }
    };
    Report {
        slug: figure.slug,
        part_of: None,
        title: figure.title.into(),
        command: figure.command.into(),
        method: vec![
            format!(
                "Clusters on this machine, with logs that are synced every second. {CLIENTS} clients at the plain port of each node send operations of YCSB's workload \
                 B (95 % GET, 5 % SET, keys by YCSB's popularity, values of {} bytes), at set times for {} s: one alone, or {SIZE} one behind the other in one write, or the same \
                 between MULTI and EXEC. {counted}",
                VALUE.len(),
                options.seconds(),
            ),
            "A client has one request under way. Latency is counted from the time at which a request was due, so one that waits for the one before it is counted with \
             its wait, and where a cluster does not keep up, latency grows as long as the row is measured."
                .into(),
            format!("![{}]({})", figure.title, figure.svg),
        ],
        table: table(rows),
        chart: None,
        notes: vec![
            "*Failed* are errors after which nothing was done, and transactions without a known outcome. Clients sleep between requests, so latencies have in them how long the \
             system takes to wake a thread, and how busy the machine is."
                .into(),
        ],
        data: json!(rows.iter().map(data).collect::<Vec<_>>()),
    }
}

fn data(row: &Row) -> Value {
    let percents = PERCENTS.map(|percent| row.latency.percentile_ms(percent));
    json!({
        "cluster": row.cluster,
        "request": row.request,
        "asked": row.asked,
        "answered": row.answered,
        "failed": row.failed,
        "counted": row.latency.count(),
        "p50_p95_p99_ms": percents,
    })
}

pub(crate) fn chart(figure: &Figure, rows: &[Row]) -> CurveChart {
    match figure.counted {
        Counted::Writes => distributions(figure, rows),
        Counted::All => by_rate(figure, rows),
    }
}

/// How many of the requests take at most so long.
fn distributions(figure: &Figure, rows: &[Row]) -> CurveChart {
    let curve = |row: &Row| {
        let percents = (1..=199).map(|half| f64::from(half) / 2.0).chain([99.9]);
        Curve {
            name: format!("{}, {}", row.cluster.name, row.request.name()),
            points: percents
                .map(|percent| (row.latency.percentile_ms(percent), percent))
                .collect(),
            is_marked: false,
        }
    };
    CurveChart {
        title: figure.title.into(),
        x_axis: "ms".into(),
        y_axis: "% of requests with a write".into(),
        curves: rows.iter().map(curve).collect(),
        target: None,
    }
}

/// Latency where the cluster keeps up.
fn by_rate(figure: &Figure, rows: &[Row]) -> CurveChart {
    let mut curves = Vec::new();
    for request in [Request::Pipeline, Request::Transaction] {
        for percent in [50.0, 99.0] {
            let of = rows.iter();
            let of = of.filter(|row| row.request == request && keeps_up(row));
            curves.push(Curve {
                name: format!("{}, p{percent}", request.name()),
                points: of
                    .map(|row| (row.asked, row.latency.percentile_ms(percent)))
                    .collect(),
                is_marked: true,
            });
        }
    }
    CurveChart {
        title: figure.title.into(),
        x_axis: "requests a second".into(),
        y_axis: "ms".into(),
        curves,
        target: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rufous_bench::loadgen::latency::Latency;

    use super::super::warp_latency::{ELEVEN, TEN, THREE};
    use super::*;

    fn row(asked: f64, answered: f64) -> Row {
        let mut latency = Latency::new().unwrap();
        (1..=100).for_each(|ms| latency.record(Duration::from_millis(ms), 1));
        Row {
            cluster: THREE,
            request: Request::Transaction,
            asked,
            answered,
            failed: 0,
            latency,
        }
    }

    #[test]
    fn percentiles_are_shown_and_drawn() {
        let rows = [row(100.0, 99.0), row(200.0, 150.0)];
        let text = table(&rows).terminal();
        for part in ["50.0", "95.", "99.", "yes", "no"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        // What a cluster does not keep up with is not drawn.
        let drawn = by_rate(&ELEVEN, &rows);
        let points: Vec<_> = drawn
            .curves
            .iter()
            .map(|curve| curve.points.len())
            .collect();
        assert_eq!(points, [0, 0, 1, 1]);
        let drawn = chart(&TEN, &rows);
        assert_eq!(drawn.curves.len(), 2);
        assert!(drawn.svg().unwrap().contains("three nodes"));
    }
}
