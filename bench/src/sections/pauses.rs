//! How far the tail of the latency moves while a big data set grows, is flushed, and expires.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::json;

use super::{Context, SHAPE, command, series_order};
use crate::date::unix_time;
use crate::loadgen::keys::Keys;
use crate::loadgen::latency::Latency;
use crate::loadgen::paced::{self, Lane, Until};
use crate::loadgen::reply::Check;
use crate::loadgen::source::{Mix, Preload, Repeat, Source};
use crate::loadgen::template::Command;
use crate::measure::preload;
use crate::options::RUFOUS;
use crate::plot::{Bar, Chart, Group};
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::{Server, ServerSpec};
use crate::stats::Target;
use crate::table::Table;

/// Milliseconds that p99.9 may move.
const TARGET: Target = Target::AtMost(1.0);
const PROBE_INTERVAL: Duration = Duration::from_micros(200);
/// Beside the probe: two connections, eight GETs each millisecond.
const LIGHT_LANES: u32 = 2;
const LIGHT_PIPELINE: usize = 8;
const LIGHT_INTERVAL: Duration = Duration::from_millis(1);
/// Growth: two connections that write 250,000 keys per second together.
const GROWTH_LANES: u64 = 2;
const GROWTH_PIPELINE: usize = 32;
const GROWTH_INTERVAL: Duration = Duration::from_micros(256);
/// Enough for every table that doubles to do so once.
const GROWTH_SHARE: f64 = 0.8;
const LEAD: Duration = Duration::from_secs(1);

/// How long to look, and at how much.
#[derive(Clone, Copy)]
struct Plan {
    keys: u64,
    expiring: u64,
    idle: Duration,
    after: Duration,
}

/// One server during one event.
#[derive(Serialize)]
struct Outcome {
    server: String,
    event: &'static str,
    idle_p999_ms: f64,
    idle_max_ms: f64,
    event_p999_ms: f64,
    event_max_ms: f64,
    moved_ms: f64,
    requests: u64,
    remark: String,
}

impl Outcome {
    fn new(server: &Server, event: &'static str, idle: &Latency, during: &Latency) -> Self {
        let (idle_p999, event_p999) = (idle.percentile_ms(99.9), during.percentile_ms(99.9));
        Self {
            server: server.name.clone(),
            event,
            idle_p999_ms: idle_p999,
            idle_max_ms: idle.max_ms(),
            event_p999_ms: event_p999,
            event_max_ms: during.max_ms(),
            moved_ms: event_p999 - idle_p999,
            requests: during.count(),
            remark: String::new(),
        }
    }

    fn line(&self) -> String {
        let Self {
            server,
            event,
            idle_p999_ms,
            event_p999_ms,
            event_max_ms,
            remark,
            ..
        } = self;
        format!(
            "{server}, {event}: p99.9 {idle_p999_ms:.2} → {event_p999_ms:.2} ms, \
             longest {event_max_ms:.1} ms{}{remark}",
            if remark.is_empty() { "" } else { "; " },
        )
    }
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.contestants()?;
    let keys = context.options.pause_keys();
    let seconds = if context.options.quick { 2 } else { 8 };
    let plan = Plan {
        keys,
        expiring: keys.min(1_000_000),
        idle: Duration::from_secs(seconds),
        after: Duration::from_secs(seconds),
    };
    let progress = Progress::new("pauses", 4 * specs.len() as u64);
    let mut outcomes = Vec::new();
    for spec in &specs {
        outcomes.extend(measure(context, spec, plan, &progress)?);
    }
    Ok(report(&outcomes, plan))
}

fn measure(
    context: &mut Context,
    spec: &ServerSpec,
    plan: Plan,
    progress: &Progress,
) -> Result<Vec<Outcome>> {
    progress.doing(&format!("{}: loading {} keys", spec.name, plan.keys));
    let server = Server::start(spec)?;
    context.note_version(&server)?;
    let begin = Instant::now();
    preload(&server, Command::Set, SHAPE, 0..plan.keys)?;
    let per_key = begin.elapsed().div_f64(plan.keys as f64);
    progress.advance(1);
    let mut outcomes = Vec::new();
    type Event = fn(&Server, Plan, Duration) -> Result<Outcome>;
    let events: [(&str, Event); 3] = [
        ("expiry", expiry),
        ("table growth", growth),
        ("FLUSHALL ASYNC", flush),
    ];
    for (name, event) in events {
        progress.doing(&format!("{}: {name}", spec.name));
        let outcome = event(&server, plan, per_key)?;
        progress.say(&outcome.line());
        outcomes.push(outcome);
        progress.advance(1);
    }
    Ok(outcomes)
}

/// The probe is the first lane: one GET at a time on a fixed schedule.
fn probe(server: &Server, keys: u64) -> Result<Lane> {
    let mix = Mix::one(Command::GetOrNil, SHAPE, Keys::Uniform(keys), 1);
    Lane::connect(server.addr, Box::new(mix), PROBE_INTERVAL, Duration::ZERO)
}

fn lightly_loaded(server: &Server, plan: Plan) -> Result<Vec<Lane>> {
    let mut lanes = vec![probe(server, plan.keys)?];
    for i in 0..LIGHT_LANES {
        let mix = Mix::one(
            Command::GetOrNil,
            SHAPE,
            Keys::Uniform(plan.keys),
            LIGHT_PIPELINE,
        );
        let delay = LIGHT_INTERVAL / LIGHT_LANES * i;
        lanes.push(Lane::connect(
            server.addr,
            Box::new(mix),
            LIGHT_INTERVAL,
            delay,
        )?);
    }
    Ok(lanes)
}

/// The probe beside connections that write each key of `from..to` once.
fn writing(server: &Server, plan: Plan, from: u64, to: u64) -> Result<Vec<Lane>> {
    let mut lanes = vec![probe(server, plan.keys)?];
    let share = (to - from) / GROWTH_LANES;
    for i in 0..GROWTH_LANES {
        let range = from + i * share..from + (i + 1) * share;
        let source = Preload::new(Command::Set, SHAPE, range, GROWTH_PIPELINE);
        let delay = GROWTH_INTERVAL / GROWTH_LANES as u32 * i as u32;
        lanes.push(Lane::connect(
            server.addr,
            Box::new(source),
            GROWTH_INTERVAL,
            delay,
        )?);
    }
    Ok(lanes)
}

fn idle(server: &Server, plan: Plan) -> Result<Latency> {
    let mut lanes = lightly_loaded(server, plan)?;
    paced::run(&mut lanes, Until::After(plan.idle))?;
    Ok(lanes[0].latency().clone())
}

/// A million keys that all expire at the same millisecond, a second into the window.
fn expiry(server: &Server, plan: Plan, per_key: Duration) -> Result<Outcome> {
    let quiet = idle(server, plan)?;
    let loading = per_key.mul_f64(plan.expiring as f64 * 2.0) + Duration::from_secs(2);
    let due = unix_time() + loading + LEAD;
    let range = plan.keys..plan.keys + plan.expiring;
    preload(
        server,
        Command::SetUntil(due.as_millis() as u64),
        SHAPE,
        range,
    )?;
    let Some(wait) = due.checked_sub(unix_time() + LEAD) else {
        bail!("loading the keys that expire took longer than {loading:?}");
    };
    std::thread::sleep(wait);
    let mut lanes = lightly_loaded(server, plan)?;
    paced::run(&mut lanes, Until::After(LEAD + plan.after))?;
    let left = server.client()?.call(&["DBSIZE"])?.integer()? - plan.keys as i64;
    let mut outcome = Outcome::new(server, "expiry", &quiet, lanes[0].latency());
    outcome.remark = format!(
        "{left} of {} expired keys left after {:?}",
        plan.expiring, plan.after
    );
    Ok(outcome)
}

/// New keys at a steady rate; the idle figure is that of overwriting at the same rate.
fn growth(server: &Server, plan: Plan, _per_key: Duration) -> Result<Outcome> {
    let mut lanes = writing(server, plan, 0, plan.keys)?;
    paced::run(&mut lanes, Until::After(plan.idle))?;
    let quiet = lanes[0].latency().clone();
    let grown = plan.keys + (plan.keys as f64 * GROWTH_SHARE) as u64;
    let mut lanes = writing(server, plan, plan.keys, grown)?;
    let last = lanes.len() - 1;
    paced::run(&mut lanes, Until::LaneDone(last))?;
    let mut outcome = Outcome::new(server, "table growth", &quiet, lanes[0].latency());
    outcome.remark = format!("from {} to {grown} keys", plan.keys);
    Ok(outcome)
}

fn flush(server: &Server, plan: Plan, _per_key: Duration) -> Result<Outcome> {
    let quiet = idle(server, plan)?;
    let mut lanes = lightly_loaded(server, plan)?;
    let request = b"*2\r\n$8\r\nFLUSHALL\r\n$5\r\nASYNC\r\n".to_vec();
    let once: Box<dyn Source> = Box::new(Repeat {
        request,
        check: Check::Simple,
        times: 1,
    });
    lanes.push(Lane::connect(server.addr, once, LEAD, LEAD)?);
    paced::run(&mut lanes, Until::After(LEAD + plan.after))?;
    let answer = lanes.last().map_or(0.0, |lane| lane.latency().max_ms());
    let mut outcome = Outcome::new(server, "FLUSHALL ASYNC", &quiet, lanes[0].latency());
    outcome.remark = format!("answered after {answer:.2} ms");
    Ok(outcome)
}

fn report(outcomes: &[Outcome], plan: Plan) -> Report {
    let headers = "event | server | p99.9 idle, ms | during | moved by | longest idle, ms | during | \
         requests | target | ";
    let mut table = Table::new(2, headers);
    let mut names: Vec<String> = Vec::new();
    for outcome in outcomes {
        if !names.contains(&outcome.server) {
            names.push(outcome.server.clone());
        }
    }
    let series = series_order(&names);
    let mut groups = Vec::new();
    for event in ["expiry", "table growth", "FLUSHALL ASYNC"] {
        let of_event: Vec<&Outcome> = outcomes.iter().filter(|o| o.event == event).collect();
        for (i, outcome) in of_event.iter().enumerate() {
            table.row(cells(outcome, i == 0));
        }
        let bars = series.iter().enumerate().filter_map(|(i, name)| {
            let outcome = of_event.iter().find(|o| o.server == *name)?;
            let value = outcome.moved_ms.max(0.0);
            Some(Bar::new(i, value, format!("{:+.2} ms", outcome.moved_ms)))
        });
        let target = Some(TARGET.limit());
        groups.push(Group {
            label: event.to_owned(),
            bars: bars.collect(),
            target,
        });
    }
    let remarks = outcomes.iter().filter(|o| !o.remark.is_empty());
    Report {
        slug: "pauses",
        part_of: None,
        title: "Pauses while a big data set changes".into(),
        command: command("pauses"),
        method: method(plan),
        table,
        chart: Some(Chart {
            title: "How far p99.9 moves".into(),
            axis: "milliseconds beyond the idle figure; less is better".into(),
            series,
            groups,
        }),
        notes: remarks
            .map(|o| format!("{}, {}: {}.", o.server, o.event, o.remark))
            .collect(),
        data: json!(outcomes),
    }
}

fn cells(outcome: &Outcome, first: bool) -> Vec<String> {
    let label = if first { outcome.event } else { "" };
    let mut cells = vec![label.to_owned(), outcome.server.clone()];
    let figures = [
        outcome.idle_p999_ms,
        outcome.event_p999_ms,
        outcome.moved_ms,
        outcome.idle_max_ms,
        outcome.event_max_ms,
    ];
    cells.extend(figures.map(|ms| format!("{ms:.2}")));
    cells.push(outcome.requests.to_string());
    if outcome.server == RUFOUS {
        cells.extend(TARGET.cells(outcome.moved_ms));
    }
    cells
}

fn method(plan: Plan) -> Vec<String> {
    let writes = GROWTH_LANES * GROWTH_PIPELINE as u64 * 1_000_000
        / GROWTH_INTERVAL.as_micros().max(1) as u64;
    vec![
        format!(
            "{} keys of 8 B with values of 64 B. A probe sends one GET at a time, due every {} µs; a \
             stall is charged for every slot of that schedule that it blocked, and time during \
             which the load generator itself did not get its processor is subtracted. Beside it {} \
             other connections send {} GETs per millisecond each. Each event is compared with an \
             idle stretch of {:?} right before it.",
            plan.keys,
            PROBE_INTERVAL.as_micros(),
            LIGHT_LANES,
            LIGHT_PIPELINE,
            plan.idle,
        ),
        format!(
            "Events: {} further keys that all expire at one moment; new keys written at up to {writes} \
             per second (idle here: as many overwrites of present keys); FLUSHALL ASYNC.",
            plan.expiring,
        ),
    ]
}
