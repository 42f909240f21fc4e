//! The pages of Anna's Figures 4 and 5: throughput, where CPU time goes, and how it would go on to 64
//! processors.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::anna4::{
    FULL, Measured, ONE_REPLICA, ONE_THREAD, Options, Row, SKEWS, THREADS, THREE_REPLICAS,
};
use super::constants::Constants;
use super::drive::TURN;
use super::lines::{Line, LineChart};
use super::model::{self, Costs};
use super::options::Common;
use super::peers::{IDEAL, JOINING, OWN_IDEAL, PEERS};
use super::requests::Popularity;
use super::rufous::{GOSSIP_MS, LOOK, SAMPLED};
use rufous_bench::plot::{Bar, Chart, Group};
use rufous_bench::procfs::Machine;
use rufous_bench::report::Report;
use rufous_bench::stats::{Summary, Target};
use rufous_bench::table::Table;

const COMMAND: &str = "cargo xtask figures anna4";
const REPLICATED: [&str; 3] = [ONE_REPLICA, THREE_REPLICAS, FULL];
const PROCESSORS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Prints everything, and writes it where the options say.
pub(crate) fn show(options: &Options, machine: &Machine, measured: &Measured) -> Result<()> {
    let (model, charts) = cores(options, measured);
    let reports = [
        throughput(options, measured),
        split(options, measured),
        model,
    ];
    let mut files = Vec::new();
    let names = SKEWS.map(chart_name);
    for (name, chart) in names.iter().zip(&charts) {
        files.push((name.as_str(), chart.svg()?));
    }
    // Pages are of all stores.
    let common = Common {
        quick: options.common.quick || options.store.is_some(),
        ..options.common.clone()
    };
    common.publish(machine, versions(), &reports, &files)
}

/// Of the maps that were built in, as the lock file has them.
fn versions() -> BTreeMap<String, String> {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    let mut found = BTreeMap::new();
    let mut lines = LOCK.lines();
    while let Some(line) = lines.next() {
        let name = line.strip_prefix("name = \"").map(|n| n.trim_matches('"'));
        let Some(name @ ("dashmap" | "scc" | "papaya" | "foldhash")) = name else {
            continue;
        };
        let version = lines
            .next()
            .and_then(|line| line.strip_prefix("version = "));
        let version = version.unwrap_or("?").trim_matches('"').to_owned();
        found.insert(name.to_owned(), version);
    }
    found
}

/// What the ratios of a row are to.
struct Against<'a> {
    ideal: &'a Row,
    map: &'a Row,
}

/// The ideal is the faster of the two where both do the same.
fn against<'a>(measured: &'a Measured, row: &Row) -> Option<Against<'a>> {
    let ideals: &[&str] = match row.store.as_str() {
        ONE_REPLICA | OWN_IDEAL if row.skew < 1.0 => &[IDEAL, OWN_IDEAL],
        _ => &[IDEAL],
    };
    Some(Against {
        ideal: measured.best(ideals, row.skew, row.threads)?,
        map: measured.best(&PEERS, row.skew, row.threads)?,
    })
}

/// What is to be reached, by the ideal's CPU time and by the best map's throughput.
fn targets(row: &Row) -> Option<(Target, Target)> {
    match (row.store.as_str(), row.skew, row.threads) {
        (FULL, 4.0, THREADS) => Some((Target::AtLeast(0.9), Target::AtLeast(2.0))),
        (ONE_REPLICA, 0.5, THREADS) => Some((Target::AtLeast(0.85), Target::AtLeast(1.0))),
        _ => None,
    }
}

fn throughput(options: &Options, measured: &Measured) -> Report {
    let mut table = Table::new(
        2,
        "mix | store | M/s (quartiles) | M/s by CPU | CPU-ns/op (quartiles) | \
             others' cores | to ideal, by CPU | to best map | target | ",
    );
    let mut last = String::new();
    for row in &measured.rows {
        let mix = format!("zipf {}, {} threads", row.skew, row.threads);
        let label = if mix == last { "" } else { &mix };
        let mut cells = vec![
            label.to_owned(),
            row.store.clone(),
            Summary::of(row.rates.iter().copied()).show(),
            format!("{:.2}", row.cpu_rate()),
            row.cpu_ns.show(),
            format!("{:.2}", row.others_cores),
        ];
        if let Some(Against { ideal, map }) = against(measured, row) {
            let (to_ideal, to_map) = (row.cpu_ratio_to(ideal), row.ratio_to(map));
            cells.extend([to_ideal.show(), to_map.show()]);
            if let Some((ideal, map)) = targets(row) {
                cells.push(format!("{}, {}", ideal.show(), map.show()));
                let verdicts = [ideal.verdict(to_ideal.median), map.verdict(to_map.median)];
                cells.push(verdicts.join(", "));
            }
        }
        table.row(cells);
        last = mix;
    }
    Report {
        slug: "anna-4",
        part_of: None,
        title: "Updates in process, beside maps that threads share".into(),
        command: COMMAND.into(),
        method: throughput_method(options),
        table,
        chart: Some(throughput_chart(measured)),
        notes: Vec::new(),
        data: json!(measured.rows),
    }
}

fn throughput_method(options: &Options) -> Vec<String> {
    vec![
        format!(
            "After Figure 4 of Anna (2018): updates alone, {} keys of 8 B, values of 1 KiB copied in, \
             2^20 requests per thread made beforehand, the keys' popularity zipfian. Thread n is \
             bound to processor n. Windows of {} ms, all stores in turn, {} each; medians and \
             quartiles of windows, ratios of windows side by side. All maps hash by foldhash, have \
             room for their keys, and are allocated from by mimalloc; papaya's epochs are entered \
             once for 16 updates.",
            options.keys(),
            options.window().as_millis(),
            options.windows(),
        ),
        format!(
            "Rufous is here what a worker has below its connections and commands: shard, stamps, \
             changeset, epochs of {GOSSIP_MS} ms, batches through a ring, merging. After the windows \
             all replicas have come to rest and hold the same value for every key, or nothing is \
             printed. *Private maps* are the ideal: a map per thread, nobody told of anything. With \
             one replica (and *own keys*) each thread is asked for the keys that it owns, and the \
             throughput is that of all requests in their mix: where most are for one key, its \
             owner's. Three replicas on two threads are two."
        ),
        format!(
            "**A worker merges before it stores.** It takes a turn's {TURN} requests together: each gets \
             its stamp, and of those for the same key only the last, which is all that merging them \
             leaves, is looked for, copied and noted. Nobody can read in between, and after each turn \
             the store is what one write after the other would have left. Maps copy the value of each \
             request, and so does the ideal that targets are compared with. So a worker can be faster \
             than the ideal where keys are hot. What comes over connections is carried out one by one \
             ([anna-8](anna-8.md)). *{JOINING}* is a private map to which the same is done: \
             what is left between it and a worker are stamps, records, the changeset and epochs."
        ),
        "*M/s* is by the clock on the wall, *by CPU* what the threads would do had each of them its \
         processor to itself: by this the ideal is compared, as nobody waits for others there. Who \
         waits for a lock uses no CPU time; so maps are compared by the wall, where others' use of \
         the processors is to their good: threads that do not run do not get in each other's way."
            .into(),
    ]
}

fn throughput_chart(measured: &Measured) -> Chart {
    let stores = [FULL, THREE_REPLICAS, ONE_REPLICA].into_iter().chain(PEERS);
    let groups = stores.map(|store| {
        let bars = SKEWS.iter().enumerate().filter_map(|(series, &skew)| {
            let row = measured.row(store, skew, THREADS)?;
            let ideal = measured.row(IDEAL, skew, THREADS)?;
            let value = row.ratio_to(ideal).median;
            let label = format!("{value:.2} ({:.1} M/s)", row.rate());
            Some(Bar::new(series, value, label))
        });
        Group {
            label: store.replace("Rufous, ", "").replace(", values", ""),
            bars: bars.collect(),
            target: None,
        }
    });
    Chart {
        title: "Updates on two threads, relative to a private map per thread".into(),
        axis: "throughput of the ideal = 1; more is better. The first three are Rufous".into(),
        series: SKEWS.iter().map(|skew| format!("zipf {skew}")).collect(),
        groups: groups.collect(),
    }
}

/// Where CPU time goes, by parts of the whole.
fn shares(row: &Row) -> [f64; 4] {
    let split = &row.split;
    let rest = [split.merge_ns, split.multicast_ns, split.other_ns].map(|ns| ns / row.cpu_total_ns);
    [1.0 - rest.iter().sum::<f64>(), rest[0], rest[1], rest[2]]
}

const SHARES: [&str; 4] = ["request handling", "merge", "multicast", "other"];

fn split(options: &Options, measured: &Measured) -> Report {
    let mut table = Table::new(
        2,
        "mix | store | request handling | merge | multicast | other | updates per key sent | \
             µs to send a key | µs to merge a key | target | ",
    );
    let (mut groups, handled, merged) = (Vec::new(), Target::AtLeast(0.9), Target::AtLeast(100.0));
    for skew in SKEWS {
        for store in REPLICATED {
            let Some(row) = measured.row(store, skew, THREADS) else {
                continue;
            };
            let (shares, split) = (shares(row), &row.split);
            let mut cells = vec![format!("zipf {skew}"), store.to_owned()];
            cells.extend(shares.map(|share| format!("{:.1} %", share * 100.0)));
            if store != ONE_REPLICA {
                let factor = split.updates / split.sent_keys;
                let us = |ns: f64, keys: f64| format!("{:.2}", ns / keys / 1e3);
                cells.push(format!("{factor:.1}"));
                cells.push(us(split.multicast_ns, split.sent_keys));
                cells.push(us(split.merge_ns, split.merged_keys));
                if skew > 1.0 && store == FULL {
                    cells.push(format!(
                        "{} handling, {} updates",
                        handled.show(),
                        merged.show()
                    ));
                    let verdicts = [handled.verdict(shares[0]), merged.verdict(factor)];
                    cells.push(verdicts.join(", "));
                }
            }
            table.row(cells);
            groups.push(split_group(row, &shares));
        }
    }
    Report {
        slug: "anna-5",
        part_of: None,
        title: "Where the CPU time of replicas goes, and what merging at the sender saves".into(),
        command: COMMAND.into(),
        method: split_method(options),
        table,
        chart: Some(Chart {
            title: "Where CPU time goes, two threads".into(),
            axis: "percent of the threads' CPU time".into(),
            series: SHARES.map(str::to_owned).to_vec(),
            groups,
        }),
        notes: Vec::new(),
        data: json!(null),
    }
}

fn split_group(row: &Row, shares: &[f64]) -> Group {
    let bars = shares
        .iter()
        .enumerate()
        .map(|(series, share)| Bar::new(series, share * 100.0, format!("{:.1} %", share * 100.0)));
    Group {
        label: format!("zipf {}, {}", row.skew, row.store.replace("Rufous, ", "")),
        bars: bars.collect(),
        target: None,
    }
}

fn split_method(options: &Options) -> Vec<String> {
    vec![format!(
        "After Figure 5 of Anna (2018), the same {} windows as in [anna-4](anna-4.md). *Merge* (taking \
         messages from rings and merging them) and *multicast* (making an epoch's messages and \
         pushing them) happen seldom: the thread's CPU clock is read before and after each. *Other* \
         is the look at the clock and into the rings, once in {LOOK} turns of {TURN} requests. One in \
         {SAMPLED} of these that is not interrupted is timed; the readings of the clock that time it, \
         which others do not make, are taken off as another one beside them lasts. *Request handling* \
         is the rest of the threads' CPU time: stamps, joining, hashing, finding, copying, and noting \
         the change for the epoch. Without merging at the sender every update would be a \
         state in a message to each other replica: 1 instead of 1 / *updates per key sent*.",
        options.windows()
    )]
}

/// The constants of a mix, from what was measured under it.
fn costs(measured: &Measured, skew: f64) -> Option<Costs> {
    let full = measured.row(FULL, skew, THREADS)?;
    let split = &full.split;
    let gossip = split.merge_ns + split.multicast_ns;
    Some(Costs {
        private_request: measured.row(IDEAL, skew, THREADS)?.cpu_ns.median,
        shared_request: measured.best(&PEERS, skew, 1)?.cpu_ns.median,
        request: (full.cpu_total_ns - gossip) / full.operations,
        writes: 1.0,
        send: split.multicast_ns / split.sent_keys,
        merge: split.merge_ns / split.merged_keys,
        batch: split.sent_keys / split.sent_messages,
        epoch: f64::from(GOSSIP_MS) * 1e6,
    })
}

const CURVES: [&str; 5] = [
    "private maps (ideal)",
    "full replication",
    "3 replicas",
    "1 replica",
    "one shared map",
];

/// Each curve at so many processors.
fn curves(
    n: f64,
    two: f64,
    popularity: &Popularity,
    constants: &Constants,
    costs: &Costs,
) -> [f64; 5] {
    let replicated = |replicas| model::replicated(n, replicas, popularity, constants, costs);
    [
        model::ideal(n, costs),
        replicated(f64::INFINITY),
        replicated(3.0),
        replicated(1.0),
        model::shared(n, two, popularity, constants, costs),
    ]
}

fn chart_name(skew: f64) -> String {
    format!("anna-cores-zipf-{}.svg", skew.to_string().replace('.', "-"))
}

fn cores(options: &Options, measured: &Measured) -> (Report, Vec<LineChart>) {
    let headers = format!("mix | processors | {}", CURVES.join(" | "));
    let mut table = Table::new(2, &headers);
    let (mut charts, mut notes, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for skew in SKEWS {
        let Some(costs) = costs(measured, skew) else {
            continue;
        };
        let popularity = Popularity::new(options.keys(), skew);
        let two = measured.best(&PEERS, skew, THREADS).map_or(0.0, Row::rate);
        let points =
            PROCESSORS.map(|n| (n, curves(n, two, &popularity, &measured.constants, &costs)));
        for (n, values) in points {
            let mut cells = vec![format!("zipf {skew}"), format!("{n}")];
            cells.extend(values.map(|value| format!("{value:.1}")));
            table.row(cells);
        }
        notes.push(note(skew, &costs));
        data.push(json!({"skew": skew, "costs": costs, "curves": points}));
        charts.push(chart(measured, skew, &points));
    }
    let report = Report {
        slug: "anna-cores",
        part_of: None,
        title: "Updates in process on more processors: a model".into(),
        command: COMMAND.into(),
        method: cores_method(&measured.constants),
        table,
        chart: None,
        notes,
        data: json!({"constants": measured.constants, "mixes": data}),
    };
    (report, charts)
}

fn note(skew: f64, costs: &Costs) -> String {
    format!(
        "zipf {skew}: an update of a private map {:.1} ns, of the best shared map on one thread {:.1} \
         ns, of a worker {:.1} ns; to send a changed key {:.0} ns, to merge one {:.0} ns, {:.1} keys \
         in a message.",
        costs.private_request,
        costs.shared_request,
        costs.request,
        costs.send,
        costs.merge,
        costs.batch
    )
}

fn cores_method(constants: &Constants) -> Vec<String> {
    let Constants {
        line,
        handover,
        ring,
    } = constants;
    let images = SKEWS.map(|skew| format!("![zipf {skew}]({})", chart_name(skew)));
    vec![
        "**Nothing here beyond two processors was measured.** Million updates per second, reckoned \
         from constants that were measured in the same run; the dots in the plots are what two \
         threads did."
            .into(),
        format!(
            "The constants: a cache line is seen by the other processor {line:.0} ns after a store; a \
             lock and 1 KiB that another processor has just written are taken over and overwritten \
             in {handover:.0} ns; a message through a ring costs {ring:.0} ns, both ends together. \
             Those of each mix are below the table."
        ),
        "A shared map's updates of one key exclude each other, and on n processors the last was made \
         by another one (n − 1)/n of the times; so the hottest key alone bounds it. A lock that its \
         last holder may take again comes over less often, and so the curve is not let fall below \
         what two threads did. Replicas hold \
         nobody back: with r of them a key's requests are spread over r processors, and in every \
         epoch each sends the keys that it has changed, once each, and merges those of the r − 1 \
         others; the number of different keys follows from the popularity. Bandwidth of memory and \
         caches is left out, for all alike, and processors further apart than these two: which is to \
         the good of the shared map under high contention, and of everything under low."
            .into(),
        images.join("\n\n"),
    ]
}

fn chart(measured: &Measured, skew: f64, points: &[(f64, [f64; 5])]) -> LineChart {
    let stores = [
        &[IDEAL][..],
        &[FULL],
        &[THREE_REPLICAS],
        &[ONE_REPLICA],
        &PEERS,
    ];
    let lines = CURVES
        .iter()
        .zip(stores)
        .enumerate()
        .map(|(at, (name, stores))| {
            let two = measured
                .best(stores, skew, THREADS)
                .map(|row| (2.0, row.rate()));
            let one = match at {
                0 | 4 => measured.best(stores, skew, 1),
                _ => measured.row(ONE_THREAD, skew, 1),
            };
            let one = one.map(|row| (1.0, row.rate()));
            Line {
                name: (*name).to_owned(),
                curve: points.iter().map(|(n, values)| (*n, values[at])).collect(),
                measured: one.into_iter().chain(two).collect(),
            }
        });
    LineChart {
        title: format!("Updates in process, zipf {skew}: model, and what was measured (dots)"),
        x_axis: "processors".into(),
        y_axis: "million updates per second".into(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_were_built_in() {
        let versions = versions();
        assert_eq!(versions.len(), 4, "{versions:?}");
        assert!(versions["dashmap"].starts_with('6'));
    }
}
