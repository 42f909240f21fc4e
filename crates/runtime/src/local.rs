//! A connection inside this process: the driver treats it like any other.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Bytes that wait at most in each direction before the sender waits.
pub(crate) const PIPE_BYTES: usize = 256 * 1024;

/// The caller's end. It may be used from any thread, with or without an async
/// runtime. Dropping it closes the connection.
///
/// Sending much without receiving can wait for ever, as on any connection: the
/// node stops reading while its replies are not taken.
#[derive(Debug)]
pub struct LocalConnection {
    pipe: DuplexStream,
}

impl LocalConnection {
    pub(crate) fn new(pipe: DuplexStream) -> Self {
        Self { pipe }
    }

    /// Sends all of `bytes`; fails where the node has closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pipe.write_all(bytes).await
    }

    /// Appends what has arrived, at least one byte, and returns how many; 0
    /// once the node has closed the connection.
    pub async fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        self.pipe.read_buf(into).await
    }

    /// [`Self::send`], blocking the thread; not for use in async code.
    pub fn send_blocking(&mut self, bytes: &[u8]) -> io::Result<()> {
        block_on(self.send(bytes))
    }

    /// [`Self::receive`], blocking the thread; not for use in async code.
    pub fn receive_blocking(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        block_on(self.receive(into))
    }

    /// The connection as a stream, for code that wants `AsyncRead` and `AsyncWrite`.
    pub fn into_stream(self) -> DuplexStream {
        self.pipe
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future that needs no reactor.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        std::thread::park();
    }
}
