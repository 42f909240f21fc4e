//! One connection and the batch it has in flight: written whole, then every reply checked.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::reply::{Check, check};

/// Kinds of operation that one run tells apart.
pub const MAX_CLASSES: usize = 8;
/// How much is read at once; a larger reply makes the buffer grow.
const READ_BYTES: usize = 256 * 1024;

/// One expected reply, or one part of an array reply.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    pub check: Check,
    /// The kind of operation that this reply completes, if it completes one.
    pub class: Option<u8>,
    /// The operation began with the batch before this one, and so did its latency.
    pub since_previous: bool,
    /// A number that the source wants to hear of when this reply has come.
    pub notify: Option<u64>,
}

impl Expect {
    /// A reply, or part of one, which completes no operation.
    pub fn part(check: Check) -> Self {
        Self {
            check,
            class: None,
            since_previous: false,
            notify: None,
        }
    }

    pub fn completing(check: Check, class: u8) -> Self {
        Self {
            check,
            class: Some(class),
            since_previous: false,
            notify: None,
        }
    }
}

/// Requests to send at once, and the replies that they must get, in order.
#[derive(Debug, Default)]
pub struct Batch {
    pub out: Vec<u8>,
    pub expects: Vec<Expect>,
}

/// What one read brought.
#[derive(Debug)]
pub struct Received {
    /// Operations completed, by class, begun with this batch…
    pub completed: [u64; MAX_CLASSES],
    /// …and begun with the batch before.
    pub completed_since_previous: [u64; MAX_CLASSES],
    /// The whole batch has been answered.
    pub finished: bool,
}

/// A buffer that all connections of a thread read into.
#[derive(Debug)]
pub struct ReadBuffer {
    bytes: Vec<u8>,
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self {
            bytes: vec![0; READ_BYTES],
        }
    }
}

/// A non-blocking stream with at most one batch in flight.
#[derive(Debug)]
pub struct Conn<T> {
    pub stream: T,
    batch: Batch,
    written: usize,
    answered: usize,
    /// An incomplete reply at the end of what was read so far.
    tail: Vec<u8>,
    pub started: Instant,
    pub previously_started: Instant,
}

impl<T: Read + Write> Conn<T> {
    pub fn new(stream: T) -> Self {
        let now = Instant::now();
        Self {
            stream,
            batch: Batch::default(),
            written: 0,
            answered: 0,
            tail: Vec::new(),
            started: now,
            previously_started: now,
        }
    }

    pub fn in_flight(&self) -> bool {
        self.answered < self.batch.expects.len()
    }

    /// Replaces the answered batch by what `fill` writes; false if that is nothing.
    pub fn begin(&mut self, now: Instant, fill: impl FnOnce(&mut Batch)) -> bool {
        debug_assert!(!self.in_flight() && self.tail.is_empty());
        self.batch.out.clear();
        self.batch.expects.clear();
        self.written = 0;
        self.answered = 0;
        self.previously_started = self.started;
        self.started = now;
        fill(&mut self.batch);
        !self.batch.expects.is_empty()
    }

    /// Writes as much as the socket takes.
    pub fn write(&mut self) -> Result<()> {
        while self.written < self.batch.out.len() {
            match self.stream.write(&self.batch.out[self.written..]) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(n) => self.written += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e).context("writing to the server"),
            }
        }
        Ok(())
    }

    /// Reads what has come, checks it and reports it; `notify` hears of the marked replies.
    ///
    /// A read that does not fill the buffer has emptied the socket, and a finished batch leaves
    /// nothing to come: both save the extra read that edge-triggered polling otherwise needs.
    pub fn receive(
        &mut self,
        buffer: &mut ReadBuffer,
        mut notify: impl FnMut(u64),
    ) -> Result<Received> {
        let mut received = Received {
            completed: [0; MAX_CLASSES],
            completed_since_previous: [0; MAX_CLASSES],
            finished: false,
        };
        loop {
            let kept = self.tail.len();
            if buffer.bytes.len() < kept + READ_BYTES {
                buffer.bytes.resize(kept + READ_BYTES, 0);
            }
            buffer.bytes[..kept].copy_from_slice(&self.tail);
            let room = buffer.bytes.len() - kept;
            let Some(n) = self.read(&mut buffer.bytes[kept..])? else {
                break;
            };
            self.tail.clear();
            let used = self.take_replies(&buffer.bytes[..kept + n], &mut received, &mut notify)?;
            self.tail.extend_from_slice(&buffer.bytes[used..kept + n]);
            if n < room || !self.in_flight() {
                break;
            }
        }
        received.finished = !self.in_flight();
        if received.finished && !self.tail.is_empty() {
            bail!("the server answered more than it was asked");
        }
        Ok(received)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>> {
        loop {
            match self.stream.read(into) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(n) => return Ok(Some(n)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err::<_, io::Error>(e).context("reading from the server"),
            }
        }
    }

    fn take_replies(
        &mut self,
        bytes: &[u8],
        received: &mut Received,
        notify: &mut impl FnMut(u64),
    ) -> Result<usize> {
        let mut at = 0;
        while let Some(expect) = self.batch.expects.get(self.answered) {
            let Some(taken) = check(&bytes[at..], expect.check)? else {
                break;
            };
            at += taken;
            self.answered += 1;
            if let Some(class) = expect.class {
                let counts = if expect.since_previous {
                    &mut received.completed_since_previous
                } else {
                    &mut received.completed
                };
                counts[usize::from(class)] += 1;
            }
            if let Some(number) = expect.notify {
                notify(number);
            }
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Hands out the scripted chunks one read at a time and takes a few bytes per write.
    struct Scripted {
        reads: VecDeque<Vec<u8>>,
        written: Vec<u8>,
    }

    impl Read for Scripted {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let chunk = self.reads.pop_front().ok_or(ErrorKind::WouldBlock)?;
            into[..chunk.len()].copy_from_slice(&chunk);
            Ok(chunk.len())
        }
    }

    impl Write for Scripted {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            let n = from.len().min(3);
            self.written.extend_from_slice(&from[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn begun(reads: &[&[u8]]) -> Conn<Scripted> {
        let reads = reads.iter().map(|r| r.to_vec()).collect();
        let mut conn = Conn::new(Scripted {
            reads,
            written: Vec::new(),
        });
        assert!(conn.begin(Instant::now(), |batch| {
            batch.out.extend_from_slice(b"requests");
            let value = Check::Value {
                first: *b"00000001",
                len: 8,
            };
            batch.expects.push(Expect::part(Check::Array(2)));
            batch.expects.push(Expect::part(value));
            batch.expects.push(Expect::completing(value, 2));
            let mut last = Expect::completing(Check::Simple, 1);
            last.since_previous = true;
            last.notify = Some(77);
            batch.expects.push(last);
        }));
        conn
    }

    #[test]
    fn split_replies_complete_in_order() {
        let mut conn = begun(&[
            b"*2\r\n$8\r\n00000",
            b"001\r\n$8\r\n00000001\r",
            b"\n+O",
            b"K\r\n",
        ]);
        conn.write().unwrap();
        assert_eq!(conn.stream.written, b"requests");
        let (mut buffer, mut heard) = (ReadBuffer::default(), Vec::new());
        let mut classes = [0; MAX_CLASSES];
        for step in 0..4 {
            let got = conn.receive(&mut buffer, |n| heard.push(n)).unwrap();
            classes[2] += got.completed[2];
            classes[1] += got.completed_since_previous[1];
            assert_eq!(got.finished, step == 3);
        }
        assert_eq!((classes[2], classes[1], heard), (1, 1, vec![77]));
        assert!(!conn.in_flight());
    }

    #[test]
    fn a_wrong_value_and_a_surplus_reply_are_errors() {
        let mut buffer = ReadBuffer::default();
        let mut wrong = begun(&[b"*2\r\n$8\r\n00000002\r\n"]);
        assert!(wrong.receive(&mut buffer, |_| {}).is_err());
        let mut surplus = begun(&[b"*2\r\n$8\r\n00000001\r\n$8\r\n00000001\r\n+OK\r\n+OK\r\n"]);
        assert!(surplus.receive(&mut buffer, |_| {}).is_err());
    }
}
