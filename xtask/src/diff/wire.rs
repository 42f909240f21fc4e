//! A client that sends one command at a time and keeps replies as they came.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// A reply with the byte that told its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reply {
    Text(u8, Vec<u8>),
    Nil(u8),
    /// Of a map: each key and its value.
    Many(u8, Vec<Reply>),
}

pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(host: &str, port: u16) -> Result<Self> {
        let stream = TcpStream::connect((host, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    pub(crate) fn call(&mut self, words: &[Vec<u8>]) -> Result<Reply> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.reader.get_mut().write_all(&request)?;
        let reply = self.reply();
        reply.with_context(|| format!("no reply to {}", shown(words)))
    }

    pub(crate) fn call_text(&mut self, command: &str) -> Result<Reply> {
        let words: Words = command
            .split_whitespace()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        self.call(&words)
    }

    fn reply(&mut self) -> Result<Reply> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        ensure!(line.ends_with(b"\r\n"), "the connection ended");
        line.truncate(line.len() - 2);
        let Some((&kind, rest)) = line.split_first() else {
            bail!("an empty line");
        };
        Ok(match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' => Reply::Text(kind, rest.to_vec()),
            b'_' => Reply::Nil(kind),
            b'$' | b'=' => match number(rest)? {
                -1 => Reply::Nil(kind),
                len => Reply::Text(kind, self.bulk(len)?),
            },
            b'*' | b'~' | b'>' | b'%' => match number(rest)? {
                -1 => Reply::Nil(kind),
                count => {
                    let count = if kind == b'%' { count * 2 } else { count };
                    let all: Result<_> = (0..count).map(|_| self.reply()).collect();
                    Reply::Many(kind, all?)
                }
            },
            _ => bail!("a reply of an unknown kind: {}", line.escape_ascii()),
        })
    }

    fn bulk(&mut self, len: i64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len)? + 2];
        self.reader.read_exact(&mut bytes)?;
        bytes.truncate(bytes.len() - 2);
        Ok(bytes)
    }
}

fn number(digits: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(digits)?;
    text.parse().with_context(|| format!("no length: {text}"))
}

impl Reply {
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Text(b'-', _))
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> &[Reply] {
        match self {
            Self::Many(_, items) => items,
            _ => &[],
        }
    }
}

/// As redis-cli shows them, on one line; a string alone is shown as it is with `#`.
impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(b'$', bytes) if f.alternate() => {
                write!(f, "{}", String::from_utf8_lossy(bytes))
            }
            Self::Text(b'$', bytes) => write!(f, "{}", quoted(bytes)),
            Self::Text(kind, bytes) => {
                write!(f, "{}{}", char::from(*kind), bytes.escape_ascii())
            }
            Self::Nil(kind) => write!(f, "{}nil", char::from(*kind)),
            Self::Many(kind, items) => {
                write!(f, "{}[", char::from(*kind))?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// The command as one would type it into redis-cli.
pub(crate) fn shown(words: &[Vec<u8>]) -> String {
    let plain = |word: &Vec<u8>| {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\".contains(byte);
        !word.is_empty() && word.iter().all(is_plain)
    };
    let one = |word: &Vec<u8>| match plain(word) {
        true => String::from_utf8_lossy(word).into_owned(),
        false => quoted(word),
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn replies_of_both_protocols() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let replies = b"*2\r\n$1\r\na\r\n%1\r\n+k\r\n,1.5\r\n$-1\r\n_\r\n-ERR no\r\n";
            stream.write_all(replies).unwrap();
            let _ = stream.read(&mut [0; 100]);
        });
        let mut client = Client::connect("127.0.0.1", port).unwrap();
        let ping = [b"PING".to_vec()];
        assert_eq!(
            client.call(&ping).unwrap().to_string(),
            "*[\"a\", %[+k, ,1.5]]"
        );
        assert_eq!(client.reply().unwrap(), Reply::Nil(b'$'));
        assert_eq!(client.reply().unwrap(), Reply::Nil(b'_'));
        assert!(client.reply().unwrap().is_error());
        drop(client);
        server.join().unwrap();
    }

    #[test]
    fn commands_are_shown_as_typed() {
        let words = vec![b"SET".to_vec(), Vec::new(), b"a b\x00".to_vec()];
        assert_eq!(shown(&words), "SET \"\" \"a b\\x00\"");
    }
}
