//! Data that is older than its node's cluster: it was written while the node was not in a cluster.
//!
//! A node that joins a cluster copies its slots from the nodes that have them, and drops its own
//! data of these slots. So a node with unclaimed data applies no mapping in which another node has
//! any slot. As the first node of a new cluster it keeps its data, which belongs to the cluster
//! from then on.
//!
//! A file beside the node's identity marks unclaimed data. It is created before the identity, and
//! removed before the first mapping is applied; so a start that fails at any point never drops the
//! only copy of data.

use rufous_kernel::durable::file::MANIFEST;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "unclaimed";
/// What the file contains where the data is of a cluster whose mapping is lost.
const OF_LOST_MAPPING: &[u8] = b"of a lost mapping";

/// See the module's description.
#[derive(Debug)]
pub struct Unclaimed {
    folder: PathBuf,
    mark: PathBuf,
    is_of_lost_mapping: bool,
}

impl Unclaimed {
    /// Examines a data folder, and the cluster's part of it. `knows`: that part has the node's
    /// identity.
    pub fn find(folder: &Path, cluster: &Path, knows: bool) -> io::Result<Option<Self>> {
        let mark = cluster.join(NAME);
        if !knows && folder.join(MANIFEST).exists() {
            fs::create_dir_all(cluster)?;
            File::create(&mark)?.sync_all()?;
            File::open(cluster)?.sync_all()?;
        }
        if !mark.exists() {
            return Ok(None);
        }
        Ok(Some(Self {
            folder: folder.to_owned(),
            is_of_lost_mapping: fs::read(&mark)? == OF_LOST_MAPPING,
            mark,
        }))
    }

    /// Notes that the data is of a cluster whose mapping is lost, if there is data.
    pub fn of_lost_mapping(folder: &Path, cluster: &Path) -> io::Result<Option<Self>> {
        if !folder.join(MANIFEST).exists() {
            return Ok(None);
        }
        let mark = cluster.join(NAME);
        fs::write(&mark, OF_LOST_MAPPING)?;
        File::open(&mark)?.sync_all()?;
        File::open(cluster)?.sync_all()?;
        Ok(Some(Self {
            folder: folder.to_owned(),
            is_of_lost_mapping: true,
            mark,
        }))
    }

    pub fn is_of_lost_mapping(&self) -> bool {
        self.is_of_lost_mapping
    }

    /// Why the node stops if other nodes of the cluster have slots.
    pub fn refusal(&self) -> String {
        let folder = self.folder.display();
        if self.is_of_lost_mapping {
            return format!(
                "the folder '{folder}' has data of a node of a cluster, and a new cluster without a trace of this node has \
                 begun: here the keys would be dropped, so the node stops. Restore the coordinator from a backup; or start \
                 each such node alone, without cluster-listen and coordinator, and write its data to the new cluster as a \
                 client does, then start it with an empty folder"
            );
        }
        format!(
            "the folder '{folder}' has data of a node that was in no cluster, and other nodes of this cluster have slots: \
             here their keys would be dropped, so the node stops. To go on, start it with an empty folder and write the data to the cluster \
             as a client does; or start it as the first node of a new cluster, where its data stays"
        )
    }

    /// The data belongs to the cluster from now on.
    pub fn claim(&self) -> io::Result<()> {
        match fs::remove_file(&self.mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => match self.mark.parent() {
                Some(cluster) => File::open(cluster)?.sync_all(),
                None => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_a_lost_mapping_is_recognised_in_later_starts() {
        let folder = tempfile::tempdir().expect("a folder");
        let (folder, cluster) = (folder.path(), folder.path().join("cluster"));
        fs::create_dir(&cluster).expect("made");
        let lost = || Unclaimed::of_lost_mapping(folder, &cluster).expect("found");
        assert!(lost().is_none(), "no data");
        fs::write(folder.join(MANIFEST), b"").expect("written");
        assert!(lost().expect("data").is_of_lost_mapping());
        let found = Unclaimed::find(folder, &cluster, true).expect("found");
        let found = found.expect("still");
        assert!(found.refusal().contains("Restore the coordinator"));
        found.claim().expect("claimed");
        let found = Unclaimed::find(folder, &cluster, true).expect("found");
        assert!(found.is_none());
    }

    #[test]
    fn data_is_a_clusters_once_and_for_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let (folder, cluster) = (folder.path(), folder.path().join("cluster"));
        let find = |knows| Unclaimed::find(folder, &cluster, knows).expect("found");
        assert!(find(false).is_none(), "an empty one");
        fs::write(folder.join(MANIFEST), b"").expect("written");
        assert!(find(true).is_none(), "of a node of a cluster");
        assert!(find(false).is_some());
        // In every later start.
        let unclaimed = find(true).expect("still");
        unclaimed.claim().expect("claimed");
        unclaimed.claim().expect("claimed again");
        assert!(find(true).is_none());
    }
}
