//! The page of Anna's Figure 8: throughput and CPU time beside Redis and Redis Cluster, and how it would
//! go on to 64 processors.

use anyhow::Result;
use serde_json::json;

use super::anna8::{
    CLUSTER, FULL, Gossip, Measured, NODES, ONE_REPLICA, Options, PIPELINES, REDIS, Row, SKEWS,
};
use super::lines::{Line, LineChart};
use super::model::{self, Costs};
use super::requests::Popularity;
use super::rufous::GOSSIP_MS;
use rufous_bench::plot::{Bar, Chart, Group};
use rufous_bench::procfs::Machine;
use rufous_bench::report::Report;
use rufous_bench::stats::Target;
use rufous_bench::table::Table;

const COMMAND: &str = "cargo xtask figures anna8";
const PAGE: &str = "anna-8.md";
const PROCESSORS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Prints everything, and writes it where the options say.
pub(crate) fn show(options: &Options, machine: &Machine, measured: &Measured) -> Result<()> {
    let (model, charts) = cores(options, measured);
    let reports = [throughput(options, measured), model];
    let mut files = Vec::new();
    let names = SKEWS.map(chart_name);
    for (name, chart) in names.iter().zip(&charts) {
        files.push((name.as_str(), chart.svg()?));
    }
    let (common, versions) = (&options.common, measured.versions.iter().cloned());
    common.publish(machine, versions, &reports, &files)
}

fn mix(skew: f64, pipeline: usize) -> String {
    match pipeline {
        1 => format!("zipf {skew}, one request at a time"),
        _ => format!("zipf {skew}, {pipeline} requests at a time"),
    }
}

/// What full replication is to reach beside Redis Cluster.
fn target(skew: f64) -> Target {
    Target::AtLeast(if skew > 1.0 { 1.4 } else { 1.0 })
}

const HEADERS: &str = "mix | store | k/s (quartiles) | CPU-µs/op (quartiles) | one thread's | \
     clients' CPU-µs/op | p50 ms | p99 ms | others' cores | to Redis Cluster | by CPU | target | ";

fn throughput(options: &Options, measured: &Measured) -> Report {
    let mut table = Table::new(2, HEADERS);
    let mut last = String::new();
    for row in &measured.rows {
        let mix = mix(row.skew, row.pipeline);
        let label = if mix == last { "" } else { &mix };
        let mut cells = vec![label.to_owned(), row.store.clone()];
        cells.extend(figures(row));
        if let Some(cluster) = measured.row(CLUSTER, row.skew, row.pipeline) {
            let ratio = row.ratio_to(cluster, |s| s.kops);
            let by_cpu = row.ratio_to(cluster, |s| s.kops_by_cpu());
            cells.extend([ratio.show(), by_cpu.show()]);
            if row.store == FULL {
                let target = target(row.skew);
                cells.extend(target.cells(ratio.median));
            }
        }
        table.row(cells);
        last = mix;
    }
    Report {
        slug: "anna-8",
        part_of: None,
        title: "Replicas beside Redis and Redis Cluster, over TCP".into(),
        command: COMMAND.into(),
        method: method(options),
        table,
        chart: Some(chart(measured)),
        notes: notes(measured),
        data: json!(measured.rows),
    }
}

fn figures(row: &Row) -> [String; 7] {
    let kops = row.summary(|s| s.kops);
    [
        format!(
            "{:.0} ({:.0}–{:.0})",
            kops.median, kops.low_quartile, kops.high_quartile
        ),
        row.summary(|s| s.cpu_us).show(),
        format!("{:.2}", row.median(|s| s.bound_us)),
        format!("{:.2}", row.median(|s| s.load_us)),
        format!("{:.2}", row.median(|s| s.p50_ms)),
        format!("{:.2}", row.median(|s| s.p99_ms)),
        format!("{:.2}", row.median(|s| s.others_cores)),
    ]
}

fn method(options: &Options) -> Vec<String> {
    vec![
        format!(
            "After Figure 8 of Anna (2018), with the records of its §VIII-B: {} keys of 25 B, values \
             of 1 KiB, the keys' popularity zipfian, each record read and then written. {} clients, \
             all in one thread of the load generator; those of the cluster have a connection to \
             each instance and know where each slot is. Windows of {} ms, all stores in turn, {} \
             each; medians and quartiles of windows, ratios of windows side by side.",
            options.keys(),
            options.clients,
            options.window().as_millis(),
            options.windows(),
        ),
        format!(
            "Rufous has {NODES} workers; *full replication* is a keyspace of regime lattice with \
             THREADS all, *1 replica* the same with THREADS 1, both with epochs of {GOSSIP_MS} ms. The \
             cluster is {NODES} instances with half of the slots each. Nothing is bound to a \
             processor, and nothing is logged."
        ),
        "**Servers and clients share two processors.** So throughput shows what both take together, \
         and *CPU-µs/op* is the figure of the servers alone (user and system time, up to 120 ms after \
         the window, in which its last epoch arrives). *One thread's* is the part of that which bounds \
         what the store can do with clients elsewhere: the busiest thread's, as a key's requests \
         have to go where it is; with full replication any worker takes any request, and each has an \
         equal part. *By CPU* compares these bounds, and is what the paper's set-up would come near \
         to."
            .into(),
    ]
}

/// What was not reached, and what would have been needed.
fn notes(measured: &Measured) -> Vec<String> {
    let mut notes = Vec::new();
    for skew in SKEWS {
        for pipeline in PIPELINES {
            let row = |store| measured.row(store, skew, pipeline);
            if let (Some(full), Some(cluster)) = (row(FULL), row(CLUSTER)) {
                notes.push(note(full, cluster));
            }
        }
    }
    notes
}

fn note(full: &Row, cluster: &Row) -> String {
    let (ratio, target) = (full.ratio_to(cluster, |s| s.kops).median, target(full.skew));
    let both = full.median(|s| s.cpu_us) + full.median(|s| s.load_us);
    let most = NODES as f64 * 1e3 / both;
    let by_cpu = full.ratio_to(cluster, |s| s.kops_by_cpu()).median;
    let mix = mix(full.skew, full.pipeline);
    if target.met(ratio) {
        return format!("{mix}: {ratio:.2} times Redis Cluster ({}).", target.show());
    }
    let needed = NODES as f64 * 1e3 / (target.limit() * cluster.median(|s| s.kops));
    format!(
        "{mix}: **not reached**, {ratio:.2} times Redis Cluster instead of {}. An operation takes \
         {both:.2} µs of servers and clients together, so that {NODES} processors do {most:.0} k/s at \
         most; {needed:.2} µs would be needed. With clients elsewhere it would be {by_cpu:.2} times, by CPU.",
        target.limit()
    )
}

fn chart(measured: &Measured) -> Chart {
    let stores = [FULL, ONE_REPLICA, CLUSTER, REDIS];
    let mixes = SKEWS.iter().flat_map(|s| PIPELINES.map(|p| (*s, p)));
    let groups = mixes.map(|(skew, pipeline)| {
        let bars = stores.iter().enumerate().filter_map(|(series, store)| {
            let row = measured.row(store, skew, pipeline)?;
            let cluster = measured.row(CLUSTER, skew, pipeline)?;
            let value = row.ratio_to(cluster, |s| s.kops).median;
            let label = format!("{value:.2} ({:.0} k/s)", row.median(|s| s.kops));
            Some(Bar::new(series, value, label))
        });
        Group {
            label: format!("zipf {skew}, pipeline {pipeline}"),
            bars: bars.collect(),
            target: Some(target(skew).limit()),
        }
    });
    Chart {
        title: "Reading and writing records over TCP, beside Redis Cluster".into(),
        axis: "throughput of Redis Cluster = 1; more is better".into(),
        series: stores.map(str::to_owned).to_vec(),
        groups: groups.collect(),
    }
}

const CURVES: [&str; 3] = ["full replication", "Redis Cluster", "Redis"];

/// The constants of a store under a mix with one request at a time.
fn costs(row: &Row, gossip: &Gossip) -> Costs {
    let told = row.sent * gossip.send + row.merged * gossip.merge;
    let whole = row.median(|s| s.cpu_us) * 1e3;
    Costs {
        private_request: whole,
        shared_request: whole,
        // Telling cannot be all of it, however its cost was measured.
        request: (whole - told).max(whole / 10.0),
        writes: 0.5,
        send: gossip.send,
        merge: gossip.merge,
        batch: gossip.batch,
        epoch: f64::from(GOSSIP_MS) * 1e6,
    }
}

/// Thousands a second of each curve at so many processors.
fn curves(n: f64, popularity: &Popularity, measured: &Measured, costs: [&Costs; 3]) -> [f64; 3] {
    let [ours, cluster, redis] = costs;
    let reckon = |replicas, costs| {
        model::replicated(n, replicas, popularity, &measured.constants, costs) * 1e3
    };
    [
        reckon(f64::INFINITY, ours),
        reckon(1.0, cluster),
        1e6 / redis.private_request,
    ]
}

fn chart_name(skew: f64) -> String {
    format!(
        "anna-8-cores-zipf-{}.svg",
        skew.to_string().replace('.', "-")
    )
}

fn cores(options: &Options, measured: &Measured) -> (Report, Vec<LineChart>) {
    let mut table = Table::new(2, &format!("mix | processors | {}", CURVES.join(" | ")));
    let (mut charts, mut notes, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for (&skew, gossip) in SKEWS.iter().zip(&measured.gossip) {
        let row = |store| measured.row(store, skew, PIPELINES[0]);
        let (Some(ours), Some(cluster), Some(redis)) = (row(FULL), row(CLUSTER), row(REDIS)) else {
            continue;
        };
        let none = Gossip {
            send: 0.0,
            merge: 0.0,
            ..*gossip
        };
        let costs = [
            costs(ours, gossip),
            costs(cluster, &none),
            costs(redis, &none),
        ];
        let popularity = Popularity::new(options.keys(), skew);
        let points = PROCESSORS.map(|n| (n, curves(n, &popularity, measured, costs.each_ref())));
        for (n, values) in points {
            let mut cells = vec![format!("zipf {skew}"), format!("{n}")];
            cells.extend(values.map(|value| format!("{value:.0}")));
            table.row(cells);
        }
        notes.push(format!(
            "zipf {skew}: an operation takes {:.2} µs of a worker, what it tells others not included, \
             {:.2} µs of an instance of the cluster, {:.2} µs of Redis alone; to send a changed key \
             {:.0} ns, to merge one {:.0} ns.",
            costs[0].request / 1e3,
            costs[1].request / 1e3,
            costs[2].request / 1e3,
            gossip.send,
            gossip.merge,
        ));
        data.push(json!({"skew": skew, "costs": costs, "curves": points}));
        charts.push(lines(measured, skew, &points));
    }
    let report = Report {
        slug: "anna-8-cores",
        part_of: Some(PAGE),
        title: "The same on more processors: a model".into(),
        command: COMMAND.into(),
        method: cores_method(),
        table,
        chart: None,
        notes,
        data: json!({"constants": measured.constants, "gossip": measured.gossip, "mixes": data}),
    };
    (report, charts)
}

fn cores_method() -> Vec<String> {
    let images = SKEWS.map(|skew| format!("![zipf {skew}]({})", chart_name(skew)));
    vec![
        "**Nothing here beyond two processors was measured**, and clients are taken to have \
         processors of their own. Thousand operations per second, one request at a time, reckoned by \
         the model of [anna-cores](anna-cores.md) from the CPU time of operations measured above and \
         from what two workers cost one another in process; the dots are what one of two threads \
         was measured to allow."
            .into(),
        "In the cluster a key's requests all go to one instance, so the hottest key bounds it. With \
         full replication they are spread over all processors; in every epoch each worker sends the \
         keys that it has changed, once each, and merges those of all others. Fewer replicas are left \
         out: connections are served by all workers whichever of them has the key, and what of an \
         operation is bound to the key was not measured. So is the network."
            .into(),
        images.join("\n\n"),
    ]
}

fn lines(measured: &Measured, skew: f64, points: &[(f64, [f64; 3])]) -> LineChart {
    let stores = [Some(FULL), Some(CLUSTER), None];
    let lines = CURVES
        .iter()
        .zip(stores)
        .enumerate()
        .map(|(at, (name, store))| {
            let row = store.and_then(|store| measured.row(store, skew, PIPELINES[0]));
            let dot = row.map(|row| (NODES as f64, row.median(|s| s.kops_by_cpu())));
            Line {
                name: (*name).to_owned(),
                curve: points.iter().map(|(n, values)| (*n, values[at])).collect(),
                measured: dot.into_iter().collect(),
            }
        });
    LineChart {
        title: format!("Over TCP, zipf {skew}: model, and what was measured (dots)"),
        x_axis: "processors of the servers".into(),
        y_axis: "thousand operations per second".into(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::Sample;

    fn row(store: &str, kops: f64, cpu_us: f64) -> Row {
        let sample = Sample {
            operations: 1e5,
            elapsed: 1.0,
            kops,
            cpu_us,
            bound_us: cpu_us / 2.0,
            load_us: 2.0,
            p50_ms: 1.0,
            p99_ms: 2.0,
            others_cores: 0.0,
        };
        Row {
            store: store.into(),
            skew: 4.0,
            pipeline: 1,
            samples: vec![sample; 3],
            sent: 0.1,
            merged: 0.1,
        }
    }

    #[test]
    fn what_is_not_reached_is_said_with_what_it_would_take() {
        let (slow, fast) = (row(FULL, 110.0, 8.0), row(FULL, 150.0, 8.0));
        let cluster = row(CLUSTER, 100.0, 8.0);
        let said = note(&slow, &cluster);
        assert!(
            said.contains("not reached") && said.contains("1.10 times"),
            "{said}"
        );
        assert!(
            said.contains("200 k/s at most") && said.contains("14.29 µs"),
            "{said}"
        );
        let said = note(&fast, &cluster);
        assert!(
            !said.contains("not reached") && said.contains("1.50 times"),
            "{said}"
        );
    }

    #[test]
    fn telling_others_is_no_part_of_a_request() {
        let gossip = Gossip {
            send: 2000.0,
            merge: 1000.0,
            batch: 100.0,
        };
        let costs = costs(&row(FULL, 100.0, 8.0), &gossip);
        assert!((costs.request - 7700.0).abs() < 1e-6);
        assert_eq!(costs.private_request, 8000.0);
    }
}
