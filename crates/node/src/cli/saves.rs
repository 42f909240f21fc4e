//! `rufous saves`: the earlier saves that a node has kept (`snapshot-retention`),
//! and going back to one of them.

use super::arguments::Arguments;
use super::check_data::DataDir;
use super::{check, fail};
use crate::backup::human;
use crate::backup::record::stamp;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use rufous::lock_data_dir;
use rufous_base::disk::FileName;
use rufous_kernel::durable::check::{
    Depth, Return, check as look, earlier_save, earlier_saves, plan_return,
};
use rufous_kernel::durable::file::{MANIFEST, MANIFEST_NEXT};
use rufous_server::cluster::identity::note_restored;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
A node with `snapshot-retention` above 0 keeps so many saves before the last one
in its data folder (--dir). Each is the data of one instant, under a number.

Going back to one needs a node that does not run. The present data is put into a
folder within the data folder first (replaced-N), from which a node starts as well.

Exit code 0: done; 1: failed; 2: wrong arguments.

Examples:
  rufous saves list --dir /var/lib/rufous
  rufous saves restore 12 --dir /var/lib/rufous";

#[derive(Clone, Debug, Subcommand)]
pub(super) enum Saves {
    /// Show the earlier saves, oldest first
    List(List),
    /// Go back to an earlier save, keeping a copy of the present data
    Restore(Restore),
}

#[derive(Clone, Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    settings: Arguments,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Restore {
    /// The number of the save, as `rufous saves list` shows it
    #[arg(value_name = "SAVE")]
    number: u64,
    #[command(flatten)]
    settings: Arguments,
}

pub(super) fn run(command: Saves) -> ExitCode {
    let settings = match &command {
        Saves::List(list) => &list.settings,
        Saves::Restore(restore) => &restore.settings,
    };
    let Some(effective) = check::load(settings.clone()) else {
        return ExitCode::FAILURE;
    };
    let dir = PathBuf::from(&effective.config.dir);
    let done = match command {
        Saves::List(_) => list(&dir),
        Saves::Restore(restore) => go_back(&dir, restore.number),
    };
    let printed = done.and_then(|text| Ok(std::io::stdout().write_all(text.as_bytes())?));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format!("{error:#}")),
    }
}

/// A node may run meanwhile: what it removes is not shown, or shown as missing.
fn list(dir: &Path) -> Result<String> {
    ensure!(dir.is_dir(), "no data folder {}", dir.display());
    let saves = earlier_saves(&mut DataDir::new(dir), Depth::Names)
        .with_context(|| format!("cannot read {}", dir.display()))?;
    let mut text = String::new();
    for save in saves {
        let what = match (&save.damage, &save.manifest) {
            (Some(damage), _) => format!("damaged: {damage}"),
            (None, Some(manifest)) => format!(
                "{}\t{} keys\t{}",
                stamp(manifest.saved_ms),
                save.keys(),
                human(save.bytes())
            ),
            (None, None) => continue,
        };
        text += &format!("{}\t{what}\n", save.generation);
    }
    Ok(text)
}

/// Whatever breaks off leaves the present data in place, or the save, and in
/// both cases a folder with the present data once that has its name.
fn go_back(dir: &Path, generation: u64) -> Result<String> {
    ensure!(dir.is_dir(), "no data folder {}", dir.display());
    // Held to the end: no node may start meanwhile.
    let _lock = lock_data_dir(dir)?;
    let mut folder = DataDir::new(dir);
    let cannot_read = || format!("cannot read {}", dir.display());
    let Some(chosen) = earlier_save(&mut folder, generation).with_context(cannot_read)? else {
        bail!("no earlier save {generation} in {}", dir.display());
    };
    if let Some(damage) = &chosen.damage {
        bail!("the save {generation} is damaged: {damage}");
    }
    let back = plan_return(&mut folder, &chosen).with_context(cannot_read)?;
    let Some(back) = back else {
        bail!("the save {generation} is damaged");
    };
    let aside = put_aside(dir, &back).context("cannot copy the present data")?;
    note_restored(dir).context("cannot note that the data is of an earlier time")?;
    replace(dir, &back).with_context(|| format!("the present data is in {}", aside.display()))?;
    let report = look(&mut DataDir::new(dir), 0).with_context(cannot_read)?;
    if let Some(damage) = report.damage.first() {
        bail!("a node does not start on it: {damage}");
    }
    Ok(format!(
        "The data is that of save {generation} again: {} keys.\n\
         What was there before is in {}: a node starts from it with --dir; remove it when it is not needed.\n",
        chosen.keys(),
        aside.display()
    ))
}

/// Puts the present data into a folder of its own. Snapshots do not change any
/// more and need no room of their own; logs are copied.
fn put_aside(dir: &Path, back: &Return) -> Result<PathBuf> {
    let free = |n: &u32| !dir.join(format!("replaced-{n}")).exists();
    let Some(number) = (1..u32::MAX).find(free) else {
        bail!(
            "too many replaced-* folders in {}: remove some",
            dir.display()
        );
    };
    let aside = dir.join(format!("replaced-{number}"));
    let part = dir.join(format!("replaced-{number}.part"));
    match fs::remove_dir_all(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    DirBuilder::new().mode(0o700).create(&part)?;
    for file in &back.snapshots {
        let (from, to) = (dir.join(&**file), part.join(&**file));
        if fs::hard_link(&from, &to).is_err() {
            copy(&from, &to)?;
        }
    }
    let manifest = FileName::from(MANIFEST);
    for file in back.logs.iter().chain([&manifest]) {
        let (from, to) = (dir.join(&**file), part.join(&**file));
        if from.exists() {
            copy(&from, &to)?;
        }
    }
    sync(&part)?;
    fs::rename(&part, &aside)?;
    sync(dir)?;
    Ok(aside)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("{} to {}", from.display(), to.display());
    fs::copy(from, to).with_context(cannot)?;
    File::open(to)?.sync_all()?;
    Ok(())
}

/// Makes the save the present data. Files go only once the manifest, and its
/// name, are there to stay; one that stays behind is removed by the next start.
fn replace(dir: &Path, back: &Return) -> Result<()> {
    let next = dir.join(MANIFEST_NEXT);
    fs::write(&next, back.manifest.encode())?;
    File::open(&next)?.sync_all()?;
    fs::rename(&next, dir.join(MANIFEST))?;
    sync(dir)?;
    let remove = |file: &FileName| fs::remove_file(dir.join(&**file));
    back.copies.iter().try_for_each(remove)?;
    sync(dir)?;
    back.logs
        .iter()
        .chain(&back.snapshots)
        .try_for_each(remove)?;
    sync(dir)
}

fn sync(dir: &Path) -> Result<()> {
    Ok(File::open(dir)?.sync_all()?)
}
