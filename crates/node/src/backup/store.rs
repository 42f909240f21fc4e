//! Where backups go: a folder, or a bucket of an object store.

use super::record::{Record, StoredFile};
use anyhow::{Context, Result, bail, ensure};
use object_store::buffered::{BufReader, BufWriter};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes that are read, hashed and sent at a time.
const PIECE: usize = 1 << 20;

/// The longest list of a backup that is read.
const MOST_RECORD_BYTES: u64 = 64 << 20;

pub struct Store {
    store: Arc<dyn ObjectStore>,
    root: Path,
}

impl Store {
    /// Opens `s3://bucket/path`, `gs://…`, `az://…`, `file:///path` or a path.
    /// Credentials come from the environment, as the clouds' own tools have them.
    pub fn open(place: &str, create: bool) -> Result<Self> {
        let url = place
            .contains("://")
            .then(|| url::Url::parse(place))
            .transpose();
        let url = url.with_context(|| format!("'{place}' is no URL"))?;
        match url {
            Some(url) if url.scheme() != "file" => Self::open_cloud(&url),
            Some(url) => match url.to_file_path() {
                Ok(path) => Self::open_folder(&path, create),
                Err(()) => bail!("'{place}' is not a path: write file:///path"),
            },
            None => Self::open_folder(std::path::Path::new(place), create),
        }
    }

    fn open_folder(path: &std::path::Path, create: bool) -> Result<Self> {
        if create {
            std::fs::create_dir_all(path)
                .with_context(|| format!("cannot make the folder {}", path.display()))?;
        }
        ensure!(path.is_dir(), "there is no folder {}", path.display());
        let store = LocalFileSystem::new_with_prefix(path)
            .with_context(|| format!("cannot use the folder {}", path.display()))?;
        Ok(Self {
            // Whoever makes a backup may pull the plug right after.
            store: Arc::new(store.with_fsync(true)),
            root: Path::default(),
        })
    }

    fn open_cloud(url: &url::Url) -> Result<Self> {
        if cfg!(not(feature = "cloud")) {
            bail!(
                "this program was built for backups to folders only: build it with `--features cloud` for {}://",
                url.scheme()
            );
        }
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((
                name.into_string().ok()?.to_ascii_lowercase(),
                value.into_string().ok()?,
            ))
        });
        let (store, root) = object_store::parse_url_opts(url, variables)
            .with_context(|| format!("cannot use {url}"))?;
        Ok(Self {
            store: store.into(),
            root,
        })
    }

    fn file(&self, hash: &str) -> Path {
        self.root.clone().join("files").join(hash)
    }

    fn record(&self, id: &str) -> Path {
        self.root.clone().join("backups").join(format!("{id}.json"))
    }

    /// Whether the contents are there, whole.
    pub async fn has(&self, file: &StoredFile) -> Result<bool> {
        match self.store.head(&self.file(&file.blake3)).await {
            Ok(found) => Ok(found.size == file.bytes),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores contents. They appear at once and whole, or not at all: where
    /// they are not what was hashed before, they do not.
    pub async fn put(
        &self,
        file: &StoredFile,
        from: impl AsyncRead + Unpin,
        step: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let mut writer = BufWriter::new(Arc::clone(&self.store), self.file(&file.blake3));
        match copy(from, &mut writer, file, step).await {
            Ok(()) => Ok(writer.shutdown().await?),
            Err(error) => {
                // What fails here leaves pieces that nobody ever sees.
                let _ = writer.abort().await;
                Err(error)
            }
        }
    }

    /// Reads contents, and makes sure that they are what they were.
    pub async fn get(
        &self,
        file: &StoredFile,
        to: impl AsyncWrite + Unpin,
        step: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let path = self.file(&file.blake3);
        let found = match self.store.head(&path).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => bail!("{} is missing at {path}", file.name),
            Err(error) => return Err(error.into()),
        };
        let damaged = || format!("{} at {path} is damaged", file.name);
        ensure!(
            found.size == file.bytes,
            "{}: it has {} bytes and had {}",
            damaged(),
            found.size,
            file.bytes
        );
        let reader = BufReader::new(Arc::clone(&self.store), &found);
        copy(reader, to, file, step).await.with_context(damaged)
    }

    pub async fn put_record(&self, record: &Record) -> Result<()> {
        let payload = PutPayload::from(record.encode()?);
        self.store.put(&self.record(&record.id), payload).await?;
        Ok(())
    }

    pub async fn get_record(&self, id: &str) -> Result<Record> {
        let path = self.record(id);
        let found = match self.store.get(&path).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => {
                bail!("no backup '{id}': see `rufous backup list`")
            }
            Err(error) => return Err(error.into()),
        };
        ensure!(
            found.meta.size <= MOST_RECORD_BYTES,
            "{path} is too long for the list of a backup"
        );
        let bytes = found.bytes().await?;
        let record = Record::decode(&bytes).with_context(|| format!("cannot use {path}"))?;
        ensure!(
            record.id == id,
            "{path} is the list of '{}'",
            record.id.escape_debug()
        );
        Ok(record)
    }

    /// The ids of all backups, oldest first.
    pub async fn ids(&self) -> Result<Vec<String>> {
        let prefix = self.root.clone().join("backups");
        let listed = self.store.list_with_delimiter(Some(&prefix)).await?;
        let names = listed.objects.iter().filter_map(|object| {
            let name = object.location.filename()?;
            Some(name.strip_suffix(".json")?.to_owned())
        });
        let mut ids: Vec<_> = names.collect();
        ids.sort();
        Ok(ids)
    }

    /// The hashes and sizes of all contents.
    pub async fn contents(&self) -> Result<Vec<(String, u64)>> {
        let prefix = self.root.clone().join("files");
        let listed = self.store.list_with_delimiter(Some(&prefix)).await?;
        let all = listed
            .objects
            .iter()
            .filter_map(|object| Some((object.location.filename()?.to_owned(), object.size)));
        Ok(all.collect())
    }

    pub async fn remove_record(&self, id: &str) -> Result<()> {
        Ok(self.store.delete(&self.record(id)).await?)
    }

    pub async fn remove_contents(&self, hash: &str) -> Result<()> {
        Ok(self.store.delete(&self.file(hash)).await?)
    }
}

/// Copies exactly the bytes of a file, and compares their hash.
async fn copy(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    file: &StoredFile,
    mut step: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut from = from.take(file.bytes);
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; PIECE]);
    let mut done = 0;
    loop {
        let count = from.read(&mut piece).await?;
        if count == 0 {
            break;
        }
        hasher.update(&piece[..count]);
        to.write_all(&piece[..count]).await?;
        done += count as u64;
        step(done)?;
    }
    to.flush().await?;
    ensure!(
        done == file.bytes,
        "it ends after {done} bytes of {}",
        file.bytes
    );
    let hash = hasher.finalize().to_hex();
    ensure!(
        *hash == *file.blake3,
        "its hash is {hash} and should be {}",
        file.blake3
    );
    Ok(())
}
