//! The last mapping that the node applied, kept beside its data, and whether the coordinator has lost
//! it since.
//!
//! ```text
//!   cluster/kept/mapping   the mapping, in the format of `mapping` in docs/format
//!   cluster/kept/behind    exists while the coordinator does not have it
//! ```
//!
//! A coordinator that was restored to an earlier state would otherwise have a node that starts act by
//! chains of the past, whose members may lack acknowledged writes.

use rufous_cluster::control::Kept;
use rufous_coordinator::{AgreedMapping, Error, local};
use rufous_mapping::Mapping;
use rufous_wire::mapping::{decode, encode};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FOLDER: &str = "kept";
const BEHIND: &str = "behind";

/// See the module's description. Without a folder nothing is kept: the next start is another node.
#[derive(Debug, Default)]
pub(super) struct Keeping(Option<PathBuf>);

impl Keeping {
    /// Below the folder of the node's identity.
    pub(super) fn below(folder: Option<&Path>) -> Self {
        Self(folder.map(|folder| folder.join(FOLDER)))
    }

    pub(super) fn read(&self) -> Result<Kept, Error> {
        let Some(folder) = &self.0 else {
            return Ok(Kept::default());
        };
        let damaged = |what: &str| Error::Damaged(format!("{}: {what}", folder.display()));
        let found = local::read_in(folder)?;
        let decoded = found.map(|state| decode(&state.mapping));
        let mapping = decoded
            .transpose()
            .map_err(|invalid| damaged(invalid.0))?
            .map(Arc::new);
        Ok(Kept {
            mapping,
            is_behind: folder.join(BEHIND).exists(),
        })
    }

    /// A mapping is about to be applied.
    pub(super) fn keep(&self, mapping: &Mapping) -> io::Result<()> {
        let Some(folder) = &self.0 else {
            return Ok(());
        };
        fs::create_dir_all(folder)?;
        let state = AgreedMapping {
            epoch: mapping.epoch,
            mapping: encode(mapping),
        };
        local::write(folder, &state)
    }

    /// The coordinator has lost it, or has it again.
    pub(super) fn set_behind(&self, is_behind: bool) -> io::Result<()> {
        let Some(folder) = &self.0 else {
            return Ok(());
        };
        let path = folder.join(BEHIND);
        let done = if is_behind {
            File::create(&path).map(|_| ())
        } else {
            fs::remove_file(&path)
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            done => done?,
        }
        File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mapping_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let keeping = Keeping::below(Some(folder.path()));
        let none = keeping.read().expect("nothing");
        assert!(none.mapping.is_none() && !none.is_behind);
        for epoch in [3, 4] {
            let mapping = Mapping {
                epoch,
                ..Mapping::new(2)
            };
            keeping.keep(&mapping).expect("kept");
            let kept = keeping.read().expect("kept");
            assert_eq!(kept.mapping.as_deref(), Some(&mapping));
        }
        for is_behind in [true, true, false, false] {
            keeping.set_behind(is_behind).expect("kept");
            assert_eq!(keeping.read().expect("kept").is_behind, is_behind);
        }
        fs::write(folder.path().join("kept/mapping"), b"short").expect("written");
        assert!(keeping.read().is_err());
    }
}
