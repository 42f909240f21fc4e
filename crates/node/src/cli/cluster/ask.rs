//! A connection to a node, for one question after another.

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rufous_resp::reply::{Reply, ReplyParser};
use rufous_server::cluster::status::{Node, Status};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer: thousands of nodes have a line each.
const MOST: usize = 16 << 20;

/// Whom to ask.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Password {
    /// The password of the nodes
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "RUFOUS_REQUIREPASS",
        hide_env_values = true
    )]
    password: Option<String>,
}

pub(super) struct Connection {
    at: String,
    stream: TcpStream,
    parser: ReplyParser,
    received: Vec<u8>,
}

impl Connection {
    pub(super) fn open(at: &str, password: &Password) -> Result<Self> {
        let what = || format!("cannot reach {at}");
        let mut all = at
            .to_socket_addrs()
            .with_context(|| format!("'{at}' is not an address such as 127.0.0.1:7001"))?;
        let found = all.next().with_context(what)?;
        let stream = TcpStream::connect_timeout(&found, PATIENCE).with_context(what)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut connection = Self {
            at: at.to_owned(),
            stream,
            parser: ReplyParser::default(),
            received: Vec::new(),
        };
        if let Some(password) = password.password.as_deref().filter(|all| !all.is_empty()) {
            connection.call(&["AUTH", password])?;
        }
        Ok(connection)
    }

    /// The reply, which is no error.
    pub(super) fn call(&mut self, words: &[&str]) -> Result<Reply> {
        let no_answer = format!("no answer from {}", self.at);
        let mut request = Vec::new();
        rufous_resp::encode::request(&mut request, words);
        self.stream
            .write_all(&request)
            .with_context(|| no_answer.clone())?;
        loop {
            let parsed = self.parser.parse(&self.received);
            let (done, reply) = parsed
                .ok()
                .with_context(|| format!("{} does not speak the Redis protocol", self.at))?;
            self.received.drain(..done);
            match reply {
                Some(Reply::Error(why)) => {
                    bail!("{}: {}", self.at, String::from_utf8_lossy(&why))
                }
                Some(reply) => return Ok(reply),
                None => {}
            }
            let mut bytes = [0; 16 * 1024];
            let read = self
                .stream
                .read(&mut bytes)
                .with_context(|| no_answer.clone())?;
            ensure!(read > 0 && self.received.len() < MOST, "{no_answer}");
            self.received.extend_from_slice(&bytes[..read]);
        }
    }

    pub(super) fn status(&mut self) -> Result<Status> {
        let Reply::Bulk(text) = self.call(&["CLUSTER", "STATUS"])? else {
            bail!("{} sent an unexpected reply; is it a Rufous node?", self.at);
        };
        let status = Status::parse(&String::from_utf8_lossy(&text));
        status
            .with_context(|| format!("{} sent an unexpected reply; is it a Rufous node?", self.at))
    }
}

pub(super) fn status_at(at: &str, password: &Password) -> Result<Status> {
    Connection::open(at, password)?.status()
}

/// The node that is meant: by its address, its number (`n2`), or how its id begins.
pub(super) fn find<'a>(status: &'a Status, name: &str) -> Result<&'a Node> {
    let is_meant = |node: &&Node| {
        [&node.plain, &node.clients, &node.peer].contains(&&name.to_owned())
            || name == format!("n{}", node.number)
            || (name.len() >= 4 && node.id.starts_with(&name.to_ascii_lowercase()))
    };
    let mut found = status.nodes.iter().filter(is_meant);
    let first = found.next().with_context(|| {
        let all: Vec<_> = status
            .nodes
            .iter()
            .map(|node| node.plain.as_str())
            .collect();
        format!("unknown node '{name}'; nodes: {}", all.join(", "))
    })?;
    ensure!(found.next().is_none(), "several nodes are '{name}'");
    Ok(first)
}
