//! `cargo xtask demo bank`: a bank at three nodes, whose accounts are spread over slots and nodes. Clients at the plain
//! ports make transfers, buy by card and audit, in transactions over nodes, while each fault happens in turn.
//! Money must be conserved to the cent at every audit, and each payment is executed as a whole or not at all.
//!
//! | module | concept |
//! |---|---|
//! | [`ledger`] | what was paid, and whether receipts and balances agree |
//! | [`clients`] | transfers, purchases, audits |
//! | [`teller`] | a client's connection |
//! | [`till`] | what clients share and count |
//! | [`books`] | what the cluster has when no client works |

pub mod books;
pub mod clients;
pub mod ledger;
pub mod teller;
pub mod till;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rufous_bench::table::Table;
use rufous_sim::engine::random::Random;

use crate::appends::{self, Lists, Transaction};
use crate::demo::disk;
use crate::demo::scenes::Scene;
use crate::nodes::{Node, Nodes, Plan};
use crate::space::{self, Host};
use ledger::{Payment, Wrong};
use teller::Teller;
use till::{Tally, Till};

const NODES: usize = 3;
/// Clients of each node that make transfers.
const TRANSFERS: usize = 2;
/// Payments have to be acknowledged again within so long after a fault.
const PATIENCE: Duration = Duration::from_secs(60);
/// Payments that are then waited for.
const AGAIN: u64 = 30;

/// What is to be shown.
#[derive(Clone, Debug)]
pub struct Bank {
    pub seed: u64,
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
    /// Until no node had an open transaction, once clients paused.
    settled: Option<Duration>,
    /// Transactions over lists whose history was judged.
    judged: usize,
}

/// The cluster and those that use it.
struct Branch<'a> {
    seed: u64,
    folder: &'a Path,
    till: &'a Till,
    plain: Vec<SocketAddr>,
    /// As the last look at them showed.
    balances: Vec<i64>,
}

impl Bank {
    /// True where no client saw what it must not see. To be called in namespaces of one's own.
    pub fn run(&self) -> Result<bool> {
        if let Some(obstacle) = disk::obstacle() {
            println!("skipped: {obstacle}");
            return Ok(true);
        }
        let mut folder = tempfile::Builder::new().prefix("rufous-bank-").tempdir()?;
        let outcome = self.run_in(folder.path());
        if !matches!(outcome, Ok(true)) {
            folder.disable_cleanup(true);
            println!(
                "the logs of the nodes and the payments are in {}\nagain: cargo xtask demo bank -- --seed {}",
                folder.path().display(),
                self.seed
            );
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
        println!(
            "Seed {}: three nodes, two copies of each key, {} accounts, {} of them cards, {} cents",
            self.seed,
            ledger::ALL,
            ledger::CARDS,
            ledger::opening().iter().sum::<i64>()
        );
        let mut nodes = Nodes::start(plan, NODES)?;
        nodes.until_whole()?;
        let till = Till::default();
        let mut branch = Branch {
            seed: self.seed,
            folder,
            till: &till,
            plain: nodes.all().iter().map(Node::plain).collect(),
            balances: ledger::opening(),
        };
        books::open(branch.plain[0])?;
        let rows = thread::scope(|scope| {
            start_clients(scope, &branch);
            let rows = self.scenes(&mut nodes, &mut branch);
            till.ends.store(true, Ordering::Relaxed);
            rows
        });
        let rows = rows.inspect_err(|_| println!("{}", nodes.last_words()))?;
        println!(
            "\nIn the end: {} cents",
            branch.balances.iter().sum::<i64>()
        );
        Ok(print(&rows))
    }

    fn is_wanted(&self, scene: Scene) -> bool {
        let name = scene.to_string();
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    fn scenes(&self, nodes: &mut Nodes, branch: &mut Branch<'_>) -> Result<Vec<Row>> {
        let mut wanted = Scene::OF_BANK.to_vec();
        wanted.retain(|scene| self.is_wanted(*scene));
        let all = Scene::OF_BANK.map(|scene| scene.to_string()).join("\n  ");
        ensure!(
            !wanted.is_empty(),
            "no scene has {} in its name:\n  {all}",
            self.only.join(" or ")
        );
        { wanted.into_iter() }
            .map(|scene| branch.play(scene, nodes))
            .collect()
    }
}

impl Branch<'_> {
    fn play(&mut self, scene: Scene, nodes: &mut Nodes) -> Result<Row> {
        println!("  {scene} …");
        self.till.set_still(scene.still());
        let lists = Lists::apart(&format!("lists {scene}"));
        let appends = appends::Clients::start(&self.plain, self.seed, lists);
        let happened = scene.happen(nodes, &AtomicBool::new(false));
        let whole = happened.and_then(|()| nodes.until_whole());
        let paid = self.until_paid();
        let histories = appends.finish()?;
        let whole = whole?;
        paid?;
        // From here on no client works.
        let closed = self.till.close();
        let settled = books::until_settled(&self.plain)?;
        if let Err(words) = &settled {
            self.till.on_wrong(Wrong::Unsettled, words.clone());
        }
        let payments = self.judge_payments()?;
        self.judge_lists(&histories)?;
        let tally = self.till.take_tally();
        for example in &tally.examples {
            println!("    WRONG {example}");
        }
        if !is_right(scene, &tally) {
            self.keep(scene, &payments, &histories)?;
        }
        self.till.set_still(&[]);
        drop(closed);
        Ok(Row {
            scene,
            tally,
            whole,
            settled: settled.ok(),
            judged: histories.len(),
        })
    }

    /// Waits until payments are acknowledged.
    fn until_paid(&self) -> Result<()> {
        let (before, since) = (self.till.done(), Instant::now());
        while self.till.done() < before + AGAIN {
            if since.elapsed() > PATIENCE {
                bail!("payments are not acknowledged any more");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn judge_payments(&mut self) -> Result<Vec<(Payment, Vec<Option<i64>>)>> {
        let payments = books::receipts(&self.plain, self.till.take_payments())?;
        let before = std::mem::take(&mut self.balances);
        for at in &self.plain {
            let after = books::balances(*at)?;
            let again = !self.balances.is_empty();
            if again && after == self.balances {
                continue;
            }
            for (wrong, words) in ledger::judge(&payments, &before, &after) {
                self.till
                    .on_wrong(wrong, format!("in the end at {at}: {words}"));
            }
            self.balances = after;
        }
        Ok(payments)
    }

    fn judge_lists(&self, histories: &[Transaction]) -> Result<()> {
        for wrong in appends::verdict::judge(histories)? {
            self.till.on_wrong(Wrong::Disordered, wrong);
        }
        Ok(())
    }

    /// Writes what clients did to files.
    fn keep(
        &self,
        scene: Scene,
        payments: &[(Payment, Vec<Option<i64>>)],
        histories: &[Transaction],
    ) -> Result<()> {
        let mut text = String::new();
        for (payment, receipts) in payments {
            writeln!(text, "{payment:?} receipts {receipts:?}")?;
        }
        let name = { scene.to_string() }.replace(|c: char| !c.is_alphanumeric(), "-");
        std::fs::write(self.folder.join(format!("{name}.payments")), text)?;
        let lines = appends::verdict::lines(histories);
        std::fs::write(self.folder.join(format!("{name}.lists.jsonl")), lines)?;
        Ok(())
    }
}

fn start_clients<'scope>(scope: &'scope Scope<'scope, '_>, branch: &Branch<'scope>) {
    let (till, seed) = (branch.till, branch.seed);
    for (at, plain) in branch.plain.iter().enumerate() {
        let node = at + 1;
        let teller = || Teller::new(till, node, *plain);
        let called = |name: String| {
            let random = Random::new(seed, &name);
            (name, random)
        };
        for no in 0..TRANSFERS {
            let (teller, called) = (teller(), called(format!("transfer{node}.{no}")));
            scope.spawn(move || clients::transfer(till, teller, called));
        }
        let (buyer, called) = (teller(), called(format!("card{node}")));
        scope.spawn(move || clients::buy(till, buyer, called));
        let auditor = teller();
        scope.spawn(move || clients::audit(till, auditor));
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// Whether nothing is wrong, and no client of a healthy node met an error that was not to be expected.
fn is_right(scene: Scene, tally: &Tally) -> bool {
    let has_errors = !scene.allows_errors() && tally.has_errors_beside(scene.sick());
    tally.wrong.is_empty() && !has_errors
}

/// Prints the table; true where it has nothing that must not be.
fn print(rows: &[Row]) -> bool {
    let mut table = Table::new(
        1,
        "fault | paid | declined | changed | audits | longest wait, s | errors | unknown | lost | torn | undue | \
         unbalanced | other wrong | lists | settled after, s | whole after, s",
    );
    for row in rows {
        let tally = &row.tally;
        let columns = [Wrong::Lost, Wrong::Torn, Wrong::Undue, Wrong::Unbalanced];
        let others = tally
            .wrong
            .iter()
            .filter(|(wrong, _)| !columns.contains(wrong));
        let mut cells = vec![
            row.scene.to_string(),
            tally.paid.to_string(),
            tally.declined.to_string(),
            tally.changed.to_string(),
            tally.audits.to_string(),
            seconds(tally.longest),
            tally.errors.values().sum::<u64>().to_string(),
            tally.unknown.to_string(),
        ];
        cells.extend(columns.map(|wrong| tally.of(wrong).to_string()));
        cells.push(others.map(|(_, count)| count).sum::<u64>().to_string());
        cells.push(row.judged.to_string());
        cells.push(row.settled.map_or("never".to_owned(), seconds));
        cells.push(seconds(row.whole));
        table.row(cells);
    }
    print!("\n{}", table.terminal());
    let mut all_right = true;
    for Row { scene, tally, .. } in rows {
        for ((node, kind), count) in &tally.errors {
            println!("  {scene}: {count} × {kind} at node {node}");
        }
        for (wrong, count) in &tally.wrong {
            println!("  {scene}: WRONG {count} × {wrong:?}");
        }
        all_right &= is_right(*scene, tally);
    }
    println!(
        "\n\"lists\" are transactions over lists of several nodes, whose history a checker of others judged.\n{}",
        if all_right {
            "Every audit was exact, every payment is whole or absent, and all histories are strictly serializable."
        } else {
            "WRONG: see above."
        }
    );
    all_right
}
