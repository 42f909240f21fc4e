//! `rufous check-data`: what a data folder holds, what of it is damaged, and
//! repairs that keep a copy of whatever they change.

use super::arguments::Arguments;
use super::{check, fail};
use clap::Args;
use rufous::{DirError, lock_data_dir};
use rufous_base::disk::FileInfo;
use rufous_kernel::durable::check::{FileChange, Repair, Report, Source, check as look};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
Reads all files of the data folder (--dir) of a node that does not run, and says
of each what it holds and what is damaged. Exit code 0: a node would start on
it; 1: it would not.

With --repair each damaged file is cut where the damage begins, and the others
so that all agree; what is given up is said. Before anything is changed, copies
of the files concerned are made beside them: NAME.damaged-N.

Examples:
  rufous check-data --dir /var/lib/rufous
  rufous check-data --config /etc/rufous/rufous.toml --repair";

/// What `rufous check-data` takes.
#[derive(Clone, Debug, Args)]
pub(super) struct CheckData {
    /// Make a start possible, giving up no more than needed; copies are kept
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    settings: Arguments,
}

pub(super) fn run(arguments: CheckData) -> ExitCode {
    let Some(effective) = check::load(arguments.settings) else {
        return ExitCode::FAILURE;
    };
    let dir = PathBuf::from(&effective.config.dir);
    let mut out = String::new();
    let result = check_dir(&dir, arguments.repair, &mut out);
    if let Err(error) = io::stdout().write_all(out.as_bytes()) {
        return fail(format!("cannot print: {error}"));
    }
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => fail(why),
    }
}

/// Checks, and repairs if so told. Returns whether a node would start.
fn check_dir(dir: &Path, repair: bool, out: &mut String) -> Result<bool, String> {
    if !dir.is_dir() {
        return Err(format!("no data folder {}", dir.display()));
    }
    // Held to the end: no node may start meanwhile.
    let _lock = match lock_data_dir(dir) {
        Ok(lock) => Some(lock),
        // A folder that cannot be written to can still be looked at.
        Err(DirError::Write { .. } | DirError::Owner { .. }) if !repair => None,
        Err(error) => return Err(error.to_string()),
    };
    let mut folder = DataDir::new(dir);
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| error.to_string())?;
    let seed = u64::from_le_bytes(seed);
    let cannot_read = |error: io::Error| format!("cannot read {}: {error}", dir.display());
    let report = look(&mut folder, seed).map_err(cannot_read)?;
    describe(&report, out);
    if report.is_fine() {
        *out += "A node starts on this.\n";
        return Ok(true);
    }
    let Some(changes) = report.repair.filter(|_| repair) else {
        *out += match repair {
            true => "This cannot be repaired.\n",
            false => "A node does not start on this.\n",
        };
        return Ok(false);
    };
    let doubted = rufous_server::cluster::past::doubt(dir);
    doubted.map_err(|error| format!("cannot repair: {error}"))?;
    let copies = mend(dir, &changes).map_err(|error| format!("cannot repair: {error}"))?;
    for copy in copies {
        *out += &format!("copied: {copy}\n");
    }
    for what in &changes.given_up {
        *out += &format!("given up: {what}\n");
    }
    let again = look(&mut DataDir::new(dir), seed).map_err(cannot_read)?;
    for damage in &again.damage {
        *out += &format!("still damaged: {damage}\n");
    }
    if again.is_fine() {
        *out += "Repaired: a node starts on this.\n";
    }
    Ok(again.is_fine())
}

fn describe(report: &Report, out: &mut String) {
    for (file, text) in &report.files {
        *out += &format!("{file}: {text}\n");
    }
    for note in &report.notes {
        *out += &format!("note: {note}\n");
    }
    for damage in &report.damage {
        *out += &format!("damaged: {damage}\n");
    }
    if let Some(repair) = &report.repair
        && !report.is_fine()
    {
        for what in &repair.given_up {
            *out += &format!("a repair would give up: {what}\n");
        }
    }
}

/// Copies all that will be changed, then changes it. Returns the copies' names.
fn mend(dir: &Path, repair: &Repair) -> io::Result<Vec<String>> {
    let names: BTreeSet<&str> = repair.changes.iter().map(|c| &**c.file()).collect();
    let taken = |n: u32| {
        let mut names = names.iter();
        names.any(|name| dir.join(format!("{name}.damaged-{n}")).exists())
    };
    let number = (1..u32::MAX).find(|n| !taken(*n)).unwrap_or(u32::MAX);
    let mut copies = Vec::new();
    for name in &names {
        let (from, copy) = (dir.join(name), format!("{name}.damaged-{number}"));
        if from.exists() {
            fs::copy(&from, dir.join(&copy))?;
            File::open(dir.join(&copy))?.sync_all()?;
            copies.push(copy);
        }
    }
    File::open(dir)?.sync_all()?;
    for change in &repair.changes {
        let path = dir.join(&**change.file());
        if let FileChange::Remove(_) = change {
            fs::remove_file(&path)?;
            // Each removal lasts before the next: no gap may be left.
            File::open(dir)?.sync_all()?;
            continue;
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        match change {
            FileChange::Resize(_, bytes) => file.set_len(*bytes)?,
            FileChange::Write(_, at, bytes) => {
                file.seek(SeekFrom::Start(*at))?;
                file.write_all(bytes)?;
            }
            FileChange::Remove(_) => {}
        }
        file.sync_all()?;
    }
    File::open(dir)?.sync_all()?;
    Ok(copies)
}

/// A folder's files, the last one read kept open.
pub(super) struct DataDir {
    dir: PathBuf,
    open: Option<(String, File)>,
}

impl DataDir {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            open: None,
        }
    }
}

impl Source for DataDir {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            // Names that are no UTF-8 are not ours.
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                files.push(FileInfo {
                    file: name.into(),
                    bytes: metadata.len(),
                });
            }
        }
        files.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(files)
    }

    fn read(&mut self, file: &str, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let known = self.open.take_if(|(name, _)| name == file);
        let mut open = match known {
            Some((_, open)) => open,
            None => File::open(self.dir.join(file))?,
        };
        open.seek(SeekFrom::Start(at))?;
        let mut read = Vec::new();
        (&mut open).take(bytes as u64).read_to_end(&mut read)?;
        self.open = Some((file.to_owned(), open));
        Ok(read)
    }
}

#[cfg(test)]
#[path = "check_data_tests.rs"]
mod tests;
