//! One run: nodes are started, faults happen one after the other under clients, everything
//! heals after each, and in the end all that clients saw is judged.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::clients::{Clients, Seen};
use crate::faults::{self, Round};
use crate::nodes::{Node, Nodes, Plan};
use crate::space::{self, Place};
use crate::{filters, history, verdict};

/// Wrong things that are shown.
const SHOWN: usize = 5;
/// After a fault clients must have a write acknowledged within so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Run {
    pub seed: u64,
    pub rounds: usize,
    /// Faults at the beginning that do not happen.
    pub skip: usize,
    pub nodes: usize,
    pub workers: usize,
    /// The server.
    pub rufous: PathBuf,
    /// Where histories of runs that fail are kept.
    pub keep: PathBuf,
}

impl Run {
    /// True where nothing is wrong. To be called in namespaces of one's own.
    pub fn run(&self) -> Result<bool> {
        let mut folder = tempfile::Builder::new()
            .prefix("rufous-network-")
            .tempdir()?;
        let outcome = self.run_in(folder.path());
        if !matches!(outcome, Ok(true)) {
            folder.disable_cleanup(true);
            println!(
                "seed {} failed; what nodes said and kept is in {}",
                self.seed,
                folder.path().display()
            );
        }
        outcome
    }

    fn run_in(&self, folder: &Path) -> Result<bool> {
        let mut places: Vec<_> = (1..=self.nodes).map(Place::of_node).collect();
        places.push(Place::of_etcd());
        space::make(&places)?;
        let tools = filters::tools(&places[0]);
        println!(
            "seed {}: {} nodes in namespaces of their own, packets dropped by {}",
            self.seed,
            self.nodes,
            tools
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" and ")
        );
        let plan = Plan {
            program: self.rufous.clone(),
            workers: self.workers,
            folder: folder.to_owned(),
        };
        let mut nodes = Nodes::start(plan, self.nodes)?;
        let took = nodes.until_whole()?;
        println!(
            "  all slots have all copies after {:.1} s",
            took.as_secs_f64()
        );
        let plain = nodes.all().iter().map(Node::plain).collect();
        let doors = nodes.all().iter().map(Node::door).collect();
        let clients = Clients::start(plain, doors, self.seed);
        let rounds = faults::plan(self.seed, self.rounds, self.nodes, &tools);
        let rounds = rounds.iter().enumerate().skip(self.skip);
        let happened = { rounds }.try_for_each(|(at, round)| {
            print!("  {:3}. {round}", at + 1);
            std::io::stdout().flush()?;
            happen(round, &mut nodes, &clients).with_context(|| round.to_string())
        });
        let seen = clients.finish()?;
        let fine = judge(&seen);
        if happened.is_err() || !fine {
            self.keep(&seen)?;
        }
        happened.map(|()| fine)
    }

    fn keep(&self, seen: &Seen) -> Result<()> {
        std::fs::create_dir_all(&self.keep)?;
        let path = self.keep.join(format!("seed-{}.history", self.seed));
        history::write(&path, &seen.history)?;
        println!("  the history is in {}", path.display());
        Ok(())
    }
}

/// Says what clients saw; true where nothing of it is wrong.
fn judge(seen: &Seen) -> bool {
    let verdict = verdict::judge(&seen.history);
    let acknowledged = seen.history.iter();
    let acknowledged = acknowledged.filter(|one| one.came == history::Came::Done);
    println!(
        "  {} operations on {} registers, {} writes acknowledged",
        seen.history.len(),
        verdict.registers,
        acknowledged.count()
    );
    for (kind, count) in &seen.errors {
        println!("  {count} × {kind}");
    }
    if verdict.unsure > 0 {
        println!("  {} registers could not be judged", verdict.unsure);
    }
    for wrong in seen.odd.iter().chain(&verdict.wrong).take(SHOWN) {
        println!("  WRONG {wrong}");
    }
    seen.odd.is_empty() && verdict.wrong.is_empty() && verdict.unsure == 0
}

/// One fault, until nothing is left of it.
fn happen(round: &Round, nodes: &mut Nodes, clients: &Clients) -> Result<()> {
    let before = clients.done();
    let acted = round.happen(nodes);
    let during = clients.done() - before;
    acted?;
    let whole = nodes.until_whole()?;
    let (healed, since) = (clients.done(), Instant::now());
    while clients.done() == healed {
        if since.elapsed() > PATIENCE {
            bail!("no write is acknowledged any more:\n{}", nodes.last_words());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!(
        ": {during} writes meanwhile, all copies after {:.1} s",
        whole.as_secs_f64()
    );
    Ok(())
}
