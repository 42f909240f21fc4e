//! `cargo xtask demo levels`: three nodes with a keyspace for each of the ten levels. In each, two clients work behind
//! pools over all nodes while one node is killed and started again; their history is judged by what the level promises. The
//! same clients work in the keyspace `eventual`, without tokens and `BEGIN`: that shows what the level is for.
//!
//! | module | concept |
//! |---|---|
//! | [`level`] | the levels: promises, and rules of a history |
//! | [`scene`] | two clients on one level's keys |
//! | [`pool`] | a client's connections, and tokens |
//! | [`sessions`], [`begun`] | what clients do |
//! | [`record`] | what they asked and were answered |
//! | [`rules`], [`texts`], [`isolation`] | judges: of sets by definition, of texts by the simulator's search, of transactions |
//! | [`quiet`] | what replicas have in the end |
//! | [`panel`] | what is printed |

pub mod begun;
pub mod isolation;
pub mod level;
pub mod panel;
pub mod pool;
pub mod quiet;
pub mod record;
pub mod rules;
pub mod scene;
pub mod sessions;
pub mod texts;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::Result;
use rufous_sim::engine::random::Random;

use crate::nodes::{Node, Nodes, Plan};
use crate::space::{self, Host};
use isolation::Outcome;
use level::{ALL, Kind};
use panel::Panel;
use pool::Door;
use quiet::Quiet;
use record::Deed;
use scene::{Clients, EVENTUAL, End, Scene};

const NODES: usize = 3;
/// Clients of a scene.
const CLIENTS: u64 = 2;
/// When a node is killed and when it is started again, in percent of the time.
const KILLED_AT: u32 = 35;
const STARTED_AT: u32 = 60;
/// The node that is further away from the others, and by how much, each way.
const FAR: usize = 3;
const DISTANCE: Duration = Duration::from_millis(20);
/// Between two lines about progress.
const NEWS: Duration = Duration::from_secs(5);

/// What is to be shown.
#[derive(Clone, Debug)]
pub struct Levels {
    pub seed: u64,
    /// How long clients work.
    pub time: Duration,
    pub workers: usize,
    pub rufous: PathBuf,
    /// Without tokens and `BEGIN`, to see that broken promises are found.
    pub is_careless: bool,
}

/// What clients of all scenes share.
pub struct Stage {
    /// A pool's connections: two to each worker.
    pub doors: Vec<Door>,
    ends: AtomicBool,
}

impl Stage {
    pub fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

impl Levels {
    /// True where every level has kept its promise. To be called in namespaces of one's own.
    pub fn run(&self) -> Result<bool> {
        let mut folder = tempfile::Builder::new()
            .prefix("rufous-levels-")
            .tempdir()?;
        let outcome = self.run_in(folder.path());
        if !matches!(outcome, Ok(true)) {
            folder.disable_cleanup(true);
            println!(
                "the logs of the nodes and the histories are in {}\nagain: cargo xtask demo levels -- --seed {} --seconds {}{}",
                folder.path().display(),
                self.seed,
                self.time.as_secs(),
                if self.is_careless { " --careless" } else { "" }
            );
        }
        outcome
    }

    fn run_in(&self, folder: &Path) -> Result<bool> {
        let mut hosts: Vec<_> = (1..=NODES).map(Host::of_node).collect();
        hosts.push(Host::of_etcd());
        space::make(&hosts)?;
        println!(
            "Seed {}: three nodes, one of them {} ms away; a keyspace for each of the ten levels, two clients in each",
            self.seed,
            DISTANCE.as_millis()
        );
        let plan = Plan {
            program: self.rufous.clone(),
            workers: self.workers,
            folder: folder.to_owned(),
            disks: false,
            copies: 2,
            keyspaces: level::configuration(),
        };
        let mut nodes = Nodes::start(plan, NODES)?;
        nodes.until_whole()?;
        nodes.delay(FAR, DISTANCE)?;
        let of = |node: &Node| Door {
            node: node.no,
            address: node.plain(),
        };
        let doors = nodes.all().iter().map(of);
        let doors = doors.flat_map(|door| std::iter::repeat_n(door, 2 * self.workers));
        let stage = Stage {
            doors: doors.collect(),
            ends: AtomicBool::new(false),
        };
        let scenes = self.play(&mut nodes, &stage)?;
        let mut quiet = Quiet::connect(&stage.doors)?;
        let settled = settle(&mut quiet, "last")?;
        println!(
            "  no client works any more: all replicas have all changes {:.2} s later",
            settled.as_secs_f64()
        );
        let look = |scene: Scene| {
            let end = scene.look(&mut quiet)?;
            Ok((scene, end))
        };
        let all: Result<Vec<_>> = scenes.into_iter().map(look).collect();
        show(&all?, folder)
    }

    /// Clients work while a node is killed and started again.
    fn play(&self, nodes: &mut Nodes, stage: &Stage) -> Result<Vec<Scene>> {
        let mut scenes = self.scenes();
        for scene in &mut scenes {
            scene.open(&stage.doors[0])?;
        }
        settle(&mut Quiet::connect(&stage.doors)?, "first")?;
        let happened = thread::scope(|scope| {
            self.start_clients(scope, stage, &scenes);
            let happened = self.happen(nodes, &scenes);
            stage.ends.store(true, Ordering::Relaxed);
            happened
        });
        happened.inspect_err(|_| println!("{}", nodes.last_words()))?;
        nodes.until_whole()?;
        Ok(scenes)
    }

    fn start_clients<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        stage: &'scope Stage,
        scenes: &'scope [Scene],
    ) {
        for scene in scenes {
            for no in 0..CLIENTS {
                // The same stream for the comparison.
                let random = Random::new(self.seed, &format!("{} {no}", scene.level.name));
                scope.spawn(move || match scene.level.kind {
                    Kind::Sessions(_) => sessions::work(stage, scene, no, random),
                    Kind::Transactions(_) => begun::work(stage, scene, random),
                });
            }
        }
    }

    /// Each level, and the same work at `eventual`.
    fn scenes(&self) -> Vec<Scene> {
        let clients = if self.is_careless {
            Clients::Careless
        } else {
            Clients::Right
        };
        let mut scenes = Vec::new();
        for level in &ALL {
            scenes.push(Scene::new(level, clients));
            if level.name != EVENTUAL {
                scenes.push(Scene::new(level, Clients::Comparison));
            }
        }
        scenes
    }

    fn happen(&self, nodes: &mut Nodes, scenes: &[Scene]) -> Result<()> {
        let began = Instant::now();
        let killed = 1 + Random::new(self.seed, "killed").index(NODES);
        wait(began, self.time * KILLED_AT / 100, scenes)?;
        nodes.kill(killed)?;
        println!(
            "  {:3} s: node {killed} is killed (SIGKILL)",
            began.elapsed().as_secs()
        );
        wait(began, self.time * STARTED_AT / 100, scenes)?;
        println!(
            "  {:3} s: node {killed} is started again",
            began.elapsed().as_secs()
        );
        nodes.start_again(killed)?;
        wait(began, self.time, scenes)?;
        nodes.all_run()
    }
}

fn settle(quiet: &mut Quiet, set: &str) -> Result<Duration> {
    let all = { ALL.iter() }.map(|level| quiet.settle(&format!("{}:{set}", level.name)));
    all.sum()
}

/// Waits until that time, and says how far clients are.
fn wait(began: Instant, until: Duration, scenes: &[Scene]) -> Result<()> {
    while began.elapsed() < until {
        let rest = until.saturating_sub(began.elapsed());
        thread::sleep(rest.min(NEWS));
        let done: usize = scenes.iter().map(|scene| scene.record.len()).sum();
        println!(
            "  {:3} s: {done} operations and transactions",
            began.elapsed().as_secs()
        );
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Judges and prints all; true where all promises are kept.
fn show(all: &[(Scene, End)], folder: &Path) -> Result<bool> {
    let mut broken = Vec::new();
    for (no, level) in ALL.iter().enumerate() {
        let of = |comparison: bool| {
            let is_it = |(scene, _): &&(Scene, End)| {
                scene.level == level && scene.is_comparison() == comparison
            };
            all.iter().find(is_it)
        };
        let Some(own) = of(false) else {
            continue;
        };
        let panel = panel(own, of(true));
        panel.print(no + 1);
        if !panel.is_kept() {
            broken.push(level.name);
            let path = folder.join(format!("{}.history", own.0.name()));
            std::fs::write(path, format!("{}{:#?}\n", own.0.record.lines(), own.1))?;
        }
    }
    if broken.is_empty() {
        println!("\nEvery level has kept its promise, and all replicas are equal.");
    } else {
        println!("\nWRONG: {} did not keep their promise.", broken.join(", "));
    }
    Ok(broken.is_empty())
}

/// `eventual` itself is compared with all session guarantees.
fn panel((scene, end): &(Scene, End), comparison: Option<&(Scene, End)>) -> Panel {
    let strongest = level::Level::of_name("causal").unwrap_or(scene.level);
    let (other, others_end, by) = match comparison {
        Some((other, end)) => (other, end, scene.level),
        None => (scene, end, strongest),
    };
    let (reads, writes) = match scene.level.kind {
        Kind::Sessions(_) => {
            let events = scene.record.events();
            let is_read = |deed: &Deed| matches!(deed, Deed::Got(_) | Deed::Members(_));
            let reads = events.iter().filter(|event| is_read(&event.deed)).count();
            (reads, events.len() - reads)
        }
        Kind::Transactions(_) => {
            let all = scene.record.transactions();
            let is_open = |outcome| outcome != Outcome::Committed;
            let open = all.iter().filter(|one| is_open(one.outcome)).count();
            (open, all.len() - open)
        }
    };
    Panel {
        level: scene.level,
        counts: scene.record.counts(),
        reads,
        writes,
        verdict: scene.judge(scene.level, end),
        odd: scene.record.odd(),
        eventual: (
            other.record.counts().operations,
            other.judge(by, others_end),
        ),
    }
}
