//! `rufous backup restore` and `verify`.

use super::record::{MANIFEST, Record};
use super::store::Store;
use super::{human, tell};
use anyhow::{Context, Result, ensure};
use rufous::runtime::lock_data_dir;
use rufous_base::disk::FileInfo;
use rufous_kernel::durable::Manifest;
use rufous_kernel::durable::check::{Source, check};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Makes a data folder of a backup. The manifest comes last: a folder that was
/// left half-way is none that a node would start with.
pub async fn restore(store: &Store, record: &Record, folder: &Path) -> Result<()> {
    if let Ok(mut entries) = std::fs::read_dir(folder) {
        ensure!(
            entries.next().is_none(),
            "the folder {} is not empty: restore to a new one",
            folder.display()
        );
    }
    let lock = lock_data_dir(folder)?;
    check_list(record)?;
    for file in &record.files {
        let name = if file.name == MANIFEST {
            "manifest.new"
        } else {
            &file.name
        };
        let path = folder.join(name);
        let cannot = || format!("cannot write {}", path.display());
        let mut target = tokio::fs::File::create_new(&path)
            .await
            .with_context(cannot)?;
        store.get(file, &mut target, |_| Ok(())).await?;
        target
            .set_len(file.bytes + file.zeros)
            .await
            .with_context(cannot)?;
        target.sync_all().await.with_context(cannot)?;
        if file.name != MANIFEST {
            tell(format_args!("  {}: {}", file.name, human(file.bytes)));
        }
    }
    let bytes = std::fs::read(folder.join("manifest.new"))?;
    check_manifest(&bytes, record).context("the manifest of the backup")?;
    let directory = std::fs::File::open(folder)?;
    directory.sync_all()?;
    std::fs::rename(folder.join("manifest.new"), folder.join(MANIFEST))?;
    directory.sync_all()?;
    drop(lock);
    check_folder(folder)
}

/// Restores to a scratch folder, and looks at it as a start would.
pub async fn verify(store: &Store, record: &Record) -> Result<()> {
    let scratch = tempfile::Builder::new()
        .prefix("rufous-verify-")
        .tempdir()?;
    restore(store, record, &scratch.path().join("data")).await
}

/// Makes sure that a node would start from the folder.
fn check_folder(folder: &Path) -> Result<()> {
    let report = check(&mut Files { folder }, 0).context("cannot read what was restored")?;
    report
        .notes
        .iter()
        .for_each(|note| tell(format_args!("  {note}")));
    let damage: Vec<_> = report.damage.iter().map(ToString::to_string).collect();
    ensure!(
        damage.is_empty(),
        "no node would start from it: {}",
        damage.join("; ")
    );
    Ok(())
}

/// The files of a folder that no node uses.
struct Files<'a> {
    folder: &'a Path,
}

impl Source for Files<'_> {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        let entries = std::fs::read_dir(self.folder)?.map(|entry| {
            let entry = entry?;
            Ok(FileInfo {
                file: entry.file_name().to_string_lossy().into(),
                bytes: entry.metadata()?.len(),
            })
        });
        entries.collect()
    }

    fn read(&mut self, file: &str, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(self.folder.join(file))?;
        file.seek(SeekFrom::Start(at))?;
        let mut found = Vec::new();
        file.take(bytes as u64).read_to_end(&mut found)?;
        Ok(found)
    }
}

fn check_list(record: &Record) -> Result<()> {
    let mut names = record.files.iter().map(|file| &file.name);
    ensure!(
        names.any(|name| name == MANIFEST),
        "the backup has no manifest"
    );
    Ok(())
}

/// The snapshots that the manifest names have to be among the files.
fn check_manifest(bytes: &[u8], record: &Record) -> Result<()> {
    let manifest = Manifest::decode(bytes).map_err(anyhow::Error::msg)?;
    for snapshot in &manifest.snapshots {
        let name = &*snapshot.file;
        ensure!(
            record.files.iter().any(|file| file.name == name),
            "it names {name}, which is not in the backup"
        );
    }
    Ok(())
}
