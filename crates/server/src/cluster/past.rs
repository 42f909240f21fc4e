//! What the data folder says about earlier starts of the node: whether its log has everything that
//! they have written, and the number that the node had.
//!
//! What a process has written outlives it, but not a loss of power. So a file beside the identity
//! names the boot of the operating system during which the node ran. It also names its own place in
//! the file system: in a copied or restored folder it has another one, and proves nothing.

use rufous_kernel::durable::file::MANIFEST;
use rufous_kernel::durable::manifest::Manifest;
use rufous_kernel::worker::Past;
use rufous_mapping::NodeNo;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
    number: Option<NodeNo>,
    is_whole: bool,
}

/// What a file says.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    boot: String,
    place: String,
    number: Option<NodeNo>,
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
        let before = read(folder).filter(|_| !is_new);
        let is_same = before
            .as_ref()
            .is_some_and(|before| Some(&before.boot) == boot.as_ref());
        let past = if is_new {
            Past::New
        } else if is_same && has_log(data) {
            Past::Whole
        } else {
            Past::Unknown
        };
        let mut run = Self {
            folder: folder.to_owned(),
            boot,
            number: before.and_then(|before| before.number),
            is_whole: past != Past::Unknown,
        };
        run.write()?;
        Ok((run, past))
    }

    /// What the files may have lacked was received from the other nodes: from now on they have all.
    pub fn is_whole_now(&mut self) -> io::Result<()> {
        if self.is_whole {
            return Ok(());
        }
        self.is_whole = true;
        self.write()
    }

    /// The node has this number. Returns the one that it had before, if that was another.
    pub fn set_number(&mut self, number: NodeNo) -> io::Result<Option<NodeNo>> {
        if self.number == Some(number) {
            return Ok(None);
        }
        let before = self.number.replace(number);
        self.write()?;
        Ok(before)
    }

    fn write(&mut self) -> io::Result<()> {
        let next = self.folder.join(NEXT);
        let mut file = File::create(&next)?;
        // Without a boot the record does not vouch for the log.
        let boot = self.boot.as_deref().filter(|_| self.is_whole);
        let mut lines = format!("boot {}\n", boot.unwrap_or("-"));
        lines.push_str(&format!("place {}", place(&file.metadata()?)));
        if let Some(number) = self.number {
            lines.push_str(&format!("\nnumber {}", number.0));
        }
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
    let mut lines = lines.split('\n');
    let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
    let place = lines.next()?.strip_prefix("place ")?.to_owned();
    let number = match lines.next() {
        None => None,
        Some(line) => Some(NodeNo(line.strip_prefix("number ")?.parse().ok()?)),
    };
    Some(Record {
        boot,
        place,
        number,
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
        let (mut run, _) = begin("b", data.path(), false);
        run.is_whole_now().expect("written");
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

    #[test]
    fn the_number_is_kept() {
        let data = tempfile::tempdir().expect("a folder");
        let (mut run, _) = begin("a", data.path(), true);
        assert_eq!(run.set_number(NodeNo(2)).expect("written"), None);
        assert_eq!(run.set_number(NodeNo(2)).expect("written"), None);
        let (mut run, _) = begin("b", data.path(), false);
        assert_eq!(run.set_number(NodeNo(5)).expect("written"), Some(NodeNo(2)));
    }
}
