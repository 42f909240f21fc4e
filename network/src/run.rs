//! One run: nodes are started, faults happen one after the other under clients, everything
//! heals after each, and in the end all that clients saw is judged.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::appends::{self, Came, Lists, Transaction};
use crate::clients::{Clients, Seen};
use crate::demo::disk;
use crate::faults::{self, Means, Trouble};
use crate::history::History;
use crate::lattice::clients::Door;
use crate::nodes::{Node, Nodes, Plan};
use crate::space::{self, Host};
use crate::{filters, history, lattice, verdict};

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
    /// Copies of each slot.
    pub copies: usize,
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
        let mut hosts: Vec<_> = (1..=self.nodes).map(Host::of_node).collect();
        hosts.push(Host::of_etcd());
        space::make(&hosts)?;
        let tools = filters::tools(&hosts[0]);
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
        let disks = has_disks();
        let plan = Plan {
            program: self.rufous.clone(),
            workers: self.workers,
            folder: folder.to_owned(),
            disks,
            copies: self.copies,
            keyspaces: lattice::CONFIGURATION.to_owned(),
        };
        let mut nodes = Nodes::start(plan, self.nodes)?;
        let took = nodes.until_whole()?;
        println!(
            "  all slots have all copies after {:.1} s",
            took.as_secs_f64()
        );
        let shared = lattice::clients::Clients::start(&doors(&nodes), self.seed);
        let plain: Vec<_> = nodes.all().iter().map(Node::plain).collect();
        let doors: Vec<_> = nodes.all().iter().map(Node::door).collect();
        let appends = appends::Clients::start(&doors, self.seed, Lists::of_one_slot());
        let apart = appends::Clients::start(&plain, self.seed, Lists::apart("apart"));
        let clients = Clients::start(plain, doors, self.seed);
        let means = Means {
            nodes: self.nodes,
            tools: tools.clone(),
            disks,
            at_once: self.copies - 1,
        };
        let rounds = faults::plan(self.seed, self.rounds, &means);
        let rounds = rounds.iter().enumerate().skip(self.skip);
        let happened = { rounds }.try_for_each(|(at, round)| {
            print!("  {:3}. {round}", at + 1);
            std::io::stdout().flush()?;
            happen(round, &mut nodes, &clients, &shared).with_context(|| round.to_string())
        });
        let (seen, transactions) = (clients.finish()?, appends.finish()?);
        let apart = apart.finish()?;
        // From here on nobody works on strict keys.
        let happened = happened.and_then(|()| {
            let last = faults::last(self.seed, &tools);
            print!("  last. {last}");
            std::io::stdout().flush()?;
            happen_alone(&last, &mut nodes, &shared).with_context(|| last.to_string())
        });
        let shared = if happened.is_ok() {
            shared.finish(self.workers)?
        } else {
            shared.stop()?
        };
        let seen = All::of(seen, shared);
        let histories = [("one slot", &transactions), ("several nodes", &apart)];
        self.judge(&seen, &histories, happened)
    }

    fn judge(
        &self,
        seen: &All,
        histories: &[(&str, &Vec<Transaction>)],
        happened: Result<()>,
    ) -> Result<bool> {
        let mut fine = seen.judge();
        for (lists, transactions) in histories {
            fine &= judge_transactions(lists, transactions)?;
        }
        if happened.is_err() || !fine {
            self.keep(&seen.history, histories)?;
        }
        happened.map(|()| fine)
    }

    fn keep(&self, history: &History, histories: &[(&str, &Vec<Transaction>)]) -> Result<()> {
        std::fs::create_dir_all(&self.keep)?;
        let path = self.keep.join(format!("seed-{}.history", self.seed));
        history::write(&path, history)?;
        println!("  the history is in {}", path.display());
        for (lists, transactions) in histories {
            let name = lists.replace(' ', "-");
            let name = format!("seed-{}.{name}.jsonl", self.seed);
            let path = self.keep.join(name);
            std::fs::write(&path, appends::verdict::lines(transactions))?;
            println!(
                "  that of transactions over lists of {lists} is in {}",
                path.display()
            );
        }
        Ok(())
    }
}

/// Both endpoints of all nodes.
fn doors(nodes: &Nodes) -> Vec<Door> {
    let of = |node: &Node| {
        let at = |address| Door {
            node: node.no,
            address,
        };
        [at(node.plain()), at(node.door())]
    };
    nodes.all().iter().flat_map(of).collect()
}

/// Whether nodes can have disks of their own.
fn has_disks() -> bool {
    match disk::obstacle() {
        None => true,
        Some(obstacle) => {
            println!("  without faults of disks: {obstacle}");
            false
        }
    }
}

/// What all clients have seen.
struct All {
    history: History,
    errors: BTreeMap<String, u64>,
    /// Answers that make no sense.
    odd: Vec<String>,
}

impl All {
    fn of(registers: Seen, shared: lattice::clients::Seen) -> Self {
        Self {
            history: History {
                operations: registers.history,
                acts: shared.acts,
                windows: shared.windows,
            },
            errors: { registers.errors.into_iter() }
                .chain(shared.errors)
                .collect(),
            odd: [registers.odd, shared.odd].concat(),
        }
    }

    /// Says what it is; true where nothing of it is wrong.
    fn judge(&self) -> bool {
        let operations = self.history.operations.iter();
        let acknowledged = operations.filter(|one| one.came == history::Came::Done);
        println!(
            "  {} writes of registers acknowledged",
            acknowledged.count()
        );
        for (kind, count) in &self.errors {
            println!("  {count} × {kind}");
        }
        for odd in self.odd.iter().take(SHOWN) {
            println!("  WRONG {odd}");
        }
        judge(&self.history, SHOWN) && self.odd.is_empty()
    }
}

/// Judges a history, and says what it is; true where nothing of it is wrong.
pub fn judge(history: &History, shown: usize) -> bool {
    let registers = verdict::judge(&history.operations);
    let shared = lattice::verdict::judge(&history.acts, &history.windows);
    println!(
        "  {} operations on {} registers: {} wrong, {} could not be judged",
        history.operations.len(),
        registers.registers,
        registers.wrong.len(),
        registers.unsure
    );
    println!(
        "  {} operations on lattice keys: {} keys alike in the end, {} wrong; \
         {} answered while faults lasted, {} of them by nodes cut off from all others, \
         after {:.1} s at most",
        history.acts.len(),
        shared.alike,
        shared.wrong.len(),
        shared.served,
        shared.served_alone,
        Duration::from_micros(shared.longest_us).as_secs_f64()
    );
    for wrong in registers.wrong.iter().take(shown) {
        println!("  WRONG {wrong}");
    }
    for wrong in shared.wrong.iter().take(shown) {
        println!("  WRONG {wrong}");
    }
    registers.wrong.is_empty() && registers.unsure == 0 && shared.wrong.is_empty()
}

/// Judges transactions over lists, and says what it is; true where nothing of it is wrong.
fn judge_transactions(lists: &str, transactions: &[Transaction]) -> Result<bool> {
    let of = |came| transactions.iter().filter(|one| one.came == came).count();
    let wrong = appends::verdict::judge(transactions)?;
    println!(
        "  {} transactions over lists of {lists} acknowledged, {} refused, {} with an unknown outcome: {}",
        of(Came::Done),
        of(Came::NotDone),
        of(Came::Unknown),
        if wrong.is_empty() {
            "strictly serializable"
        } else {
            "WRONG"
        }
    );
    for wrong in wrong.iter().take(SHOWN) {
        println!("  WRONG {wrong}");
    }
    Ok(wrong.is_empty())
}

/// One fault, until nothing is left of it.
fn happen(
    round: &Trouble,
    nodes: &mut Nodes,
    clients: &Clients,
    shared: &lattice::clients::Clients,
) -> Result<()> {
    let before = clients.done();
    let (answers, acted) = act(round, nodes, shared);
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
        ": {during} writes and {answers} answers of lattice keys meanwhile, all copies after {:.1} s",
        whole.as_secs_f64()
    );
    Ok(())
}

/// Likewise, when only lattice keys are worked on.
fn happen_alone(
    round: &Trouble,
    nodes: &mut Nodes,
    shared: &lattice::clients::Clients,
) -> Result<()> {
    let (answers, acted) = act(round, nodes, shared);
    acted.with_context(|| nodes.last_words())?;
    let whole = nodes.until_whole()?;
    println!(
        ": {answers} answers of lattice keys meanwhile, all copies after {:.1} s",
        whole.as_secs_f64()
    );
    Ok(())
}

/// Has a fault happen; how much nodes that were reached have answered of lattice keys.
fn act(
    round: &Trouble,
    nodes: &mut Nodes,
    shared: &lattice::clients::Clients,
) -> (u64, Result<()>) {
    let reached = round.reached(nodes.all().len());
    let before = shared.answers(&reached);
    let acted = round.happen(nodes, |time| shared.hold(time, &reached));
    (shared.answers(&reached) - before, acted)
}
