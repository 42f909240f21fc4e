//! `rufous backup create`: pins the files of a node, and stores those that are new.

use super::record::{MANIFEST, Record, StoredFile};
use super::server::{Pin, Server};
use super::store::Store;
use super::{human, tell};
use anyhow::{Context, Result, ensure};
use rufous_kernel::durable::file::HEADER_BYTES;
use rufous_kernel::durable::{DataFile, Manifest};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What travelled.
pub struct Created {
    pub record: Record,
    pub sent_files: usize,
    pub sent_bytes: u64,
}

pub async fn create(server: &mut Server, folder: &Path, store: &Store) -> Result<Created> {
    let pin = server.pin()?;
    let manifest_bytes = pin.whole_manifest(folder)?;
    let mut files = Vec::new();
    let (mut sent_files, mut sent_bytes) = (0, 0);
    for (name, bytes) in &pin.files {
        let path = folder.join(name);
        let file = describe(&path, name, *bytes, server)?;
        if store.has(&file).await? {
            tell(format_args!(
                "  {name}: {} already stored",
                human(file.bytes)
            ));
        } else {
            let open = tokio::fs::File::open(&path).await;
            let open = open.with_context(|| format!("cannot open {}", path.display()))?;
            store
                .put(&file, open, |_| server.keep_alive())
                .await
                .with_context(|| format!("cannot store {name}"))?;
            tell(format_args!("  {name}: {} stored", human(file.bytes)));
            sent_files += 1;
            sent_bytes += file.bytes;
        }
        files.push(file);
    }
    for name in idle_logs(&pin)? {
        let file = StoredFile {
            name,
            bytes: 0,
            zeros: HEADER_BYTES as u64,
            blake3: blake3::hash(&[]).to_hex().to_string(),
        };
        if !store.has(&file).await? {
            store.put(&file, tokio::io::empty(), |_| Ok(())).await?;
        }
        files.push(file);
    }
    let manifest = StoredFile {
        name: MANIFEST.into(),
        bytes: manifest_bytes.len() as u64,
        zeros: 0,
        blake3: blake3::hash(&manifest_bytes).to_hex().to_string(),
    };
    if !store.has(&manifest).await? {
        store
            .put(&manifest, manifest_bytes.as_slice(), |_| Ok(()))
            .await?;
    }
    files.push(manifest);
    let record = Record::new(pin.unix_us / 1000, (pin.unix_us % 65_536) as u16, files);
    // Everything else is there: now it is a backup.
    store
        .put_record(&record)
        .await
        .context("cannot store the list of the backup")?;
    if !server.unpin(pin.id).unwrap_or(false) {
        tell("the server had let go of its files before the end; the backup is whole all the same");
    }
    Ok(Created {
        record,
        sent_files,
        sent_bytes,
    })
}

/// A worker that has logged nothing since the snapshot has no file of a log; a
/// start takes that for a log that was lost, where another worker has one. So
/// each gets one that was made ahead and never used: zeros where its header
/// would be.
fn idle_logs(pin: &Pin) -> Result<Vec<String>> {
    let manifest = Manifest::decode(&pin.manifest).map_err(anyhow::Error::msg)?;
    let logs = pin
        .files
        .iter()
        .filter_map(|(name, _)| match DataFile::parse(name) {
            Some(DataFile::Log { worker, .. }) => Some(worker),
            _ => None,
        });
    let with: BTreeSet<u16> = logs.collect();
    if with.is_empty() {
        return Ok(Vec::new());
    }
    let without = (0..manifest.workers).filter(|worker| !with.contains(worker));
    let name = |worker| {
        let generation = manifest.logs_from;
        let file = DataFile::Log {
            generation,
            worker,
            index: 0,
        };
        file.name().to_string()
    };
    Ok(without.map(name).collect())
}

/// Reads a file once for its hash. Logs may have grown behind what is pinned.
fn describe(path: &Path, name: &str, bytes: u64, server: &mut Server) -> Result<StoredFile> {
    let file = File::open(path).with_context(|| {
        format!(
            "cannot open {}: --dir has to be the data folder of that very server",
            path.display()
        )
    })?;
    let mut file = file.take(bytes);
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; 1 << 20]);
    let (mut done, mut zeros) = (0, 0);
    loop {
        let count = file
            .read(&mut piece)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if count == 0 {
            break;
        }
        // Zeros count as contents only once something else follows.
        match piece[..count].iter().rposition(|byte| *byte != 0) {
            None => zeros += count as u64,
            Some(last) => {
                hash_zeros(&mut hasher, zeros);
                hasher.update(&piece[..=last]);
                zeros = (count - last - 1) as u64;
            }
        }
        done += count as u64;
        server.keep_alive()?;
    }
    ensure!(
        done == bytes,
        "{} has {done} bytes instead of {bytes}: --dir has to be the data folder of that very server",
        path.display()
    );
    Ok(StoredFile {
        name: name.to_owned(),
        bytes: bytes - zeros,
        zeros,
        blake3: hasher.finalize().to_hex().to_string(),
    })
}

fn hash_zeros(hasher: &mut blake3::Hasher, mut count: u64) {
    let zeros = [0; 4096];
    while count > 0 {
        let part = count.min(zeros.len() as u64);
        hasher.update(&zeros[..part as usize]);
        count -= part;
    }
}
