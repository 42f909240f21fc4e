//! `rufous-network`, as `cargo xtask network` starts it.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use rufous_network::bank::Bank;
use rufous_network::demo::Demo;
use rufous_network::levels::Levels;
use rufous_network::run::{self, Run};
use rufous_network::{delay, history, space};

#[derive(Parser)]
#[command(
    name = "rufous-network",
    about = "Runs clusters in network namespaces, breaks their network, and judges what clients saw"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
struct Options {
    /// What goes wrong, and when [default: by the time of day]
    #[arg(long)]
    seed: Option<u64>,
    /// Faults, one after the other
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Leave out so many of them at the beginning
    #[arg(long, default_value_t = 0)]
    skip: usize,
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=9))]
    nodes: u8,
    /// Workers of each node
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Copies of each slot; with three, two nodes are in trouble at once at times
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    copies: u8,
    /// Rufous's binary [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    rufous: Option<PathBuf>,
    /// Folder for histories of runs that fail
    #[arg(long, value_name = "PATH", default_value = "target/network")]
    keep: PathBuf,
}

#[derive(Args)]
struct DemoOptions {
    /// Workers of each node
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Rufous's binary [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    rufous: Option<PathBuf>,
    /// Only faults whose name has this in it; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
}

#[derive(Args)]
struct BankOptions {
    #[command(flatten)]
    demo: DemoOptions,
    /// Which payments are made, and which lists are read [default: by the time of day]
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Args)]
struct LevelsOptions {
    /// What clients do, and when they take other connections [default: by the time of day]
    #[arg(long)]
    seed: Option<u64>,
    /// How long clients work
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(4..))]
    seconds: u64,
    /// Workers of each node
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Rufous's binary [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    rufous: Option<PathBuf>,
    /// Have clients of all levels do without tokens and BEGIN, to see that this is found: the exit code is 1 then
    #[arg(long)]
    careless: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Say what keeps this machine from it; nothing where it can
    Obstacle,
    /// Judge a history that was kept
    Judge { file: PathBuf },
    /// Pass on connections with a delay; `run` starts it
    #[command(hide = true)]
    Delay { listen: SocketAddr, to: SocketAddr },
    /// Each fault in turn under transactions, counters and lattice writes, and a table of what clients saw
    Faults {
        #[command(flatten)]
        demo: DemoOptions,
    },
    /// The demonstration itself, in namespaces that are made already
    #[command(hide = true)]
    FaultsInside {
        #[command(flatten)]
        demo: DemoOptions,
    },
    /// Each fault in turn under transfers, purchases by card and audits, and a table of what clients saw
    Bank {
        #[command(flatten)]
        bank: BankOptions,
    },
    /// The bank itself, in namespaces that are made already
    #[command(hide = true)]
    BankInside {
        #[command(flatten)]
        bank: BankOptions,
    },
    /// A panel for each level of keyspaces: what it promises, what clients saw while a node was killed, what eventual showed
    Levels {
        #[command(flatten)]
        levels: LevelsOptions,
    },
    /// The levels themselves, in namespaces that are made already
    #[command(hide = true)]
    LevelsInside {
        #[command(flatten)]
        levels: LevelsOptions,
    },
    /// The run itself, in namespaces that are made already
    #[command(hide = true)]
    Inside {
        #[command(flatten)]
        options: Options,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => start(&cli.options),
        Some(Command::Obstacle) => {
            if let Some(obstacle) = space::obstacle() {
                println!("{obstacle}");
            }
            Ok(true)
        }
        Some(Command::Judge { file }) => judge(&file),
        Some(Command::Delay { listen, to }) => delay::serve(listen, to).map(|()| true),
        Some(Command::Inside { options }) => inside(options),
        Some(Command::Faults { .. }) => start_again("faults-inside", 1),
        Some(Command::FaultsInside { demo }) => faults(demo),
        Some(Command::Bank { .. }) => start_again("bank-inside", 1),
        Some(Command::BankInside { bank }) => open_bank(bank),
        Some(Command::Levels { .. }) => start_again("levels-inside", 1),
        Some(Command::LevelsInside { levels }) => show_levels(levels),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// In namespaces of its own, or not at all.
fn start(options: &Options) -> Result<bool> {
    if let Some(obstacle) = space::obstacle() {
        println!("skipped: {obstacle}");
        return Ok(true);
    }
    let seed = options.seed.unwrap_or_else(of_today);
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    words.insert(0, "inside".to_owned());
    if options.seed.is_none() {
        words.extend(["--seed".to_owned(), seed.to_string()]);
    }
    let status = space::again(&std::env::current_exe()?, &words)?;
    if !status.success() {
        println!("again: cargo xtask network --seed {seed}");
    }
    Ok(status.success())
}

/// The same arguments after another command, in namespaces of its own.
fn start_again(command: &str, skip: usize) -> Result<bool> {
    if let Some(obstacle) = space::obstacle() {
        println!("skipped: {obstacle}");
        return Ok(true);
    }
    let mut words: Vec<String> = std::env::args().skip(1 + skip).collect();
    words.insert(0, command.to_owned());
    Ok(space::again(&std::env::current_exe()?, &words)?.success())
}

fn faults(options: DemoOptions) -> Result<bool> {
    let demo = Demo {
        workers: options.workers,
        rufous: server(options.rufous)?,
        only: options.only,
    };
    demo.run()
}

fn open_bank(options: BankOptions) -> Result<bool> {
    let bank = Bank {
        seed: options.seed.unwrap_or_else(of_today),
        workers: options.demo.workers,
        rufous: server(options.demo.rufous)?,
        only: options.demo.only,
    };
    bank.run()
}

fn show_levels(options: LevelsOptions) -> Result<bool> {
    let levels = Levels {
        seed: options.seed.unwrap_or_else(of_today),
        time: Duration::from_secs(options.seconds),
        workers: options.workers,
        rufous: server(options.rufous)?,
        is_careless: options.careless,
    };
    levels.run()
}

/// A seed by the time of day.
fn of_today() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

fn server(given: Option<PathBuf>) -> Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("rufous");
    let rufous = given.unwrap_or(beside);
    { rufous.canonicalize() }
        .with_context(|| format!("no server at {}: build it first", rufous.display()))
}

fn inside(options: Options) -> Result<bool> {
    let rufous = server(options.rufous)?;
    let run = Run {
        seed: options.seed.context("a seed")?,
        rounds: options.rounds,
        skip: options.skip,
        nodes: usize::from(options.nodes),
        workers: options.workers,
        copies: usize::from(options.copies),
        rufous,
        keep: options.keep,
    };
    run.run()
}

fn judge(file: &std::path::Path) -> Result<bool> {
    Ok(run::judge(&history::read(file)?, usize::MAX))
}
