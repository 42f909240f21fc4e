//! `rufous backup`: its arguments, and what it says.

use super::fail;
use crate::backup::create::create;
use crate::backup::prune::prune;
use crate::backup::record::Record;
use crate::backup::restore::{restore, verify};
use crate::backup::server::Server;
use crate::backup::store::Store;
use crate::backup::{human, tell};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
A backup shows one instant of all workers, and is made while the node serves.
Files that a destination has already do not travel again. Destinations: a path,
file:///path, and, built with `--features cloud`, s3://bucket/path,
gs://bucket/path, az://container/path with credentials from the environment
(AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT, GOOGLE_SERVICE_ACCOUNT, …).

Exit code 0: done; 1: failed, or damaged; 2: wrong arguments.

Examples:
  rufous backup create --to /backups/rufous
  rufous backup list --from /backups/rufous
  rufous backup verify --from /backups/rufous
  rufous backup restore --from /backups/rufous --dir /var/lib/rufous-new
  rufous backup prune --from /backups/rufous --keep 7";

#[derive(Clone, Debug, Subcommand)]
pub(super) enum Backup {
    /// Make a backup of a running node
    Create(Create),
    /// Show the backups of a destination, oldest first
    List(From),
    /// Read a backup whole, and check that a node would start from it
    Verify(Chosen),
    /// Make a data folder of a backup
    Restore(Restore),
    /// Remove all backups but the newest; not while another is being made
    Prune(Prune),
}

#[derive(Clone, Debug, Args)]
pub(super) struct Create {
    /// The node
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    server: String,
    /// Its password
    #[arg(long, env = "RUFOUS_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Its data folder, on this machine [default: as the node says]
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// Where backups go
    #[arg(long, value_name = "DESTINATION")]
    to: String,
}

#[derive(Clone, Debug, Args)]
pub(super) struct From {
    /// Where backups are
    #[arg(long, value_name = "DESTINATION")]
    from: String,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Chosen {
    #[command(flatten)]
    at: From,
    /// Which one [default: the newest]
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Restore {
    #[command(flatten)]
    chosen: Chosen,
    /// The new data folder: missing or empty
    #[arg(long, value_name = "PATH")]
    dir: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Prune {
    #[command(flatten)]
    at: From,
    /// How many backups stay
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
}

pub(super) fn run(command: Backup) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(command)),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format!("{error:#}")),
    }
}

async fn carry_out(command: Backup) -> Result<()> {
    match command {
        Backup::Create(arguments) => make(arguments).await,
        Backup::List(at) => list(&Store::open(&at.from, false)?).await,
        Backup::Verify(chosen) => {
            let store = Store::open(&chosen.at.from, false)?;
            let record = choose(&store, chosen.backup).await?;
            verify(&store, &record)
                .await
                .with_context(|| format!("the backup {} is damaged", record.id))?;
            println!("{} is whole: {}", record.id, human(record.bytes()));
            Ok(())
        }
        Backup::Restore(arguments) => {
            let store = Store::open(&arguments.chosen.at.from, false)?;
            let record = choose(&store, arguments.chosen.backup).await?;
            restore(&store, &record, &arguments.dir)
                .await
                .with_context(|| format!("cannot restore {}", record.id))?;
            println!(
                "{} restored: rufous server --dir {}",
                record.id,
                arguments.dir.display()
            );
            Ok(())
        }
        Backup::Prune(arguments) => {
            let store = Store::open(&arguments.at.from, false)?;
            let pruned = prune(&store, arguments.keep as usize).await?;
            pruned
                .backups
                .iter()
                .for_each(|id| println!("removed {id}"));
            tell(format_args!(
                "{} backups and {} files ({}) removed",
                pruned.backups.len(),
                pruned.files,
                human(pruned.bytes)
            ));
            Ok(())
        }
    }
}

async fn make(arguments: Create) -> Result<()> {
    let mut server = Server::connect(&arguments.server, arguments.password.as_deref())?;
    let folder = match arguments.dir {
        Some(folder) => folder,
        None => {
            let told = PathBuf::from(server.folder()?);
            ensure!(
                told.is_absolute(),
                "the server's data folder is '{}', seen from where it was started: give it with --dir",
                told.display()
            );
            told
        }
    };
    ensure!(
        Path::new(&folder).is_dir(),
        "no data folder {} on this machine",
        folder.display()
    );
    let store = Store::open(&arguments.to, true)?;
    let created = create(&mut server, &folder, &store).await?;
    tell(format_args!(
        "{} of {} files were new: {} of {} travelled",
        created.sent_files,
        created.record.files.len(),
        human(created.sent_bytes),
        human(created.record.bytes())
    ));
    println!("{}", created.record.id);
    Ok(())
}

async fn list(store: &Store) -> Result<()> {
    let ids = store.ids().await?;
    let mut damaged = 0;
    for id in ids {
        match store.get_record(&id).await {
            Ok(record) => println!(
                "{id}\t{} files\t{}",
                record.files.len(),
                human(record.bytes())
            ),
            Err(error) => {
                damaged += 1;
                println!("{id}\tdamaged: {error:#}");
            }
        }
    }
    ensure!(damaged == 0, "{damaged} backups are damaged");
    Ok(())
}

async fn choose(store: &Store, id: Option<String>) -> Result<Record> {
    let id = match id {
        Some(id) => id,
        None => match store.ids().await?.pop() {
            Some(newest) => newest,
            None => bail!("there are no backups"),
        },
    };
    store.get_record(&id).await
}
