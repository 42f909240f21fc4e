//! A client that reads one reply at a time and believes nothing.

use super::HANG;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
}

impl Reply {
    #[track_caller]
    pub(crate) fn bulk(self) -> Vec<u8> {
        match self {
            Reply::Bulk(bytes) => bytes,
            other => panic!("no bulk string: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn int(self) -> i64 {
        match self {
            Reply::Int(value) => value,
            other => panic!("no integer: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn array(self) -> Vec<Reply> {
        match self {
            Reply::Array(all) => all,
            other => panic!("no array: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn error(self) -> String {
        match self {
            Reply::Error(text) => text,
            other => panic!("no error: {other:?}"),
        }
    }
}

pub(crate) fn ok() -> Reply {
    Reply::Status("OK".into())
}

/// A request as clients send it.
pub(crate) fn request<T: AsRef<[u8]>>(args: &[T]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    #[track_caller]
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).expect("set");
        stream.set_read_timeout(Some(HANG)).expect("set");
        stream.set_write_timeout(Some(HANG)).expect("set");
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// A second handle, for sending while another thread reads.
    pub(crate) fn sender(&self) -> TcpStream {
        self.stream().try_clone().expect("cloned")
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("sent");
    }

    /// Sends what may meet a connection that the server has closed.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub(crate) fn end(&self) {
        self.stream()
            .shutdown(Shutdown::Write)
            .expect("half closed");
    }

    #[track_caller]
    pub(crate) fn run<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Reply {
        self.send(&request(args));
        self.read()
    }

    /// Words that stand between blanks.
    #[track_caller]
    pub(crate) fn words(&mut self, line: &str) -> Reply {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    #[track_caller]
    pub(crate) fn ok<T: AsRef<[u8]>>(&mut self, args: &[T]) {
        assert_eq!(self.run(args), ok());
    }

    #[track_caller]
    pub(crate) fn read(&mut self) -> Reply {
        self.try_read().expect("a reply")
    }

    /// `Err` where the connection is gone.
    #[track_caller]
    pub(crate) fn try_read(&mut self) -> std::io::Result<Reply> {
        let mut line = Vec::new();
        let read = self.stream.read_until(b'\n', &mut line)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        assert!(line.ends_with(b"\r\n"), "no line: {}", line.escape_ascii());
        let text = String::from_utf8_lossy(&line[1..line.len() - 2]).into_owned();
        let number = || {
            text.parse::<i64>()
                .unwrap_or_else(|_| panic!("no number: {text}"))
        };
        Ok(match line[0] {
            b'+' => Reply::Status(text),
            b'-' => Reply::Error(text),
            b':' => Reply::Int(number()),
            b'$' | b'*' if number() < 0 => Reply::Null,
            b'$' => {
                let len = number() as usize;
                let mut bytes = vec![0; len + 2];
                self.stream.read_exact(&mut bytes)?;
                assert!(bytes.ends_with(b"\r\n"), "a bulk string of another length");
                bytes.truncate(len);
                Reply::Bulk(bytes)
            }
            b'*' => {
                let all: std::io::Result<Vec<_>> = (0..number()).map(|_| self.try_read()).collect();
                Reply::Array(all?)
            }
            _ => panic!("no reply: {}", line.escape_ascii()),
        })
    }

    /// Everything until the server closes; a reset ends it too.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut all) {
            let hang = matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            );
            assert!(!hang, "the server did not close: {}", all.escape_ascii());
        }
        all
    }

    /// The worker that has this connection, of `workers`.
    #[track_caller]
    pub(crate) fn worker(&mut self, workers: usize) -> usize {
        (self.run(&["CLIENT", "ID"]).int() as usize - 1) % workers
    }

    /// A field of `INFO`.
    #[track_caller]
    pub(crate) fn info(&mut self, field: &str) -> u64 {
        let text = String::from_utf8_lossy(&self.run(&["INFO", "everything"]).bulk()).into_owned();
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
        line.and_then(|v| v.parse().ok())
            .unwrap_or_else(|| panic!("INFO has no number {field}"))
    }
}
