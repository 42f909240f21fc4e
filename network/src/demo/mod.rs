//! `cargo xtask demo faults`: three nodes under transactions, counters and lattice writes, while each fault that
//! once lost, tore, undid or froze something happens in turn. A table has what clients saw.
//!
//! | module | concept |
//! |---|---|
//! | [`scenes`] | the faults |
//! | [`strict`], [`shared`] | clients of strict and of lattice keys, and what they may see |
//! | [`account`] | what is counted |
//! | [`disk`] | a disk for each node |

pub mod account;
pub mod disk;
pub mod scenes;
pub mod shared;
pub mod strict;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rufous_bench::table::Table;

use crate::door::Route;
use crate::nodes::{Node, Nodes, Plan};
use crate::space::{self, Host};
use account::{Tally, Wrong};
use scenes::Scene;
use strict::Strict;

const NODES: usize = 3;
/// Clients have to be answered again within so long after a fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is to be shown.
#[derive(Clone, Debug)]
pub struct Demo {
    pub workers: usize,
    pub rufous: PathBuf,
    /// Parts of the names of scenes; none means all.
    pub only: Vec<String>,
}

struct Row {
    scene: Scene,
    tally: Tally,
    /// Until every slot had all its copies again.
    whole: Duration,
    audited: usize,
}

impl Demo {
    /// True where no client saw what it must not see. To be called in namespaces of one's own.
    pub fn run(&self) -> Result<bool> {
        if let Some(obstacle) = disk::obstacle() {
            println!("skipped: {obstacle}");
            return Ok(true);
        }
        let mut folder = tempfile::Builder::new()
            .prefix("rufous-faults-")
            .tempdir()?;
        let outcome = self.run_in(folder.path());
        if !matches!(outcome, Ok(true)) {
            folder.disable_cleanup(true);
            println!("the logs of the nodes are in {}", folder.path().display());
        }
        outcome
    }

    fn run_in(&self, folder: &Path) -> Result<bool> {
        let mut hosts: Vec<_> = (1..=NODES + 1).map(Host::of_node).collect();
        hosts.push(Host::of_etcd());
        space::make(&hosts)?;
        let plan = Plan {
            program: self.rufous.clone(),
            workers: self.workers,
            folder: folder.to_owned(),
            disks: true,
            copies: 2,
            keyspaces: crate::lattice::CONFIGURATION.to_owned(),
        };
        println!("Three nodes, two copies of each key, a disk of 256 MiB each, etcd");
        let mut nodes = Nodes::start(plan, NODES)?;
        nodes.until_whole()?;
        let strict = Strict::new(2 * NODES);
        let rows = thread::scope(|scope| {
            start_clients(scope, &strict, nodes.all());
            let rows = self.scenes(&mut nodes, &strict);
            strict.ends.store(true, Ordering::Relaxed);
            rows
        });
        let rows = rows.inspect_err(|_| println!("{}", nodes.last_words()))?;
        Ok(print(&rows))
    }

    fn is_wanted(&self, scene: Scene) -> bool {
        let name = scene.to_string();
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    fn scenes(&self, nodes: &mut Nodes, strict: &Strict) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for scene in Scene::ALL {
            if !self.is_wanted(scene) {
                continue;
            }
            if let Some(obstacle) = scene.obstacle() {
                println!("skipped: {scene}: {obstacle}");
                continue;
            }
            println!("  {scene} …");
            strict.account.take();
            strict.account.set_sick(scene.sick());
            scene.happen(nodes, &strict.large)?;
            let whole = nodes.until_whole()?;
            until_answered(strict)?;
            strict.account.set_sick(&[]);
            let audited = nodes
                .all()
                .iter()
                .map(|node| strict.audit(plain(node)))
                .sum();
            let tally = strict.account.take();
            for example in &tally.examples {
                println!("    WRONG {example}");
            }
            rows.push(Row {
                scene,
                tally,
                whole,
                audited,
            });
        }
        Ok(rows)
    }
}

fn plain(node: &Node) -> Route {
    Route::Stay(node.no, node.plain())
}

fn start_clients<'scope>(scope: &'scope Scope<'scope, '_>, strict: &'scope Strict, nodes: &[Node]) {
    let doors: Vec<_> = nodes.iter().map(Node::door).collect();
    for group in 0..strict.groups.len() {
        let route = Route::Follow(doors.clone());
        scope.spawn(move || strict::write_transactions(strict, group, route));
    }
    for (at, node) in nodes.iter().enumerate() {
        let (plain, copy) = (plain(node), Route::Stay(node.no, node.door()));
        let next = &nodes[(at + 1) % nodes.len()];
        let (near, far) = (plain.clone(), Route::Stay(next.no, next.plain()));
        let (counted, follows) = (plain.clone(), Route::Follow(doors.clone()));
        let no = node.no;
        scope.spawn(move || strict::read_transactions(strict, plain));
        scope.spawn(move || strict::read_transactions(strict, copy));
        scope.spawn(move || strict::count(strict, &format!("plain{no}"), counted));
        scope.spawn(move || strict::count(strict, &format!("follows{no}"), follows));
        scope.spawn(move || shared::write_with_deadlines(strict, &no.to_string(), near, far));
    }
}

/// Waits until clients are answered.
fn until_answered(strict: &Strict) -> Result<()> {
    let (before, since) = (strict.account.answered(), Instant::now());
    while strict.account.answered() < before + 100 {
        if since.elapsed() > PATIENCE {
            bail!("clients are not answered any more");
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// Prints the table; true where it has nothing that must not be.
fn print(rows: &[Row]) -> bool {
    let mut table = Table::new(
        1,
        "fault | answered | longest wait, s | refused | unknown | lost | torn | stale | undone | audited | whole after, s",
    );
    for row in rows {
        let tally = &row.tally;
        let wrong = |wrong| tally.of(wrong).to_string();
        table.row(vec![
            row.scene.to_string(),
            tally.answered.to_string(),
            seconds(tally.longest),
            tally.refusals().to_string(),
            tally.unknown.to_string(),
            wrong(Wrong::Lost),
            wrong(Wrong::Torn),
            wrong(Wrong::Stale),
            wrong(Wrong::Undone),
            row.audited.to_string(),
            seconds(row.whole),
        ]);
    }
    print!("\n{}", table.terminal());
    let mut is_right = true;
    for Row { scene, tally, .. } in rows {
        for (code, count) in &tally.refused {
            println!("  {scene}: {count} × {code}");
        }
        let errors = tally.refusals() + tally.unknown;
        is_right &= tally.is_right() && (scene.allows_errors() || errors == 0);
    }
    println!(
        "\nWaits, refusals and unknown outcomes are those of clients of healthy nodes, and of clients that follow\n\
         the cluster. {}",
        if is_right {
            "Nothing was lost, torn, stale or undone."
        } else {
            "WRONG: see above."
        }
    );
    is_right
}
