//! Whether the data folder has everything that earlier starts of the node have logged.
//!
//! What a process has written outlives it, but not a loss of power. So a file beside the identity
//! names the boot of the operating system during which the node ran. It also names its own place in
//! the file system: in a copied or restored folder it has another one, and proves nothing.

use rufous_kernel::durable::file::MANIFEST;
use rufous_kernel::durable::manifest::Manifest;
use rufous_kernel::worker::Past;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const NAME: &str = "run";
const NEXT: &str = "run.next";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The largest valid file.
const MAX_FILE: usize = 1024;

/// The record of the present start.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    boot: Option<String>,
    /// It vouches for the log, or is about to.
    is_whole: AtomicBool,
}

/// What a file says.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    boot: String,
    place: String,
}

impl Run {
    /// Begins the record of a start; `folder` is the cluster's part of the folder `data`. A node
    /// that is certain to be new has no earlier starts.
    pub fn begin(folder: &Path, data: &Path, is_new: bool) -> io::Result<(Self, Past)> {
        Self::begin_in(boot(), folder, data, is_new)
    }

    fn begin_in(
        boot: Option<String>,
        folder: &Path,
        data: &Path,
        is_new: bool,
    ) -> io::Result<(Self, Past)> {
        let before = read(folder).map(|before| before.boot);
        let past = if is_new {
            Past::New
        } else if before.is_some() && before == boot && has_log(data) {
            Past::Whole
        } else {
            Past::Unknown
        };
        let run = Self {
            folder: folder.to_owned(),
            boot,
            is_whole: AtomicBool::new(past != Past::Unknown),
        };
        run.write()?;
        Ok((run, past))
    }

    /// What the files may have lacked was received from the other nodes: from now on they have
    /// everything. This does not wait for the disk: one that hangs must not keep the node from
    /// following its cluster.
    pub fn is_whole_later(self: &Arc<Self>) {
        if self.is_whole.swap(true, Ordering::Relaxed) {
            return;
        }
        let run = Arc::clone(self);
        let named = thread::Builder::new().name("past".to_owned());
        // The process does not wait for this thread at its end.
        let begun = named.spawn(move || {
            if let Err(error) = run.write() {
                run.try_again(&error);
            }
        });
        if let Err(error) = begun {
            self.try_again(&error);
        }
    }

    fn try_again(&self, error: &io::Error) {
        tracing::debug!(%error, "cannot write the record of this start; trying again");
        self.is_whole.store(false, Ordering::Relaxed);
    }

    fn write(&self) -> io::Result<()> {
        let next = self.folder.join(NEXT);
        let mut file = File::create(&next)?;
        // Without a boot the record does not vouch for the log.
        let is_whole = self.is_whole.load(Ordering::Relaxed);
        let boot = self.boot.as_deref().filter(|_| is_whole);
        let place = place(&file.metadata()?);
        let lines = format!("boot {}\nplace {place}", boot.unwrap_or("-"));
        let crc = crc32c::crc32c(lines.as_bytes());
        file.write_all(format!("{lines}\ncrc32c {crc:08x}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, self.folder.join(NAME))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// The files of a data folder are about to lose something: the next start must not take them for
/// whole.
pub fn doubt(data: &Path) -> io::Result<()> {
    let folder = data.join(super::start::FOLDER);
    match fs::remove_file(folder.join(NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(folder)?.sync_all(),
    }
}

/// The present boot of the operating system, if it tells.
fn boot() -> Option<String> {
    let text = fs::read_to_string(BOOT).ok()?;
    let id = text.trim();
    (!id.is_empty() && id.len() < 100).then(|| id.to_owned())
}

#[cfg(unix)]
fn place(about: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!("{}:{}", about.dev(), about.ino())
}

#[cfg(not(unix))]
fn place(_: &Metadata) -> String {
    "-".to_owned()
}

/// A record that is damaged, or not where it was written, says nothing.
fn read(folder: &Path) -> Option<Record> {
    let path = folder.join(NAME);
    let bytes = fs::read(&path).ok().filter(|all| all.len() <= MAX_FILE)?;
    let record = parse(std::str::from_utf8(&bytes).ok()?)?;
    (record.place == place(&fs::metadata(&path).ok()?)).then_some(record)
}

fn parse(text: &str) -> Option<Record> {
    let (lines, crc) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let crc = u32::from_str_radix(crc.strip_prefix("crc32c ")?, 16).ok()?;
    (crc == crc32c::crc32c(lines.as_bytes())).then_some(())?;
    let (boot, place) = lines.split_once('\n')?;
    Some(Record {
        boot: boot.strip_prefix("boot ")?.to_owned(),
        place: place.strip_prefix("place ")?.to_owned(),
    })
}

/// Whether the log was on until the end.
fn has_log(data: &Path) -> bool {
    let bytes = fs::read(data.join(MANIFEST)).ok();
    let manifest = bytes.and_then(|bytes| Manifest::decode(&bytes).ok());
    manifest.is_some_and(|manifest| manifest.logs_until.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(data: &Path, logs_until: Option<u64>) {
        let manifest = Manifest {
            generation: 0,
            logs_from: 1,
            logs_until,
            workers: 1,
            hash_seed: 0,
            run: 1,
            saved_ms: 0,
            snapshots: Vec::new(),
        };
        fs::write(data.join(MANIFEST), manifest.encode()).expect("written");
    }

    fn begin(boot: &str, data: &Path, is_new: bool) -> (Run, Past) {
        let folder = data.join("cluster");
        fs::create_dir_all(&folder).expect("made");
        Run::begin_in(Some(boot.into()), &folder, data, is_new).expect("begun")
    }

    #[test]
    fn a_log_is_whole_while_the_machine_runs() {
        let data = tempfile::tempdir().expect("a folder");
        let past = |boot, is_new| begin(boot, data.path(), is_new).1;
        assert_eq!(past("a", false), Past::Unknown, "nothing is known");
        assert_eq!(past("a", true), Past::New);
        assert_eq!(past("a", false), Past::Unknown, "there is no log");
        assert_eq!(past("a", true), Past::New);
        manifest(data.path(), None);
        assert_eq!(past("a", false), Past::Whole);
        assert_eq!(past("a", false), Past::Whole);
        assert_eq!(past("b", false), Past::Unknown, "the machine has restarted");
        assert_eq!(
            past("b", false),
            Past::Unknown,
            "it has not become whole since"
        );
        let run = Arc::new(begin("b", data.path(), false).0);
        run.is_whole_later();
        let boot = || read(&data.path().join("cluster")).map(|record| record.boot);
        while boot().as_deref() != Some("b") {
            thread::yield_now();
        }
        assert_eq!(past("b", false), Past::Whole);
        manifest(data.path(), Some(7));
        assert_eq!(past("b", false), Past::Unknown, "changes were not logged");
    }

    #[test]
    fn a_copied_folder_proves_nothing() {
        let data = tempfile::tempdir().expect("a folder");
        manifest(data.path(), None);
        begin("a", data.path(), true);
        let record = data.path().join("cluster").join(NAME);
        let copy = data.path().join("copy");
        fs::copy(&record, &copy).expect("copied");
        fs::rename(&copy, &record).expect("put back");
        assert_eq!(begin("a", data.path(), false).1, Past::Unknown);
    }

    #[test]
    fn a_repaired_folder_is_not_whole() {
        let data = tempfile::tempdir().expect("a folder");
        doubt(data.path()).expect("there is nothing to do");
        manifest(data.path(), None);
        begin("a", data.path(), true);
        doubt(data.path()).expect("removed");
        assert_eq!(begin("a", data.path(), false).1, Past::Unknown);
    }

    #[test]
    fn a_damaged_record_proves_nothing() {
        let data = tempfile::tempdir().expect("a folder");
        manifest(data.path(), None);
        begin("a", data.path(), true);
        let record = data.path().join("cluster").join(NAME);
        let whole = fs::read(&record).expect("read");
        for at in 0..whole.len() {
            assert_eq!(parse(&String::from_utf8_lossy(&whole[..at])), None, "{at}");
        }
        assert!(read(&data.path().join("cluster")).is_some());
        // In its place, but with another byte.
        let mut changed = whole.clone();
        changed[6] ^= 1;
        fs::write(&record, changed).expect("written");
        assert_eq!(begin("a", data.path(), false).1, Past::Unknown);
    }
}
