//! The node whose files are backed up: a connection that keeps them in place.

use super::record::MANIFEST;
use anyhow::{Context, Result, anyhow, bail, ensure};
use rufous_kernel::durable::{DataFile, Manifest};
use rufous_resp::{Reply, ReplyParser};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the node may take to answer. A pin may have to wait for a snapshot.
const PATIENCE: Duration = Duration::from_secs(600);

/// The node is told that we are still there: it may drop silent clients.
const PING_PERIOD: Duration = Duration::from_secs(1);

pub struct Server {
    stream: TcpStream,
    parser: ReplyParser,
    received: Vec<u8>,
    spoke: Instant,
}

/// The files of an instant.
#[derive(Debug, PartialEq, Eq)]
pub struct Pin {
    pub id: u64,
    pub unix_us: u64,
    /// Without the seed of the hash tables: see [`Pin::whole_manifest`].
    pub manifest: Vec<u8>,
    pub files: Vec<(String, u64)>,
}

impl Pin {
    /// The manifest with the seed of the data folder, which the server tells no client.
    pub fn whole_manifest(&self, folder: &Path) -> Result<Vec<u8>> {
        let path = folder.join(MANIFEST);
        let bytes = std::fs::read(&path).with_context(|| {
            format!(
                "cannot read {}: --dir has to be the data folder of that very server",
                path.display()
            )
        })?;
        let known =
            Manifest::decode(&bytes).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let pinned = Manifest::decode(&self.manifest).map_err(anyhow::Error::msg)?;
        let hash_seed = known.hash_seed;
        Ok(Manifest {
            hash_seed,
            ..pinned
        }
        .encode())
    }
}

impl Server {
    pub fn connect(address: &str, password: Option<&str>) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .with_context(|| format!("cannot connect to the server at {address}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut server = Self {
            stream,
            parser: ReplyParser::default(),
            received: Vec::new(),
            spoke: Instant::now(),
        };
        if let Some(password) = password {
            server.call(&["AUTH", password])?;
        }
        Ok(server)
    }

    /// Sends a command; a reply that is an error is one here.
    fn call(&mut self, words: &[&str]) -> Result<Reply> {
        let mut request = Vec::new();
        rufous_resp::encode::request(&mut request, words);
        self.stream
            .write_all(&request)
            .context("the server is gone")?;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let (done, reply) = self
                .parser
                .parse(&self.received)
                .map_err(anyhow::Error::msg)?;
            self.received.drain(..done);
            match reply {
                Some(Reply::Error(text)) => bail!(
                    "the server refuses {}: {}",
                    words[0],
                    String::from_utf8_lossy(&text)
                ),
                Some(reply) => {
                    self.spoke = Instant::now();
                    return Ok(reply);
                }
                None => {}
            }
            let count = self
                .stream
                .read(&mut chunk)
                .context("the server does not answer")?;
            ensure!(count > 0, "the server closed the connection");
            self.received.extend_from_slice(&chunk[..count]);
        }
    }

    /// Where the server says its files are.
    pub fn folder(&mut self) -> Result<String> {
        match self.call(&["CONFIG", "GET", "dir"])? {
            Reply::Array(words) => match words.as_slice() {
                [_, Reply::Bulk(dir)] => Ok(String::from_utf8_lossy(dir).into_owned()),
                _ => bail!("the server does not report its data folder: pass it with --dir"),
            },
            _ => bail!("the server does not report its data folder: pass it with --dir"),
        }
    }

    pub fn pin(&mut self) -> Result<Pin> {
        let reply = self.call(&["BACKUP", "PIN"])?;
        parse_pin(reply).context("the server sent an unexpected reply to BACKUP PIN")
    }

    /// Keeps the connection, and with it the pin, alive.
    pub fn keep_alive(&mut self) -> Result<()> {
        if self.spoke.elapsed() >= PING_PERIOD {
            self.call(&["PING"]).context("the pinned files are lost")?;
        }
        Ok(())
    }

    /// Lets go of the pin; false where the server had already.
    pub fn unpin(&mut self, id: u64) -> Result<bool> {
        let reply = self.call(&["BACKUP", "UNPIN", &id.to_string()])?;
        Ok(reply == Reply::Integer(1))
    }
}

fn parse_pin(reply: Reply) -> Option<Pin> {
    let Reply::Array(words) = reply else {
        return None;
    };
    let mut pin = Pin {
        id: 0,
        unix_us: 0,
        manifest: Vec::new(),
        files: Vec::new(),
    };
    for pair in words.chunks(2) {
        let [Reply::Bulk(name), value] = pair else {
            return None;
        };
        match (name.as_slice(), value) {
            (b"id", Reply::Integer(id)) => pin.id = u64::try_from(*id).ok()?,
            (b"unix-us", Reply::Integer(at)) => pin.unix_us = u64::try_from(*at).ok()?,
            (b"manifest-without-seed", Reply::Bulk(bytes)) => pin.manifest.clone_from(bytes),
            (b"files", Reply::Array(files)) => {
                pin.files = files.iter().map(parse_file).collect::<Option<_>>()?;
            }
            _ => {}
        }
    }
    (!pin.manifest.is_empty()).then_some(pin)
}

fn parse_file(reply: &Reply) -> Option<(String, u64)> {
    let Reply::Array(pair) = reply else {
        return None;
    };
    let [Reply::Bulk(name), Reply::Integer(bytes)] = pair.as_slice() else {
        return None;
    };
    let name = String::from_utf8(name.clone()).ok()?;
    // Only such files are looked for in the folder.
    DataFile::parse(&name)?;
    Some((name, u64::try_from(*bytes).ok()?))
}
