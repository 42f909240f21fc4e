//! A small blocking client for everything around the measurements: readiness, server facts, owners
//! of keys. Replies are bounded, since what answers on a port may not be what was expected.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::procfs;

const TIMEOUT: Duration = Duration::from_secs(120);
const MAX_LINE: u64 = 64 * 1024;
const MAX_BULK: u64 = 16 * 1024 * 1024;
const MAX_ARRAY: u64 = 1024 * 1024;
const MAX_DEPTH: usize = 8;

/// A RESP2 reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Reply>),
}

impl Reply {
    pub fn integer(self) -> Result<i64> {
        match self {
            Self::Integer(n) => Ok(n),
            Self::Error(text) => bail!("the server answered: {text}"),
            other => bail!("expected an integer, the server answered {other:?}"),
        }
    }

    pub fn text(self) -> Result<String> {
        match self {
            Self::Simple(text) => Ok(text),
            Self::Bulk(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Self::Error(text) => bail!("the server answered: {text}"),
            other => bail!("expected text, the server answered {other:?}"),
        }
    }
}

/// `words` as a RESP command.
pub fn encode(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// The first address of a host.
pub fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let mut found = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("looking up {host}"))?;
    found
        .next()
        .with_context(|| format!("{host} has no address"))
}

/// One blocking connection.
pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Result<Self> {
        Self::connect_within(addr, TIMEOUT)
    }

    /// One that waits no longer than that for a connection, or for more of a reply.
    pub fn connect_within(addr: SocketAddr, timeout: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, timeout)
            .with_context(|| format!("connecting to {addr}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    pub fn call(&mut self, words: &[&str]) -> Result<Reply> {
        let mut out = Vec::new();
        let bytes: Vec<&[u8]> = words.iter().map(|w| w.as_bytes()).collect();
        encode(&mut out, &bytes);
        self.send(&out)?;
        self.receive()
            .with_context(|| format!("asking for {}", words.join(" ")))
    }

    /// Sends encoded commands; the caller receives as many replies.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.reader
            .get_mut()
            .write_all(bytes)
            .context("writing to the server")
    }

    /// False if the server has ended the connection, as a client finds out that looks before it sends.
    pub fn is_open(&self) -> bool {
        let stream = self.reader.get_ref();
        let peeked = stream
            .set_nonblocking(true)
            .and_then(|()| stream.peek(&mut [0]));
        let waits = matches!(&peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
        stream.set_nonblocking(false).is_ok() && waits
    }

    pub fn receive(&mut self) -> Result<Reply> {
        read_reply(&mut self.reader, 0)
    }

    /// The server's process by its own account, if that is a process of this machine.
    pub fn local_pid(&mut self) -> Option<u32> {
        if !self.reader.get_ref().peer_addr().ok()?.ip().is_loopback() {
            return None;
        }
        let info = self.call(&["INFO", "server"]).ok()?.text().ok()?;
        let pid = info
            .lines()
            .find_map(|line| line.strip_prefix("process_id:"))?;
        let pid = pid.trim().parse().ok()?;
        procfs::cpu_time(pid).ok().map(|_| pid)
    }

    /// The connection itself, with nothing of it read ahead.
    pub fn into_stream(self) -> Result<TcpStream> {
        if !self.reader.buffer().is_empty() {
            bail!("the server answered more than it was asked");
        }
        Ok(self.reader.into_inner())
    }
}

fn read_reply(reader: &mut impl BufRead, depth: usize) -> Result<Reply> {
    let mut line = Vec::new();
    reader
        .by_ref()
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)
        .context("reading a reply")?;
    let Some(line) = line.strip_suffix(b"\r\n") else {
        bail!("the server broke off its reply")
    };
    let Some((kind, rest)) = line.split_first() else {
        bail!("the server sent an empty reply")
    };
    let rest = String::from_utf8_lossy(rest).into_owned();
    Ok(match kind {
        b'+' => Reply::Simple(rest),
        b'-' => Reply::Error(rest),
        b':' => Reply::Integer(rest.parse().context("a malformed integer")?),
        b'_' => Reply::Nil,
        b'$' | b'*' if rest == "-1" => Reply::Nil,
        b'$' => Reply::Bulk(read_bulk(reader, bounded(&rest, MAX_BULK)?)?),
        b'*' if depth < MAX_DEPTH => {
            let count = bounded(&rest, MAX_ARRAY)?;
            Reply::Array(
                (0..count)
                    .map(|_| read_reply(reader, depth + 1))
                    .collect::<Result<_>>()?,
            )
        }
        _ => bail!("not a RESP2 reply: {}", String::from_utf8_lossy(line)),
    })
}

fn bounded(text: &str, limit: u64) -> Result<u64> {
    let n: u64 = text.parse().context("a malformed length")?;
    if n > limit {
        bail!("a reply of length {n} is more than this client takes");
    }
    Ok(n)
}

fn read_bulk(reader: &mut impl BufRead, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader
        .by_ref()
        .take(len + 2)
        .read_to_end(&mut bytes)
        .context("reading a bulk reply")?;
    if bytes.len() as u64 != len + 2 || !bytes.ends_with(b"\r\n") {
        bail!("a bulk reply of another length than announced");
    }
    bytes.truncate(len as usize);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Reply> {
        read_reply(&mut std::io::Cursor::new(bytes), 0)
    }

    #[test]
    fn replies_parse() {
        assert_eq!(parse(b"+OK\r\n").unwrap(), Reply::Simple("OK".into()));
        assert_eq!(parse(b"-ERR x\r\n").unwrap(), Reply::Error("ERR x".into()));
        assert_eq!(parse(b":-3\r\n").unwrap(), Reply::Integer(-3));
        assert_eq!(
            parse(b"$3\r\na\r\n\r\n").unwrap(),
            Reply::Bulk(b"a\r\n".to_vec())
        );
        assert_eq!(parse(b"$-1\r\n").unwrap(), Reply::Nil);
        let array = Reply::Array(vec![Reply::Integer(1), Reply::Bulk(b"b".to_vec())]);
        assert_eq!(parse(b"*2\r\n:1\r\n$1\r\nb\r\n").unwrap(), array);
    }

    #[test]
    fn broken_replies_are_errors() {
        let deep = b"*1\r\n".repeat(100);
        for bytes in [
            &b""[..],
            b"+OK",
            b"\r\n",
            b":x\r\n",
            b"$5\r\nab",
            b"$99999999999\r\n",
            b"!1\r\n",
            &deep,
        ] {
            assert!(
                parse(bytes).is_err(),
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}
