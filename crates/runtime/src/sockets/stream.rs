//! One byte stream, whatever it is made of, polled without blocking.
//!
//! A `Pending` has registered the waker; nothing else has.

use super::tls::TlsStream;
use crate::inbox::Incoming;
use rustix::net::{RecvFlags, recv};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(TlsStream),
    Unix(UnixStream),
    /// The worker's end of a connection inside this process.
    Local(DuplexStream),
}

/// What is read and thrown away at most, where a connection is closed by us.
const DISCARD: usize = 16;

impl Stream {
    /// Must be called on the worker's thread: its reactor watches the socket.
    pub(super) fn new(incoming: Incoming) -> io::Result<Self> {
        Ok(match incoming {
            Incoming::Tcp(socket) => Self::Tcp(TcpStream::from_std(socket)?),
            Incoming::Tls(socket, session) => {
                Self::Tls(TlsStream::new(TcpStream::from_std(socket)?, session))
            }
            Incoming::Unix(socket) => Self::Unix(UnixStream::from_std(socket)?),
            Incoming::Local(pipe) => Self::Local(pipe),
        })
    }

    /// Reads into `buf`; 0 bytes mean that the peer sends no more.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        let read = match self {
            Self::Tcp(s) => Pin::new(s).poll_read(cx, &mut buf),
            Self::Tls(s) => return s.poll_read(cx, buf.initialized_mut()),
            Self::Unix(s) => Pin::new(s).poll_read(cx, &mut buf),
            Self::Local(s) => Pin::new(s).poll_read(cx, &mut buf),
        };
        ready!(read)?;
        Poll::Ready(Ok(buf.filled().len()))
    }

    /// After a read that did not fill its buffer: false where the waker is
    /// registered and will tell, true where another read has to find out.
    pub(super) fn may_read_more(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Tcp(s) => s.poll_read_ready(cx).is_ready(),
            Self::Tls(s) => s.socket.poll_read_ready(cx).is_ready(),
            Self::Unix(s) => s.poll_read_ready(cx).is_ready(),
            Self::Local(_) => true,
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(s) => Pin::new(s).poll_write(cx, bytes),
            Self::Tls(s) => s.poll_write(cx, &[IoSlice::new(bytes)]),
            Self::Unix(s) => Pin::new(s).poll_write(cx, bytes),
            Self::Local(s) => Pin::new(s).poll_write(cx, bytes),
        }
    }

    pub(super) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(s) => Pin::new(s).poll_write_vectored(cx, slices),
            Self::Tls(s) => s.poll_write(cx, slices),
            Self::Unix(s) => Pin::new(s).poll_write_vectored(cx, slices),
            Self::Local(s) => Pin::new(s).poll_write_vectored(cx, slices),
        }
    }

    /// Whether something was taken for sending that the kernel has not got.
    pub(super) fn has_unsent(&self) -> bool {
        match self {
            Self::Tls(s) => s.has_unsent(),
            Self::Tcp(_) | Self::Unix(_) | Self::Local(_) => false,
        }
    }

    /// Hands that to the kernel.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(s) => s.poll_flush(cx),
            Self::Tcp(_) | Self::Unix(_) | Self::Local(_) => Poll::Ready(Ok(())),
        }
    }

    /// Whether bytes have arrived that were not read.
    pub(super) fn has_unread(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut byte = [0];
        let peeked = match self {
            Self::Tcp(s) => recv(s, &mut byte, flags),
            // Between two reads no bytes wait in its session.
            Self::Tls(s) => recv(&s.socket, &mut byte, flags),
            Self::Unix(s) => recv(s, &mut byte, flags),
            Self::Local(_) => return false,
        };
        peeked.is_ok_and(|(_, read)| read > 0)
    }

    /// The next bytes are the last ones: TCP sends them together with its end, so that a peer that
    /// has read them finds the connection ended, and sends no request into it.
    pub(super) fn hold_for_end(&self) {
        let socket = match self {
            Self::Tcp(s) => s,
            Self::Tls(s) => &s.socket,
            Self::Unix(_) | Self::Local(_) => return,
        };
        // Without it the peer finds out a moment later.
        let _ = rustix::net::sockopt::set_tcp_cork(socket, true);
    }

    /// Ends a connection whose last replies have been handed to the kernel.
    /// Unread bytes of the peer are read and discarded first: closing with unread
    /// bytes would reset the connection, and the peer might lose those replies.
    pub(super) fn finish(mut self, cx: &mut Context<'_>) {
        let _ = match &mut self {
            Self::Tcp(s) => Pin::new(s).poll_shutdown(cx),
            Self::Tls(s) => s.poll_shutdown(cx),
            Self::Unix(s) => Pin::new(s).poll_shutdown(cx),
            Self::Local(s) => Pin::new(s).poll_shutdown(cx),
        };
        let mut unread = [0; 8 * 1024];
        for _ in 0..DISCARD {
            match self.poll_read(cx, &mut unread) {
                Poll::Ready(Ok(n)) if n > 0 => {}
                _ => return,
            }
        }
    }
}
