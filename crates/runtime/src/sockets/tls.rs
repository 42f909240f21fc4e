//! A connection encrypted by TLS.
//!
//! Invariants:
//! - Bytes accepted for sending leave before all later ones; until they have
//!   left, [`TlsStream::has_unsent`] is true.
//! - After a read that did not fill its buffer, no decrypted bytes wait in
//!   the session.

use rustls::Connection;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that one read asks the socket for: a whole record.
const WIRE: usize = 16 * 1024;

/// Reads of the socket for one read that has something.
const ROUNDS: usize = 4;

#[derive(Debug)]
pub(super) struct TlsStream {
    pub(super) socket: TcpStream,
    session: Box<Connection>,
}

impl TlsStream {
    /// The handshake is over.
    pub(super) fn new(socket: TcpStream, session: Box<Connection>) -> Self {
        Self { socket, session }
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        for _ in 0..ROUNDS {
            if let Some(n) = self.drain(buf)? {
                return Poll::Ready(Ok(n));
            }
            let mut wire = [const { MaybeUninit::uninit() }; WIRE];
            // The decrypted bytes fit `buf`, except for one record whose first part
            // arrived earlier; that much may wait in the session.
            let most = WIRE.min(buf.len());
            let mut wire = ReadBuf::uninit(&mut wire[..most]);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut wire))?;
            let n = self.take(cx, wire.filled(), buf)?;
            if n > 0 {
                return Poll::Ready(Ok(n));
            }
        }
        // Records without anything in them: others have their turn first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes what has arrived, as far as the session takes it at once, and has
    /// it in the clear in `buf`. Of nothing the session learns that no more comes.
    fn take(&mut self, cx: &mut Context<'_>, mut wire: &[u8], buf: &mut [u8]) -> io::Result<usize> {
        let mut n = 0;
        loop {
            self.session.read_tls(&mut wire)?;
            if let Err(error) = self.session.process_new_packets() {
                // The alert leaves now or never.
                let _ = self.poll_flush(cx);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            n += self.drain(&mut buf[n..])?.unwrap_or(0);
            if wire.is_empty() {
                break;
            }
        }
        // An answer of the protocol's own, such as to a change of keys.
        match self.poll_flush(cx) {
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(n),
        }
    }

    /// What waits in the clear; 0 bytes where there will be no more.
    fn drain(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        match self.session.reader().read(buf) {
            Ok(n) => Ok(Some(n)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // Closed without a close_notify alert. Requests state their length, so a
            // truncated one is always detected.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(0)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        let taken = self.session.writer().write_vectored(slices)?;
        match self.poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(taken)),
        }
    }

    /// Whether something is accepted that has not left.
    pub(super) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wire = Wire {
            socket: &mut self.socket,
            cx,
        };
        while self.session.wants_write() {
            match self.session.write_tls(&mut wire) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more comes.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.send_close_notify();
        ready!(self.poll_flush(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// The socket as what the session writes to; where it takes nothing, its waker
/// is registered.
struct Wire<'a, 'cx> {
    socket: &'a mut TcpStream,
    cx: &'a mut Context<'cx>,
}

fn now(written: Poll<io::Result<usize>>) -> io::Result<usize> {
    match written {
        Poll::Ready(written) => written,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl Write for Wire<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        now(Pin::new(&mut *self.socket).poll_write(self.cx, bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        now(Pin::new(&mut *self.socket).poll_write_vectored(self.cx, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
