//! One connection that many tasks can share: requests go out in the order they come, and replies
//! go back to them in the same order.
//!
//! Two tasks drive it, so that writing never keeps it from reading. What is between them is bounded:
//! requests that wait to be written, and requests that wait for replies.

use crate::config::{Addr, Config};
use crate::error::Error;
use crate::stream::{self, Reader, Writer};
use crate::value::Value;
use bytes::{Buf, BytesMut};
use rufous_resp::{Reply, ReplyParser};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Requests that wait to be written.
const QUEUE: usize = 256;
/// Requests that wait for their replies.
const PENDING: usize = 4096;
/// Requests are written together up to this size.
const TOGETHER: usize = 64 * 1024;
/// Free space before a read, and what an empty buffer keeps.
const READ: usize = 16 * 1024;
const KEEP: usize = 1024 * 1024;

/// The replies of one request, or those before it failed.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) values: Vec<Value>,
    pub(crate) failure: Option<Error>,
}

impl Batch {
    fn failed(error: Error) -> Self {
        Self {
            values: Vec::new(),
            failure: Some(error),
        }
    }
}

struct Request {
    bytes: Vec<u8>,
    pending: Pending,
}

/// A caller that waits for this many replies.
struct Pending {
    replies: usize,
    values: Vec<Value>,
    tell: oneshot::Sender<Batch>,
}

impl Pending {
    fn end(self, failure: Option<Error>) {
        // A caller that has given up has dropped the receiver.
        let _ = self.tell.send(Batch {
            values: self.values,
            failure,
        });
    }
}

pub(crate) struct Connection {
    addr: Addr,
    queue: mpsc::Sender<Request>,
    closed: watch::Sender<bool>,
    /// Reads that brought bytes: whether the other side gives signs of life.
    received: Arc<AtomicU64>,
}

impl Connection {
    /// Connects. What a server is greeted with is [`crate::greeting`]'s concern.
    pub(crate) async fn open(
        addr: &Addr,
        config: &Config,
        pushes: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let streams = stream::open(addr, config).await;
        let (reader, writer) = streams.map_err(|error| Error::Connect {
            node: addr.to_string(),
            reason: error.to_string(),
        })?;
        let (queue, requests) = mpsc::channel(QUEUE);
        let (to_reader, pending) = mpsc::channel(PENDING);
        let (closed, is_closed) = watch::channel(false);
        let received = Arc::new(AtomicU64::new(0));
        let read = ReadTask {
            addr: addr.clone(),
            pending,
            current: None,
            parser: ReplyParser::new(config.reply_limits()),
            max_reply: config.max_reply,
            unfinished: 0,
            received: received.clone(),
            pushes,
        };
        let write = WriteTask {
            addr: addr.clone(),
            pending: to_reader,
            buffer: Vec::new(),
        };
        tokio::spawn(read.drive(reader, closed.clone(), is_closed.clone()));
        tokio::spawn(write.drive(writer, requests, closed.clone(), is_closed));
        Ok(Self {
            addr: addr.clone(),
            queue,
            closed,
            received,
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Sends encoded commands and waits for `replies` replies.
    pub(crate) async fn send(&self, bytes: Vec<u8>, replies: usize, deadline: Instant) -> Batch {
        let seen = self.received.load(Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        let pending = Pending {
            replies,
            values: Vec::new(),
            tell,
        };
        let request = Request { bytes, pending };
        match tokio::time::timeout_at(deadline, self.queue.send(request)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Batch::failed(lost(&self.addr, false)),
            Err(_) => {
                self.suspect(seen);
                return Batch::failed(self.late(false));
            }
        }
        match tokio::time::timeout_at(deadline, answer).await {
            Ok(Ok(batch)) => batch,
            Ok(Err(_)) => Batch::failed(lost(&self.addr, true)),
            Err(_) => {
                self.suspect(seen);
                Batch::failed(self.late(true))
            }
        }
    }

    /// A request timed out. If nothing at all has arrived since, the server is presumed dead: the next
    /// request opens a new connection and detects the failure sooner.
    fn suspect(&self, seen: u64) {
        if self.received.load(Ordering::Relaxed) == seen {
            self.close();
        }
    }

    fn late(&self, maybe_done: bool) -> Error {
        Error::Timeout {
            node: self.addr.to_string(),
            maybe_done,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

fn lost(addr: &Addr, maybe_done: bool) -> Error {
    Error::Lost {
        node: addr.to_string(),
        maybe_done,
    }
}

struct WriteTask {
    addr: Addr,
    pending: mpsc::Sender<Pending>,
    buffer: Vec<u8>,
}

impl WriteTask {
    async fn drive(
        mut self,
        mut writer: Writer,
        mut requests: mpsc::Receiver<Request>,
        closed: watch::Sender<bool>,
        mut is_closed: watch::Receiver<bool>,
    ) {
        tokio::select! {
            () = self.write_all(&mut writer, &mut requests) => {}
            _ = is_closed.wait_for(|&closed| closed) => {}
        }
        closed.send_replace(true);
        requests.close();
        while let Some(request) = requests.recv().await {
            request.pending.end(Some(lost(&self.addr, false)));
        }
    }

    /// Until there is nothing more to write, or no way to.
    async fn write_all(&mut self, writer: &mut Writer, requests: &mut mpsc::Receiver<Request>) {
        while let Some(request) = requests.recv().await {
            if self.take(request, writer).await.is_none() {
                return;
            }
            while self.buffer.len() < TOGETHER {
                let Ok(request) = requests.try_recv() else {
                    break;
                };
                if self.take(request, writer).await.is_none() {
                    return;
                }
            }
            if self.flush(writer).await.is_none() {
                return;
            }
        }
    }

    /// Puts a request into the buffer, and into the reader's queue before it can be answered.
    async fn take(&mut self, request: Request, writer: &mut Writer) -> Option<()> {
        if request.pending.tell.is_closed() {
            return Some(());
        }
        match self.pending.try_send(request.pending) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(pending)) => {
                // The replies that make room are to requests that may still be in the buffer.
                self.flush(writer).await?;
                self.pending.send(pending).await.ok()?;
            }
            Err(mpsc::error::TrySendError::Closed(pending)) => {
                pending.end(Some(lost(&self.addr, false)));
                return None;
            }
        }
        if self.buffer.is_empty() {
            self.buffer = request.bytes;
        } else {
            self.buffer.extend_from_slice(&request.bytes);
        }
        Some(())
    }

    async fn flush(&mut self, writer: &mut Writer) -> Option<()> {
        writer.write_all(&self.buffer).await.ok()?;
        writer.flush().await.ok()?;
        self.buffer = Vec::new();
        Some(())
    }
}

struct ReadTask {
    addr: Addr,
    pending: mpsc::Receiver<Pending>,
    /// Some of its replies have come.
    current: Option<Pending>,
    parser: ReplyParser,
    max_reply: usize,
    /// Bytes of the reply in progress that the parser has done with.
    unfinished: usize,
    received: Arc<AtomicU64>,
    pushes: Arc<AtomicU64>,
}

impl ReadTask {
    async fn drive(
        mut self,
        mut reader: Reader,
        closed: watch::Sender<bool>,
        mut is_closed: watch::Receiver<bool>,
    ) {
        let error = tokio::select! {
            error = self.read_all(&mut reader) => error,
            _ = is_closed.wait_for(|&closed| closed) => lost(&self.addr, true),
        };
        closed.send_replace(true);
        self.pending.close();
        if let Some(pending) = self.current.take() {
            pending.end(Some(error.clone()));
        }
        while let Some(pending) = self.pending.recv().await {
            pending.end(Some(error.clone()));
        }
    }

    /// Until the connection ends; returns the error for the requests that still wait.
    async fn read_all(&mut self, reader: &mut Reader) -> Error {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(READ);
            match reader.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return lost(&self.addr, true),
                Ok(_) => self.received.fetch_add(1, Ordering::Relaxed),
            };
            if let Err(reason) = self.take(&mut buffer) {
                return Error::Protocol {
                    node: self.addr.to_string(),
                    reason,
                };
            }
            if buffer.is_empty() && buffer.capacity() > KEEP {
                buffer = BytesMut::new();
            }
        }
    }

    fn take(&mut self, buffer: &mut BytesMut) -> Result<(), String> {
        loop {
            let (used, reply) = self.parser.parse(buffer).map_err(|e| e.to_string())?;
            buffer.advance(used);
            match reply {
                Some(reply) => {
                    self.unfinished = 0;
                    self.deliver(reply)?;
                }
                None => {
                    self.unfinished += used;
                    // All that a reply takes is bounded, however it is made up.
                    if self.unfinished + buffer.len() > self.max_reply {
                        return Err(format!("a reply of more than {} bytes", self.max_reply));
                    }
                    return Ok(());
                }
            }
        }
    }

    fn deliver(&mut self, reply: Reply) -> Result<(), String> {
        if matches!(reply, Reply::Push(_)) {
            self.pushes.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let next = self.current.take().or_else(|| self.pending.try_recv().ok());
        let Some(mut pending) = next else {
            return Err("a reply without a request".into());
        };
        pending.values.push(Value::new(reply));
        if pending.values.len() == pending.replies {
            pending.end(None);
        } else {
            self.current = Some(pending);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
