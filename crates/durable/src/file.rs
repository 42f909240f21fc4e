//! Names and headers of the files that hold frames.
//!
//! ```text
//! 0       8     10    12    14    16         24    32        40     44   48       56   60   64
//! | magic | ver | kind| wkr | of  | generation| run | first_seq| index| salt| reserved| 0  | crc |
//! ```
//! `reserved` is zero in version 1, which files without reserved space have.
//!
//! Little endian. Magic, version and the checksum over the first 60 bytes have the same offsets in
//! every version, so that a header of a newer version can be told from a damaged one.

use super::frame;
use crc32fast::Hasher;
use rufous_base::disk::FileName;

/// Bytes of a file before its first frame.
pub const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"\xB5Rufous\n";
/// The newest version of the format.
pub const VERSION: u16 = 2;
/// Of files of which the header does not say how long they are at least.
const VERSION_WITHOUT_LENGTH: u16 = 1;
pub const MANIFEST_VERSION: u32 = 1;
const CRC_AT: usize = 60;

pub const MANIFEST: &str = "manifest";
/// The next manifest, until it replaces the old one.
pub const MANIFEST_NEXT: &str = "manifest.next";
/// Locked while a node uses the folder.
pub const LOCK: &str = "lock";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Log,
    Snapshot,
}

impl FileKind {
    fn code(self) -> u16 {
        match self {
            FileKind::Log => 1,
            FileKind::Snapshot => 2,
        }
    }
}

/// A file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    pub kind: FileKind,
    pub generation: u64,
    pub worker: u16,
    /// The number of workers.
    pub workers: u16,
    /// The index of a log's segment in its generation; 0 for a snapshot.
    pub index: u32,
    /// Increases with every start of the node.
    pub run: u64,
    /// The number of the first frame here. Frames from this number on in earlier segments are void.
    pub first_seq: u64,
    /// A number that clients cannot guess: [`salt`].
    pub salt: u32,
    /// The file was made with this many bytes, so that it is damaged where it has less; 0: unknown.
    pub reserved: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Only zeros: made ahead, and not used.
    Unused,
    /// A wrong magic or checksum, or too short.
    Damaged,
    /// Written by a newer version of the format.
    Newer(u16),
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeaderError::Unused => f.write_str("the file was never used"),
            HeaderError::Damaged => f.write_str("the file's header is damaged"),
            HeaderError::Newer(version) => write!(
                f,
                "written by a newer version (format {version}, this one reads up to {VERSION})"
            ),
        }
    }
}

impl FileHeader {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let kind = self.kind.code();
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&MAGIC);
        put(&self.version().to_le_bytes());
        put(&kind.to_le_bytes());
        put(&self.worker.to_le_bytes());
        put(&self.workers.to_le_bytes());
        put(&self.generation.to_le_bytes());
        put(&self.run.to_le_bytes());
        put(&self.first_seq.to_le_bytes());
        put(&self.index.to_le_bytes());
        put(&self.salt.to_le_bytes());
        put(&self.reserved.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header at the start of a file's bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let head = &bytes[..bytes.len().min(HEADER_BYTES)];
        if head.iter().all(|&byte| byte == 0) {
            return Err(HeaderError::Unused);
        }
        let Some((head, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(HeaderError::Damaged);
        };
        let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let int = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let word = |at: usize| u64::from(int(at)) | u64::from(int(at + 4)) << 32;
        if head[..8] != MAGIC || crc32fast::hash(&head[..CRC_AT]) != int(CRC_AT) {
            return Err(HeaderError::Damaged);
        }
        if half(8) > VERSION {
            return Err(HeaderError::Newer(half(8)));
        }
        let kind = match half(10) {
            1 => FileKind::Log,
            2 => FileKind::Snapshot,
            _ => return Err(HeaderError::Damaged),
        };
        let header = Self {
            kind,
            worker: half(12),
            workers: half(14),
            generation: word(16),
            run: word(24),
            first_seq: word(32),
            index: int(40),
            salt: int(44),
            reserved: word(48),
        };
        let version = header.version();
        if header.worker >= header.workers || half(8) != version || int(56) != 0 {
            return Err(HeaderError::Damaged);
        }
        Ok(header)
    }

    /// The oldest version that has a place for everything.
    fn version(&self) -> u16 {
        match self.reserved {
            0 => VERSION_WITHOUT_LENGTH,
            _ => VERSION,
        }
    }

    /// The initial value of the checksums of this file's frames. The same for all segments of a
    /// generation of a worker's log, as frames may move to the next one.
    pub fn frame_seed(&self) -> u32 {
        frame_seed(self.salt, self.kind, self.generation, self.worker)
    }

    pub fn file(&self) -> DataFile {
        let (generation, worker) = (self.generation, self.worker);
        match self.kind {
            FileKind::Log => DataFile::Log {
                generation,
                worker,
                index: self.index,
            },
            FileKind::Snapshot => DataFile::Snapshot { generation, worker },
        }
    }
}

/// [`FileHeader::frame_seed`], for use where the header cannot be read.
pub fn frame_seed(salt: u32, kind: FileKind, generation: u64, worker: u16) -> u32 {
    let mut hasher = Hasher::new_with_initial(salt);
    hasher.update(&kind.code().to_le_bytes());
    hasher.update(&worker.to_le_bytes());
    hasher.update(&generation.to_le_bytes());
    hasher.finalize()
}

/// The salt of all files of a node with this hash seed, from which the seed cannot be derived.
pub fn salt(hash_seed: u64) -> u32 {
    let mut hasher = Hasher::new_with_initial(0x5275_666F);
    hasher.update(&hash_seed.to_le_bytes());
    hasher.finalize()
}

/// A file of frames, by its name. Names sort in the order of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataFile {
    Log {
        generation: u64,
        worker: u16,
        index: u32,
    },
    Snapshot {
        generation: u64,
        worker: u16,
    },
}

impl DataFile {
    pub fn name(&self) -> FileName {
        match self {
            DataFile::Log {
                generation,
                worker,
                index,
            } => format!("log-{generation:010}-{worker:05}-{index:08}").into(),
            DataFile::Snapshot { generation, worker } => {
                format!("snap-{generation:010}-{worker:05}").into()
            }
        }
    }

    /// Accepts only names that [`DataFile::name`] makes.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let kind = parts.next()?;
        let generation = parts.next()?.parse().ok()?;
        let worker = parts.next()?.parse().ok()?;
        let file = match (kind, parts.next()) {
            ("log", Some(index)) => DataFile::Log {
                generation,
                worker,
                index: index.parse().ok()?,
            },
            ("snap", None) => DataFile::Snapshot { generation, worker },
            _ => return None,
        };
        (*file.name() == *name).then_some(file)
    }

    pub fn generation(&self) -> u64 {
        match *self {
            DataFile::Log { generation, .. } | DataFile::Snapshot { generation, .. } => generation,
        }
    }

    pub fn worker(&self) -> u16 {
        match *self {
            DataFile::Log { worker, .. } | DataFile::Snapshot { worker, .. } => worker,
        }
    }
}

const _: () = assert!(HEADER_BYTES > frame::HEADER_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            kind: FileKind::Log,
            generation: 2,
            worker: 3,
            workers: 4,
            index: 5,
            run: 6,
            first_seq: 7,
            salt: 8,
            reserved: 0,
        }
    }

    fn reserving() -> FileHeader {
        FileHeader {
            reserved: 9 << 20,
            ..header()
        }
    }

    #[test]
    fn what_is_encoded_decodes_and_damage_is_seen() {
        let bytes = header().encode();
        assert_eq!(FileHeader::decode(&bytes), Ok(header()));
        let decoded = FileHeader::decode(&reserving().encode());
        assert_eq!(decoded, Ok(reserving()));
        for cut in 1..bytes.len() {
            assert_eq!(FileHeader::decode(&bytes[..cut]), Err(HeaderError::Damaged));
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&flipped), Err(HeaderError::Damaged));
        }
        assert_eq!(FileHeader::decode(&[0; 100]), Err(HeaderError::Unused));
        assert_eq!(FileHeader::decode(&[]), Err(HeaderError::Unused));
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let mut bytes = header().encode();
        bytes[8] = 3;
        bytes[50] = 77;
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(FileHeader::decode(&bytes), Err(HeaderError::Newer(3)));
    }

    /// A length belongs to a header of version 2, and to no other.
    #[test]
    fn each_version_has_its_own_form() {
        for (version, byte) in [(1, 50), (1, 57), (2, 57)] {
            let mut bytes = reserving().encode();
            bytes[48..56].fill(0);
            bytes[8] = version;
            bytes[byte] = 1;
            let crc = crc32fast::hash(&bytes[..CRC_AT]);
            bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(FileHeader::decode(&bytes), Err(HeaderError::Damaged));
        }
    }

    #[test]
    fn the_bytes_stay_as_they_are() {
        let hex: String = header()
            .encode()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(
            hex,
            concat!(
                "b55275666f75730a",
                "0100010003000400",
                "0200000000000000",
                "0600000000000000",
                "0700000000000000",
                "0500000008000000",
                "0000000000000000",
                "00000000",
                "b2e53100"
            )
        );
        assert_eq!(format!("{:08x}", header().frame_seed()), "4f6e4080");
        let hex = reserving().encode().map(|b| format!("{b:02x}")).concat();
        assert_eq!(
            hex,
            concat!(
                "b55275666f75730a",
                "0200010003000400",
                "0200000000000000",
                "0600000000000000",
                "0700000000000000",
                "0500000008000000",
                "0000900000000000",
                "00000000",
                "4c69cf7b"
            )
        );
        assert_eq!(reserving().frame_seed(), header().frame_seed());
        assert_eq!(format!("{:08x}", salt(0x0123_4567_89AB_CDEF)), "bcaa2956");
    }

    #[test]
    fn seeds_differ_between_files_but_not_between_segments() {
        let seed = header().frame_seed();
        let change = |change: fn(&mut FileHeader)| {
            let mut header = header();
            change(&mut header);
            header.frame_seed()
        };
        assert_eq!(seed, change(|h| (h.index, h.run, h.first_seq) = (9, 9, 9)));
        assert_ne!(seed, change(|h| h.generation = 3));
        assert_ne!(seed, change(|h| h.worker = 2));
        assert_ne!(seed, change(|h| h.salt = 9));
        assert_ne!(seed, change(|h| h.kind = FileKind::Snapshot));
    }

    #[test]
    fn names_parse_and_sort() {
        let log = |generation, worker, index| DataFile::Log {
            generation,
            worker,
            index,
        };
        let files = [
            log(1, 0, 2),
            log(1, 0, 11),
            log(1, 10, 0),
            log(20, 2, 0),
            DataFile::Snapshot {
                generation: 3,
                worker: 255,
            },
            DataFile::Snapshot {
                generation: 123_456_789,
                worker: 0,
            },
        ];
        let names: Vec<FileName> = files.iter().map(DataFile::name).collect();
        assert!(names.is_sorted());
        assert_eq!(&*names[0], "log-0000000001-00000-00000002");
        assert_eq!(&*names[4], "snap-0000000003-00255");
        for (file, name) in files.iter().zip(&names) {
            assert_eq!(DataFile::parse(name), Some(*file));
        }
        let huge = log(u64::MAX, u16::MAX, u32::MAX);
        assert_eq!(DataFile::parse(&huge.name()), Some(huge));
    }

    #[test]
    fn other_names_are_none_of_ours() {
        for name in [
            "",
            "log",
            "manifest",
            "log-1-0-0",
            "log-0000000001-00000",
            "log-+000000001-00000-00000000",
            "log-0000000001-00000-00000000-",
            "log-0000000001-65536-00000000",
            "snap-0000000001-00000-00000000",
            "snap-0000000001-00000.old",
            "Log-0000000001-00000-00000000",
        ] {
            assert_eq!(DataFile::parse(name), None, "{name}");
        }
    }
}
