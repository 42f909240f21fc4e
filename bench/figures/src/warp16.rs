//! How many transactions of two keys are aborted, by the number of keys that they share [Warp §5]: each reads and writes
//! one key of all, and one of a smaller set.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use rufous_base::rng::Rng;
use serde::Serialize;
use serde_json::json;

use super::callers::{self, Callers, Counts, Ended, are_answered, exchange, key};
use super::curves::{Curve, CurveChart};
use super::options::{Common, rufous};
use rufous_bench::client::Client;
use rufous_bench::nodes::Program;
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::stats::{Summary, Target};
use rufous_bench::table::Table;

const NODES: usize = 3;
const COPIES: usize = 2;
const VALUE: [u8; 64] = [b'v'; 64];
/// Of the transactions, in percent…
const TARGET: Target = Target::AtMost(1.0);
/// …where they share at least so many keys [Warp §5].
const TARGET_FROM: u64 = 10_000;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Keys; the shared ones are among them [default: 1000000, quick 10000]
    #[arg(long)]
    pub keys: Option<u64>,
    /// Clients at each node
    #[arg(long, default_value_t = 8)]
    pub clients: usize,
    /// Windows of each row [default: 3, quick 1]
    #[arg(long)]
    pub windows: Option<usize>,
    /// Length of a window in ms [default: 2000, quick 200]
    #[arg(long)]
    pub window_ms: Option<u64>,
    #[command(flatten)]
    pub program: Program,
}

/// How a transaction is made.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// `BEGIN SERIALIZABLE`, reads, and when they are answered writes and `COMMIT`.
    Begun,
    /// `MULTI`, writes, `EXEC`.
    Multi,
}

/// Where the keys of a transaction are drawn.
#[derive(Clone, Copy, Debug)]
struct Keys {
    all: u64,
    shared: u64,
}

impl Keys {
    /// One of all, and another one of the shared.
    fn draw(self, rng: &mut Rng) -> (u64, u64) {
        let shared = rng.below(self.shared);
        // Of those beside it.
        let any = rng.below(self.all - 1);
        (any + u64::from(any >= shared), shared)
    }
}

/// What was counted in one window.
#[derive(Clone, Copy, Debug, Serialize)]
struct Window {
    counts: Counts,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    shared: u64,
    begun: Vec<Window>,
    multi: Vec<Window>,
}

/// Aborted of all windows, in percent.
fn aborted_percent(windows: &[Window]) -> f64 {
    Counts::sum(windows.iter().map(|window| &window.counts)).aborted_percent()
}

/// Committed a second.
fn rate(windows: &[Window]) -> Summary {
    let rates = windows.iter();
    Summary::of(rates.map(|window| window.counts.committed as f64 / window.seconds))
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let all = options.common.pick(options.keys, 1_000_000, 10_000).max(2);
    let (mut nodes, version) = callers::cluster(&options.program, NODES, 1, COPIES)?;
    callers::fill(&mut nodes.running()[0].client()?, all, &VALUE)?;
    let mut callers = Callers::connect(&callers::plain(&nodes), options.clients.max(1))?;
    let sizes = sizes(all);
    let progress = Progress::new("shared keys", sizes.len() as u64);
    let mut rows = Vec::new();
    for shared in sizes {
        progress.doing(&shared.to_string());
        rows.push(row(options, &mut callers, Keys { all, shared })?);
        progress.advance(1);
    }
    nodes.all_run()?;
    let report = report(options, all, &rows);
    let charts = [("warp-16.svg", chart(&rows).svg()?)];
    let common = &options.common;
    common.publish(&machine, rufous(version), &[report], &charts)
}

/// Powers of ten up to all keys.
fn sizes(all: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(1u64), |size| size.checked_mul(10));
    powers.take_while(|size| *size <= all).collect()
}

fn row(options: &Options, callers: &mut Callers, keys: Keys) -> Result<Row> {
    let windows = options.common.pick(options.windows, 3, 1).max(1);
    let (mut begun, mut multi) = (Vec::new(), Vec::new());
    // The first of each is not counted.
    for round in 0..=windows {
        for kind in [Kind::Begun, Kind::Multi] {
            let window = window(options, callers, keys, (kind, round as u64))?;
            if round > 0 {
                match kind {
                    Kind::Begun => begun.push(window),
                    Kind::Multi => multi.push(window),
                }
            }
        }
    }
    Ok(Row {
        shared: keys.shared,
        begun,
        multi,
    })
}

fn window(
    options: &Options,
    callers: &mut Callers,
    keys: Keys,
    (kind, round): (Kind, u64),
) -> Result<Window> {
    let time = Duration::from_millis(options.common.pick(options.window_ms, 2000, 200));
    let began = Instant::now();
    let counts = callers.run(|no, client| {
        let mut rng = Rng::new(round << 32 | no as u64);
        let mut counts = Counts::default();
        while began.elapsed() < time {
            let (any, shared) = keys.draw(&mut rng);
            let (any, shared) = (key(any), key(shared));
            counts.count(transaction(
                client,
                kind,
                [any.as_bytes(), shared.as_bytes()],
            )?);
        }
        Ok(counts)
    })?;
    Ok(Window {
        counts: Counts::sum(&counts),
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn transaction(client: &mut Client, kind: Kind, [any, shared]: [&[u8]; 2]) -> Result<Ended> {
    let sets: [&[&[u8]]; 2] = [&[b"SET", any, &VALUE], &[b"SET", shared, &VALUE]];
    match kind {
        Kind::Begun => {
            let begin: &[&[u8]] = &[b"BEGIN", b"SERIALIZABLE"];
            let read = exchange(client, &[begin, &[b"GET", any], &[b"GET", shared]])?;
            if !are_answered(&read)? {
                exchange(client, &[&[b"ROLLBACK"]])?;
                return Ok(Ended::Refused);
            }
            let replies = exchange(client, &[sets[0], sets[1], &[b"COMMIT"]])?;
            Ended::of(&replies[2])
        }
        Kind::Multi => {
            let replies = exchange(client, &[&[b"MULTI"], sets[0], sets[1], &[b"EXEC"]])?;
            Ended::of(&replies[3])
        }
    }
}

const HEADERS: &str = "shared keys | BEGIN SERIALIZABLE: committed/s | aborted, % | target | MULTI: committed/s | aborted, % | \
     refused or in doubt";

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(0, HEADERS);
    for row in rows {
        let aborted = aborted_percent(&row.begun);
        let target = if row.shared >= TARGET_FROM {
            format!("{} {}", TARGET.show(), TARGET.verdict(aborted))
        } else {
            String::new()
        };
        let windows = row.begun.iter().chain(&row.multi);
        let all = Counts::sum(windows.map(|window| &window.counts));
        let show = |rate: Summary| {
            let (low, high) = (rate.low_quartile, rate.high_quartile);
            format!("{:.0} ({low:.0}–{high:.0})", rate.median)
        };
        table.row(vec![
            row.shared.to_string(),
            show(rate(&row.begun)),
            format!("{aborted:.2}"),
            target,
            show(rate(&row.multi)),
            format!("{:.2}", aborted_percent(&row.multi)),
            (all.refused + all.in_doubt).to_string(),
        ]);
    }
    table
}

fn report(options: &Options, all: u64, rows: &[Row]) -> Report {
    let clients = options.clients.max(1);
    Report {
        slug: "warp-16",
        part_of: None,
        title: "Transactions that are aborted, by the keys that they share".into(),
        command: "cargo xtask figures warp16".into(),
        method: vec![
            format!(
                "{NODES} nodes on this machine with one worker each, {COPIES} copies of each slot and logs that are synced every second; \
                 {all} keys with values of {} bytes. {clients} clients at the plain port of each node run transactions without a pause. \
                 Each takes one key drawn uniformly from all, and another drawn uniformly from the shared ones. With BEGIN SERIALIZABLE a client \
                 reads both keys, and when it has the values it writes both and commits: two round trips. With MULTI it writes both, in one round trip. \
                 The two take turns in windows; rates are medians and quartiles over them, and the aborted are those of all windows together.",
                VALUE.len()
            ),
            "![Aborted transactions](warp-16.svg)".into(),
        ],
        table: table(rows),
        chart: None,
        notes: vec![
            "An aborted transaction replied nil to COMMIT and changed nothing; the client goes on with other keys. How many are aborted depends on the time \
             between read and commit, and so on how busy the machine is, and on the number of clients."
                .into(),
            "MULTI without WATCH has no condition that could fail: transactions that set the same keys wait for one another.".into(),
        ],
        data: json!({ "keys": all, "clients": clients * NODES, "rows": rows }),
    }
}

fn chart(rows: &[Row]) -> CurveChart {
    let curve = |name: &str, of: fn(&Row) -> &[Window]| Curve {
        name: name.into(),
        points: rows
            .iter()
            .map(|row| (row.shared as f64, aborted_percent(of(row))))
            .collect(),
        is_marked: true,
    };
    CurveChart {
        title: "Aborted transactions of two keys".into(),
        x_axis: "keys that are shared".into(),
        y_axis: "% aborted".into(),
        curves: vec![
            curve("BEGIN SERIALIZABLE, 2 GET, 2 SET, COMMIT", |row| &row.begun),
            curve("MULTI, 2 SET, EXEC", |row| &row.multi),
        ],
        target: Some(TARGET.limit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct_and_of_their_sets() {
        assert_eq!(sizes(1000), [1, 10, 100, 1000]);
        for shared in sizes(1000) {
            let (keys, mut rng) = (Keys { all: 1000, shared }, Rng::new(shared));
            let drawn: Vec<_> = (0..20_000).map(|_| keys.draw(&mut rng)).collect();
            for (any, of_shared) in &drawn {
                assert!(any != of_shared && *any < 1000 && *of_shared < shared);
            }
            // Every key is drawn, the first and the last as well.
            for at in [0, 999] {
                assert!(drawn.iter().any(|(any, one)| *any == at || *one == at));
            }
        }
    }

    #[test]
    fn the_target_is_one_from_ten_thousand_keys_on() {
        let window = |committed, aborted, seconds| Window {
            counts: Counts {
                committed,
                aborted,
                ..Counts::default()
            },
            seconds,
        };
        let row = |shared| Row {
            shared,
            begun: vec![window(980, 20, 1.0), window(1000, 0, 2.0)],
            multi: vec![window(500, 0, 1.0)],
        };
        let begun = row(1).begun;
        assert_eq!(aborted_percent(&begun), 1.0);
        assert_eq!(rate(&begun).median, 740.0);
        let text = |shared| table(&[row(shared)]).terminal();
        assert!(!text(1000).contains('≤') && text(10_000).contains("≤ 1 met"));
        assert!(chart(&[row(1), row(10)]).svg().unwrap().contains("MULTI"));
    }
}
