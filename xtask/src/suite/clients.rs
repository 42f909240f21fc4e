//! Cluster clients of five libraries, all at work on one cluster while a node joins, one drains and
//! stops, and one is killed. `xtask/clients/README.md` says what their programs do and report;
//! here it is decided what of that is fine.

use super::cluster::{Cluster, NODES};
use super::libraries::LIBRARIES;
use super::record::Row;
use super::{Outcome, Run};
use crate::process::line;
use crate::project;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Programs have so long to start.
const STARTING: Duration = Duration::from_secs(60);
/// Programs have so long to read everything again at the end.
const ENDING: Duration = Duration::from_secs(180);
/// Before it nothing is counted as missing: programs start at their own pace.
const CONNECTS: &str = "connects";
/// In which no slot moves and no node ends.
const SETTLED: &str = "settled";
/// What every program has to have done, by its counts.
const KINDS: [&str; 6] = [
    "sets",
    "reads",
    "pipelines",
    "groups",
    "transactions",
    "replica_reads",
];

/// What a program prints at its end.
#[derive(Deserialize)]
struct Report {
    library: String,
    phases: Vec<Phase>,
    /// Errors that no user has to be ready for.
    unexpected: BTreeMap<String, usize>,
    wrong: Vec<String>,
    wrongs: usize,
    doubts: usize,
    keys: usize,
    counts: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Phase {
    name: String,
    operations: usize,
    errors: BTreeMap<String, usize>,
    silence_ms: u64,
}

/// A program that runs.
struct Client {
    name: &'static str,
    child: Child,
    /// What it prints; what it complains of is in a file beside.
    log: PathBuf,
}

/// The outcome, and the libraries that were left out, with the reasons.
pub(super) fn run(run: &Run, program: &Path, seconds: u64) -> Result<(Outcome, Vec<String>)> {
    let (mut ready, mut skipped) = (Vec::new(), Vec::new());
    for library in &LIBRARIES {
        match library.ready() {
            Ok(command) => ready.push((library.name, command)),
            Err(why) => skipped.push(format!("{}: {why:#}", library.name)),
        }
    }
    let mut outcome = Outcome {
        rows: Vec::new(),
        complaints: Vec::new(),
    };
    if ready.is_empty() {
        return Ok((outcome, skipped));
    }
    let folder = project::target().join("suite-scratch/cluster-clients");
    let cluster = Cluster::start(program, folder, &run.logs.join("cluster-clients-nodes.log"))?;
    let mut clients = Vec::new();
    for (name, mut command) in ready {
        let log = run.logs.join(format!("cluster-clients-{name}.log"));
        println!("$ {} {}", line(&command), cluster.addresses());
        let child = command
            .arg(cluster.addresses())
            .stdin(Stdio::piped())
            .stdout(File::create(&log)?)
            .stderr(File::create(log.with_extension("errors"))?)
            .spawn()
            .with_context(|| format!("cannot start the program of {name}"))?;
        clients.push(Client { name, child, log });
    }
    for client in &clients {
        client.until_ready();
    }
    let happened = happen(&cluster, &mut clients, Duration::from_secs(seconds));
    for mut client in clients {
        let ended = client.end();
        let report = ended.and_then(|fine| Ok((fine, client.report()?)));
        let (row, complaints) = match report {
            Ok((fine, report)) => judge(client.name, &report, fine),
            Err(error) => (
                failed(client.name),
                vec![format!("{}: {error:#}", client.name)],
            ),
        };
        outcome.rows.push(row);
        outcome.complaints.extend(complaints);
    }
    happened?;
    Ok((outcome, skipped))
}

/// What happens to the nodes: each thing after the cluster is whole again.
fn happen(cluster: &Cluster, clients: &mut [Client], pause: Duration) -> Result<()> {
    let mut begin = |phase: &str| {
        println!("{phase}");
        clients.iter_mut().for_each(|client| client.tell(phase));
    };
    std::thread::sleep(pause);
    begin(SETTLED);
    std::thread::sleep(pause);
    begin("a node joins");
    cluster.add()?;
    cluster.until_whole(1, NODES + 1)?;
    std::thread::sleep(pause);
    begin("a node drains");
    // It stays a member without slots until it stops.
    cluster.drain(2)?;
    cluster.until_whole(1, NODES + 1)?;
    std::thread::sleep(pause);
    begin("it stops");
    cluster.signal(2, "TERM")?;
    cluster.until_whole(1, NODES)?;
    std::thread::sleep(pause);
    begin("a node is killed");
    cluster.signal(1, "KILL")?;
    cluster.until_whole(3, NODES - 1)?;
    std::thread::sleep(pause);
    Ok(())
}

impl Client {
    /// Waits for its first success, which needs a while where a language starts slowly; one that
    /// has none is found at the end.
    fn until_ready(&self) {
        let until = Instant::now() + STARTING;
        let is_ready = || fs::read_to_string(&self.log).is_ok_and(|text| text.contains("ready"));
        while !is_ready() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn tell(&mut self, phase: &str) {
        if let Some(input) = &mut self.child.stdin {
            // One that is gone is found at the end.
            let _ = writeln!(input, "{phase}");
        }
    }

    /// Has it stop, and waits for that. Whether it found nothing wrong.
    fn end(&mut self) -> Result<bool> {
        drop(self.child.stdin.take());
        let until = Instant::now() + ENDING;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.child.kill()?;
        self.child.wait()?;
        bail!("does not end: see {}", self.log.display())
    }

    fn report(&self) -> Result<Report> {
        let text = fs::read_to_string(&self.log)?;
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last).with_context(|| {
            format!(
                "broke off: see {}",
                self.log.with_extension("errors").display()
            )
        })
    }
}

fn failed(name: &str) -> Row {
    Row {
        name: name.to_owned(),
        ok: 0,
        failed: 1,
        skipped: 0,
        reference: None,
    }
}

/// The checks on what a program reports.
fn judge(name: &str, report: &Report, fine: bool) -> (Row, Vec<String>) {
    show(report);
    let phases = || report.phases.iter().filter(|phase| phase.name != CONNECTS);
    let mut checks: Vec<(bool, String)> = Vec::new();
    for kind in KINDS {
        let count = report.counts.get(kind).copied().unwrap_or(0);
        checks.push((count > 0, format!("no {kind}")));
    }
    let idle = phases().find(|phase| phase.operations == 0);
    let idle = idle.map(|phase| phase.name.as_str());
    checks.push((
        idle.is_none() && phases().count() > 0,
        format!("no operation while: {idle:?}"),
    ));
    let early = phases().find(|phase| phase.name == SETTLED && !phase.errors.is_empty());
    let early = early.map(|phase| &phase.errors);
    checks.push((
        early.is_none(),
        format!("errors while nothing happened: {early:?}"),
    ));
    let unexpected = &report.unexpected;
    checks.push((unexpected.is_empty(), format!("unexpected: {unexpected:?}")));
    let wrong = report.wrong.first();
    checks.push((
        report.wrongs == 0 && fine == unexpected.is_empty(),
        format!("{} wrong answers: {wrong:?}", report.wrongs),
    ));
    let complaints: Vec<String> = checks
        .iter()
        .filter(|(fine, _)| !fine)
        .map(|(_, what)| format!("{name}: {what}"))
        .collect();
    let row = Row {
        name: name.to_owned(),
        ok: checks.len() - complaints.len(),
        failed: complaints.len(),
        skipped: 0,
        reference: None,
    };
    (row, complaints)
}

fn show(report: &Report) {
    let acknowledged = report.counts.get("acknowledged").copied().unwrap_or(0);
    println!(
        "\n{}: {acknowledged} writes acknowledged, {} wrong answers, {} writes in doubt, {} keys read at the end",
        report.library, report.wrongs, report.doubts, report.keys
    );
    for phase in &report.phases {
        println!(
            "  {:18} {:7} operations, longest silence {:5} ms",
            phase.name, phase.operations, phase.silence_ms
        );
        for (kind, count) in &phase.errors {
            println!("  {:18} {count:7} × {kind}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(change: impl FnOnce(&mut Report)) -> Report {
        let phase = |name: &str| Phase {
            name: name.to_owned(),
            operations: 9,
            errors: BTreeMap::new(),
            silence_ms: 1,
        };
        let mut report = Report {
            library: "x 1".to_owned(),
            phases: [CONNECTS, SETTLED, "a node joins"].map(phase).into(),
            unexpected: BTreeMap::new(),
            wrong: Vec::new(),
            wrongs: 0,
            doubts: 0,
            keys: 1,
            counts: KINDS.map(|kind| (kind.to_owned(), 1)).into(),
        };
        change(&mut report);
        report
    }

    #[test]
    fn what_is_wrong_fails_and_nothing_else() {
        let (row, complaints) = judge("x", &report(|_| ()), true);
        assert_eq!((row.ok, row.failed), (KINDS.len() + 4, 0), "{complaints:?}");
        let error = || BTreeMap::from([("get: gone".to_owned(), 1)]);
        let late = report(|report| report.phases[2].errors = error());
        assert_eq!(judge("x", &late, true).0.failed, 0);
        let unconnected = report(|report| report.phases[0].operations = 0);
        assert_eq!(judge("x", &unconnected, true).0.failed, 0);
    }

    #[test]
    fn each_check_can_fail() {
        let error = || BTreeMap::from([("get: gone".to_owned(), 1)]);
        let all: [(Report, bool); 6] = [
            (report(|report| report.wrongs = 1), false),
            // It says that something is wrong, and not what.
            (report(|_| ()), false),
            (report(|report| report.unexpected = error()), false),
            (report(|report| report.phases[1].errors = error()), true),
            (report(|report| report.phases[2].operations = 0), true),
            (report(|report| _ = report.counts.remove("groups")), true),
        ];
        for (report, fine) in &all {
            let (row, complaints) = judge("x", report, *fine);
            assert_eq!((row.failed, complaints.len()), (1, 1), "{complaints:?}");
        }
    }
}
