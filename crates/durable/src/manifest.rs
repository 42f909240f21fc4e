//! The manifest: names the files that hold the data. It is written as a whole, synced, and replaces
//! the previous one atomically.
//!
//! A text of lines in a fixed order (docs/format/manifest.md); the last line is the checksum of all
//! others.

use super::file::{DataFile, MANIFEST, MANIFEST_VERSION as VERSION};
use rufous_base::disk::FileName;
use rufous_base::limits;
use std::fmt::{self, Write};
use std::str::FromStr;

/// The limit of a manifest's size.
pub const MOST_BYTES: usize = 256 * limits::MAX_WORKERS;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The generation of the snapshot; 0 before the first.
    pub generation: u64,
    /// Logs of this generation and later ones follow the snapshot.
    pub logs_from: u64,
    /// The last generation of logs that follow: afterwards, changes were not logged. `None`: all
    /// later logs follow.
    pub logs_until: Option<u64>,
    /// The number of workers when the snapshot was taken.
    pub workers: u16,
    pub hash_seed: u64,
    /// The number of starts of the node.
    pub run: u64,
    /// When this was written (Unix milliseconds).
    pub saved_ms: u64,
    /// One per worker, in order; none before the first snapshot.
    pub snapshots: Vec<SnapshotFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    pub worker: u16,
    pub file: FileName,
    /// Its size, including header and end mark.
    pub bytes: u64,
    pub keys: u64,
    /// CRC-32 of all these bytes.
    pub crc: u32,
    /// The number of the first frame of the worker's log that it does not contain; 0 where nothing
    /// was logged.
    pub next_seq: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// Not as it was written.
    Damaged,
    /// Written by a newer version of the format.
    Newer(u32),
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::Damaged => f.write_str("the manifest is damaged"),
            ManifestError::Newer(version) => write!(
                f,
                "written by a newer version (format {version}, this one reads up to {VERSION})"
            ),
        }
    }
}

/// The name of the manifest of an earlier save that is kept.
pub fn kept_name(generation: u64) -> FileName {
    format!("{MANIFEST}-{generation:010}").into()
}

/// The generation of a name that [`kept_name`] makes.
pub fn kept_generation(name: &str) -> Option<u64> {
    let number = name.strip_prefix(MANIFEST)?.strip_prefix('-')?;
    let generation = number.parse().ok()?;
    (*kept_name(generation) == *name).then_some(generation)
}

const TITLE: &str = "rufous-manifest ";
/// `crc `, eight digits and the end of the line.
const LAST_LINE: usize = 13;

impl Manifest {
    /// Whether logs of this generation follow the snapshot.
    pub fn has_log(&self, generation: u64) -> bool {
        generation >= self.logs_from && self.logs_until.is_none_or(|until| generation <= until)
    }

    /// The save alone, as of its cut. Its logs are removed after the next save.
    pub fn without_logs(&self) -> Self {
        Self {
            logs_until: Some(self.logs_from.saturating_sub(1)),
            ..self.clone()
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("{TITLE}{VERSION}\n{self}");
        let crc = crc32fast::hash(text.as_bytes());
        // Writing to a String cannot fail.
        let _ = writeln!(text, "crc {crc:08x}");
        text.into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        Self::read(bytes)?.ok_or(ManifestError::Damaged)
    }

    fn read(bytes: &[u8]) -> Result<Option<Self>, ManifestError> {
        let Some(text) = checked(bytes) else {
            return Ok(None);
        };
        let Some(rest) = text.strip_prefix(TITLE) else {
            return Ok(None);
        };
        let Some((version, rest)) = rest.split_once('\n') else {
            return Ok(None);
        };
        match number::<u32>(version) {
            Some(VERSION) => Ok(Self::fields(rest)),
            Some(newer) if newer > VERSION => Err(ManifestError::Newer(newer)),
            _ => Ok(None),
        }
    }

    fn fields(text: &str) -> Option<Self> {
        let mut lines = Lines(text.strip_suffix('\n')?.split('\n'));
        let mut manifest = Self {
            generation: number(lines.field("generation")?)?,
            logs_from: number(lines.field("logs-from")?)?,
            logs_until: match lines.field("logs-until")? {
                "none" => None,
                until => Some(number(until)?),
            },
            workers: number(lines.field("workers")?)?,
            hash_seed: hex(lines.field("hash-seed")?, 16)?,
            run: number(lines.field("run")?)?,
            saved_ms: number(lines.field("saved-ms")?)?,
            snapshots: Vec::new(),
        };
        for line in lines.0 {
            let worker = u16::try_from(manifest.snapshots.len()).ok()?;
            manifest.snapshots.push(SnapshotFile::parse(line, worker)?);
        }
        let count = manifest.snapshots.len();
        let whole = count == usize::from(manifest.workers) || count == 0;
        let known = (1..=limits::MAX_WORKERS).contains(&usize::from(manifest.workers));
        (whole && known).then_some(manifest)
    }
}

/// All but the last line, if the checksum is right.
fn checked(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > MOST_BYTES {
        return None;
    }
    let (head, last) = bytes.split_at(bytes.len().checked_sub(LAST_LINE)?);
    let last = std::str::from_utf8(last).ok()?;
    let crc = last.strip_prefix("crc ")?.strip_suffix('\n')?;
    if hex(crc, 8)? != u64::from(crc32fast::hash(head)) {
        return None;
    }
    std::str::from_utf8(head).ok()
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "generation {}", self.generation)?;
        writeln!(f, "logs-from {}", self.logs_from)?;
        match self.logs_until {
            Some(until) => writeln!(f, "logs-until {until}")?,
            None => writeln!(f, "logs-until none")?,
        }
        writeln!(f, "workers {}", self.workers)?;
        writeln!(f, "hash-seed {:016x}", self.hash_seed)?;
        writeln!(f, "run {}", self.run)?;
        writeln!(f, "saved-ms {}", self.saved_ms)?;
        for snapshot in &self.snapshots {
            writeln!(f, "{snapshot}")?;
        }
        Ok(())
    }
}

impl fmt::Display for SnapshotFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            worker,
            file,
            bytes,
            keys,
            crc,
            next_seq,
        } = self;
        write!(
            f,
            "snapshot {worker} {file} bytes {bytes} keys {keys} crc {crc:08x} next-seq {next_seq}"
        )
    }
}

impl SnapshotFile {
    fn parse(line: &str, worker: u16) -> Option<Self> {
        let words: Vec<&str> = line.splitn(12, ' ').collect();
        let [
            "snapshot",
            number_of_worker,
            name,
            "bytes",
            bytes,
            "keys",
            keys,
            "crc",
            crc,
            "next-seq",
            next_seq,
        ] = words[..]
        else {
            return None;
        };
        let file = DataFile::parse(name)?;
        let right = matches!(file, DataFile::Snapshot { .. }) && file.worker() == worker;
        if !right || number::<u16>(number_of_worker)? != worker {
            return None;
        }
        Some(Self {
            worker,
            file: file.name(),
            bytes: number(bytes)?,
            keys: number(keys)?,
            crc: u32::try_from(hex(crc, 8)?).ok()?,
            next_seq: number(next_seq)?,
        })
    }
}

struct Lines<'a>(std::str::Split<'a, char>);

impl<'a> Lines<'a> {
    fn field(&mut self, name: &str) -> Option<&'a str> {
        self.0.next()?.strip_prefix(name)?.strip_prefix(' ')
    }
}

/// Accepts numbers only as they are written: no sign, no leading zeros.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn hex(text: &str, digits: usize) -> Option<u64> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(plain) {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let snapshot = |worker| SnapshotFile {
            worker,
            file: DataFile::Snapshot {
                generation: 7,
                worker,
            }
            .name(),
            bytes: 1000,
            keys: u64::from(worker) * 5,
            crc: 0xA,
            next_seq: u64::from(worker) * 15,
        };
        Manifest {
            generation: 7,
            logs_from: 7,
            logs_until: None,
            workers: 2,
            hash_seed: 0xABC,
            run: 3,
            saved_ms: 1_790_000_000_000,
            snapshots: vec![snapshot(0), snapshot(1)],
        }
    }

    #[test]
    fn the_bytes_stay_as_they_are() {
        let text = "rufous-manifest 1\n\
                    generation 7\n\
                    logs-from 7\n\
                    logs-until none\n\
                    workers 2\n\
                    hash-seed 0000000000000abc\n\
                    run 3\n\
                    saved-ms 1790000000000\n\
                    snapshot 0 snap-0000000007-00000 bytes 1000 keys 0 crc 0000000a next-seq 0\n\
                    snapshot 1 snap-0000000007-00001 bytes 1000 keys 5 crc 0000000a next-seq 15\n\
                    crc 26485cc4\n";
        assert_eq!(String::from_utf8(manifest().encode()).unwrap(), text);
        assert_eq!(Manifest::decode(text.as_bytes()), Ok(manifest()));
        let mut without = manifest();
        without.snapshots.clear();
        without.logs_until = Some(9);
        assert_eq!(Manifest::decode(&without.encode()), Ok(without));
    }

    #[test]
    fn names_of_manifests_that_are_kept() {
        assert_eq!(&*kept_name(7), "manifest-0000000007");
        for generation in [0, 7, u64::MAX] {
            assert_eq!(kept_generation(&kept_name(generation)), Some(generation));
        }
        for name in [
            "manifest",
            "manifest.next",
            "manifest-7",
            "manifest-+000000007",
        ] {
            assert_eq!(kept_generation(name), None, "{name}");
        }
        assert_eq!(kept_generation("manifest-0000000007.damaged-1"), None);
    }

    #[test]
    fn a_save_that_is_kept_has_no_log() {
        let kept = manifest().without_logs();
        assert_eq!(Manifest::decode(&kept.encode()), Ok(kept.clone()));
        assert!((0..20).all(|generation| !kept.has_log(generation)));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_seen() {
        let bytes = manifest().encode();
        for cut in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&flipped).is_err(), "bit {bit}");
        }
        let mut longer = bytes;
        longer.push(b'\n');
        assert!(Manifest::decode(&longer).is_err());
    }

    /// As if a person had edited it, and corrected the checksum.
    fn edited(from: &str, to: &str) -> Result<Manifest, ManifestError> {
        let bytes = manifest().encode();
        let text = std::str::from_utf8(&bytes[..bytes.len() - LAST_LINE]).unwrap();
        assert!(text.contains(from), "{from}");
        let text = text.replacen(from, to, 1);
        let crc = crc32fast::hash(text.as_bytes());
        Manifest::decode(format!("{text}crc {crc:08x}\n").as_bytes())
    }

    #[test]
    fn only_what_is_written_is_read() {
        assert_eq!(edited("run 3", "run 4").map(|manifest| manifest.run), Ok(4));
        assert_eq!(
            edited("manifest 1", "manifest 2\nmore"),
            Err(ManifestError::Newer(2))
        );
        for (from, to) in [
            ("manifest 1", "manifest 0"),
            ("manifest 1", "manifest 01"),
            ("until none", "until"),
            ("until none", "until +9"),
            ("run 3", "run +3"),
            ("run 3", "run 03"),
            ("run 3", "run 3 "),
            ("run 3", "run 3\n"),
            ("run 3", "run 99999999999999999999"),
            ("run 3\n", ""),
            ("workers 2", "workers 3"),
            ("workers 2", "workers 1"),
            ("0000000000000abc", "0000000000000ABC"),
            ("snapshot 1", "snapshot 0"),
            ("snap-0000000007-00001", "snap-0000000007-00000"),
            ("snap-0000000007-00001", "log-0000000007-00001-00000000"),
            ("snap-0000000007-00001", "../etc/passwd"),
            ("keys 5", "keys 5 more 1"),
            (" next-seq 15", ""),
            ("next-seq 15", "next-seq 015"),
        ] {
            assert_eq!(edited(from, to), Err(ManifestError::Damaged), "{to}");
        }
    }
}
