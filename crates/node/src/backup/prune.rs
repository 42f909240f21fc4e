//! `rufous backup prune`: removes old backups, and contents that none needs.

use super::store::Store;
use anyhow::{Context, Result};
use std::collections::BTreeSet;

/// What was removed.
pub struct Pruned {
    pub backups: Vec<String>,
    pub files: usize,
    pub bytes: u64,
}

/// Keeps the newest `keep` backups. Lists go before contents, so that no backup
/// is listed whose contents are gone.
pub async fn prune(store: &Store, keep: usize) -> Result<Pruned> {
    let mut ids = store.ids().await?;
    let kept = ids.split_off(ids.len().saturating_sub(keep));
    let mut needed = BTreeSet::new();
    for id in &kept {
        let record = store.get_record(id).await;
        let record =
            record.with_context(|| format!("nothing was removed, as {id} cannot be read"))?;
        needed.extend(record.files.into_iter().map(|file| file.blake3));
    }
    for id in &ids {
        store.remove_record(id).await?;
    }
    let mut pruned = Pruned {
        backups: ids,
        files: 0,
        bytes: 0,
    };
    for (hash, bytes) in store.contents().await? {
        if !needed.contains(&hash) {
            store.remove_contents(&hash).await?;
            pruned.files += 1;
            pruned.bytes += bytes;
        }
    }
    Ok(pruned)
}
