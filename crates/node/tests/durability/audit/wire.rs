//! The protocol as one client needs it. Everything that goes wrong is an error,
//! for a node that is killed while it answers is what this is about.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any disk that is slow, shorter than anybody's patience.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(String),
    Error(String),
    Int(i64),
    Bulk(Option<Vec<u8>>),
    Array(Option<Vec<Reply>>),
}

pub(crate) type Words = Vec<Vec<u8>>;

/// The words of a command.
pub(crate) fn words<T: AsRef<[u8]>>(all: &[T]) -> Words {
    all.iter().map(|word| word.as_ref().to_vec()).collect()
}

pub(crate) fn encode(request: &Words, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", request.len()).as_bytes());
    for word in request {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::with_capacity(64 << 10, stream),
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn run<T: AsRef<[u8]>>(&mut self, request: &[T]) -> Result<Reply> {
        let mut bytes = Vec::new();
        encode(&words(request), &mut bytes);
        self.send(&bytes)?;
        self.read()
    }

    pub(crate) fn read(&mut self) -> Result<Reply> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let [kind, text @ .., b'\r', b'\n'] = &line[..] else {
            return Err(ErrorKind::UnexpectedEof.into());
        };
        let text = String::from_utf8_lossy(text).into_owned();
        let number = text.parse::<i64>();
        let number = number.map_err(|_| Error::new(ErrorKind::InvalidData, "no number"));
        Ok(match kind {
            b'+' => Reply::Status(text),
            b'-' => Reply::Error(text),
            b':' => Reply::Int(number?),
            b'$' => Reply::Bulk(match number? {
                len if len < 0 => None,
                len => {
                    let mut bytes = vec![0; len as usize + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(len as usize);
                    Some(bytes)
                }
            }),
            b'*' => Reply::Array(match number? {
                len if len < 0 => None,
                len => {
                    let all: Result<Vec<_>> = (0..len).map(|_| self.read()).collect();
                    Some(all?)
                }
            }),
            _ => return Err(Error::new(ErrorKind::InvalidData, text)),
        })
    }
}
