//! The command line of the `rufous` program.
//!
//! - [`arguments`]: settings as options, made of their table
//! - [`server`]: `rufous server`, from the settings to the end of the node
//! - [`check`]: `rufous check-config` and `rufous check-health`
//! - [`check_data`]: `rufous check-data`
//! - [`saves`]: `rufous saves`
//! - [`backup`]: `rufous backup`
//! - [`cluster`]: `rufous cluster`
//! - [`hidden`]: passwords of the command line
//! - [`logging`]: where logs go and how much of them
//! - [`signals`]: stopping and reopening the log
//! - [`banner`]: what a person at a terminal is told
//! - [`notify`]: telling systemd

mod arguments;
mod backup;
mod banner;
mod check;
mod check_data;
mod cluster;
mod hidden;
mod logging;
mod notify;
mod saves;
mod server;
mod signals;

use arguments::Arguments;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  rufous                              a node on 127.0.0.1:6379 with defaults
  rufous server --port 7000           the same on another port
  rufous server --config rufous.toml  settings from a file
  rufous server --help                all settings
  rufous cluster start                three nodes on this machine, as one cluster

Redis clients connect as they are: redis-cli set greeting hello";

const SERVER_EXAMPLES: &str = "\
Where settings come from, the last one that names a setting decides:
  1. defaults
  2. the TOML file of --config: the same names, all at top level (timeout = 300)
  3. environment variables: RUFOUS_ and the name in capitals (RUFOUS_TIMEOUT=300)
  4. the command line
`rufous check-config` with the same options shows what would be used and why.
CONFIG SET changes many of them while the node runs; nothing is written back.

Signals: SIGTERM and SIGINT stop the node after what is under way is answered (a
second one stops it at once, with exit code 1); SIGHUP opens the log file anew and loads certificates again.

Data is kept in --dir (./rufous-data by default): changes are logged there before
they are answered. For a cache without files: --appendonly no --save ''

Examples:
  rufous server --port 7000 --workers 2
      On loopback with two threads; see http://127.0.0.1:9121/ for metrics.
  RUFOUS_REQUIREPASS=secret rufous server --bind '*'
      For clients of other machines. Without a password protected mode turns
      them away, unless it is switched off: --protected-mode no
  rufous server --port 0 --unixsocket /run/rufous.sock --unixsocketperm 770
      For this machine only, without TCP.
  rufous server --config /etc/rufous/rufous.toml --log-format json
      As a service.";

const CHECK_CONFIG_EXAMPLES: &str = "\
Prints a configuration file of all settings in force, each with where it comes
from. Wrong settings are listed on standard error, with file and line; then the
exit code is 1.

Examples:
  rufous check-config --config rufous.toml
  RUFOUS_PORT=7000 rufous check-config --workers 2";

const CHECK_HEALTH_EXAMPLES: &str = "\
Asks /healthz on admin-port whether the node lives and all its workers answer.
Takes settings from the same places as the node, and so finds it by itself.
Exit code 0: healthy; 1: not, or not to be reached.

Examples:
  rufous check-health --admin-port 9121
  HEALTHCHECK CMD [\"rufous\", \"check-health\"]    (in a Dockerfile)";

/// A data store that speaks the Redis protocol, with one thread per core.
///
/// Without a subcommand a node starts with defaults.
#[derive(Debug, Parser)]
#[command(name = "rufous", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node
    #[command(after_help = SERVER_EXAMPLES)]
    Server(Arguments),
    /// Show the settings that a node would use and where each comes from
    #[command(after_help = CHECK_CONFIG_EXAMPLES)]
    CheckConfig(Arguments),
    /// Ask a running node whether it is healthy
    #[command(after_help = CHECK_HEALTH_EXAMPLES)]
    CheckHealth(Arguments),
    /// Look at a data folder for damage, and repair it
    #[command(after_help = check_data::EXAMPLES)]
    CheckData(check_data::CheckData),
    /// Show earlier saves that a node has kept, and go back to one
    #[command(subcommand, after_help = saves::EXAMPLES)]
    Saves(saves::Saves),
    /// Back up a running node, and restore backups
    #[command(subcommand, after_help = backup::EXAMPLES)]
    Backup(backup::Backup),
    /// Run a cluster on this machine, and look after clusters
    #[command(subcommand, after_help = cluster::EXAMPLES)]
    Cluster(cluster::Cluster),
}

/// Runs the program.
pub fn main() -> ExitCode {
    hidden::hide_passwords();
    match Cli::parse().command {
        None => server::run(Arguments::default(), true),
        Some(Command::Server(arguments)) => server::run(arguments, false),
        Some(Command::CheckConfig(arguments)) => check::config(arguments),
        Some(Command::CheckHealth(arguments)) => check::health(arguments),
        Some(Command::CheckData(arguments)) => check_data::run(arguments),
        Some(Command::Saves(command)) => saves::run(command),
        Some(Command::Backup(command)) => backup::run(command),
        Some(Command::Cluster(command)) => cluster::run(command),
    }
}

/// Says on standard error why the program ends without having done its work.
fn fail(why: impl std::fmt::Display) -> ExitCode {
    eprintln!("rufous: {why}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn examples_in_help_are_valid() {
        let texts = [
            EXAMPLES,
            SERVER_EXAMPLES,
            CHECK_CONFIG_EXAMPLES,
            CHECK_HEALTH_EXAMPLES,
            check_data::EXAMPLES,
            saves::EXAMPLES,
            backup::EXAMPLES,
            cluster::EXAMPLES,
        ];
        let mut seen = 0;
        for line in texts.iter().flat_map(|text| text.lines()) {
            let Some(at) = line.find("rufous ") else {
                continue;
            };
            if !line.starts_with("  ")
                || !line[..at]
                    .trim()
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || "_=0123456789secret".contains(c))
            {
                continue;
            }
            let words = line[at..].split("  ").next().unwrap_or_default();
            let words = words.split_whitespace().map(|word| word.trim_matches('\''));
            if let Err(error) = Cli::try_parse_from(words) {
                assert_eq!(
                    error.kind(),
                    clap::error::ErrorKind::DisplayHelp,
                    "{line}: {error}"
                );
            }
            seen += 1;
        }
        assert!(seen >= 9, "{seen}");
    }
}
