//! A node's identity: a permanent id, and an incarnation that rises with every start, both stored
//! beside its data.
//!
//! The incarnation is stored before it is announced, so that no two starts have the same one. An
//! unreadable file is an error: with another id the node would be another node, and its data would
//! belong to none.

use rufous_wire::message::ID;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const NAME: &str = "node";
const NEXT: &str = "node.next";
/// The note of a restored save.
pub(super) const RESTORED: &str = "restored";
/// Earlier than every start of a node, and not none.
const LONG_AGO: u64 = 1;
/// The largest valid file.
const MAX_FILE: u64 = 1024;

/// Why the node's identity is unknown.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("cannot keep the node's id in '{path}': {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("'{0}' is damaged: it holds the identity of this node in its cluster")]
    Damaged(PathBuf),
    #[error(
        "the data folder belongs to node {kept}, not to node {given}: choose that node's folder"
    )]
    Other { kept: String, given: String },
}

/// See the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub id: [u8; ID],
    pub incarnation: u64,
    /// Of the last start with the same folder, whose data it has; 0: there was none.
    pub after: u64,
}

/// Forty hexadecimal digits.
pub fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Identity {
    /// Whether a folder has an identity.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(NAME).exists()
    }

    /// The identity for the next start of the node with this folder. `made` is the id of a node
    /// that has none yet, `given` the one that it must have; `least` is the least incarnation.
    pub fn next(
        folder: &Path,
        given: Option<[u8; ID]>,
        made: [u8; ID],
        least: u64,
    ) -> Result<Self, IdentityError> {
        let path = folder.join(NAME);
        let failed = |source| IdentityError::File {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let kept = read(&path)?;
        if let (Some(kept), Some(given)) = (kept, given)
            && kept.id != given
        {
            return Err(IdentityError::Other {
                kept: hex(&kept.id),
                given: hex(&given),
            });
        }
        let next = Self {
            id: kept.map_or(given.unwrap_or(made), |kept| kept.id),
            incarnation: kept.map_or(0, |kept| kept.incarnation + 1).max(least),
            after: match kept {
                Some(_) if folder.join(RESTORED).exists() => LONG_AGO,
                Some(kept) => kept.incarnation,
                None => 0,
            },
        };
        write(folder, next).map_err(failed)?;
        Ok(next)
    }
}

/// Notes in a data folder, if it is that of a cluster's node, that its data is about to become that
/// of an earlier time.
pub fn note_restored(data: &Path) -> io::Result<()> {
    let folder = data.join(super::start::FOLDER);
    if !Identity::is_in(&folder) {
        return Ok(());
    }
    File::create(folder.join(RESTORED))?.sync_all()?;
    File::open(&folder)?.sync_all()?;
    super::past::doubt(data)
}

fn read(path: &Path) -> Result<Option<Identity>, IdentityError> {
    let damaged = || IdentityError::Damaged(path.to_owned());
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(about) if about.len() > MAX_FILE => return Err(damaged()),
        _ => {}
    }
    let text = fs::read_to_string(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => damaged(),
        _ => IdentityError::File {
            path: path.to_owned(),
            source,
        },
    })?;
    parse(&text).map(Some).ok_or_else(damaged)
}

/// `id <hex>`, `incarnation <number>`, and a checksum of both lines.
fn parse(text: &str) -> Option<Identity> {
    let (lines, crc) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let crc = u32::from_str_radix(crc.strip_prefix("crc32c ")?, 16).ok()?;
    (crc == crc32c::crc32c(lines.as_bytes())).then_some(())?;
    let (id, incarnation) = lines.split_once('\n')?;
    let incarnation: u64 = incarnation.strip_prefix("incarnation ")?.parse().ok()?;
    Some(Identity {
        after: 0,
        id: super::settings::parse_id(id.strip_prefix("id ")?).ok()?,
        incarnation: (incarnation < u64::MAX).then_some(incarnation)?,
    })
}

fn write(folder: &Path, identity: Identity) -> io::Result<()> {
    let Identity {
        id, incarnation, ..
    } = identity;
    let lines = format!("id {}\nincarnation {incarnation}", hex(&id));
    let crc = crc32c::crc32c(lines.as_bytes());
    let next = folder.join(NEXT);
    let mut file = File::create(&next)?;
    file.write_all(format!("{lines}\ncrc32c {crc:08x}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&next, folder.join(NAME))?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_and_starts_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("cluster");
        let next = |given, made| Identity::next(&folder, given, made, 1);
        let first = next(None, [1; ID]).expect("made");
        assert_eq!((first.id, first.incarnation), ([1; ID], 1));
        let again = next(None, [2; ID]).expect("kept");
        assert_eq!((again.id, again.incarnation), ([1; ID], 2));
        let given = next(Some([1; ID]), [2; ID]).expect("kept");
        assert_eq!((given.id, given.incarnation), ([1; ID], 3));
        let other = next(Some([9; ID]), [2; ID]);
        assert!(matches!(other, Err(IdentityError::Other { .. })));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let next = || Identity::next(folder.path(), Some([0xab; ID]), [1; ID], 1);
        next().expect("made");
        let path = folder.path().join(NAME);
        let whole = fs::read(&path).expect("read");
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).expect("written");
            assert!(next().is_err(), "byte {at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert!(next().is_err(), "cut at {at}");
        }
        fs::write(&path, vec![b'i'; 2000]).expect("written");
        assert!(matches!(next(), Err(IdentityError::Damaged(_))));
        fs::write(&path, &whole).expect("written");
        assert_eq!(next().expect("whole").incarnation, 2);
    }
}
