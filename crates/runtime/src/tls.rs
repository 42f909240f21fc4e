//! TLS: what makes new connections secret, and their handshakes.
//!
//! A handshake is made on the control thread, so that strangers cost workers
//! nothing; the connection goes to a worker when it is over (see `sockets::tls`).

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;

/// A client that has not finished its handshake by then is dropped.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Certificates and rules for new connections. The holder of a clone may replace
/// them while the node runs; existing connections keep theirs.
#[derive(Debug)]
pub struct Replaceable<C>(Arc<RwLock<Arc<C>>>);

/// For connections that are accepted.
pub type Tls = Replaceable<ServerConfig>;

/// For connections that are dialled.
pub type DialTls = Replaceable<ClientConfig>;

impl<C> Clone for Replaceable<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> Replaceable<C> {
    pub fn new(config: C) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(config))))
    }

    /// For all connections that come from now on.
    pub fn replace(&self, config: C) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    fn current(&self) -> Arc<C> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tls {
    pub(crate) fn accept(&self) -> io::Result<Box<Connection>> {
        let session = ServerConnection::new(self.current()).map_err(io::Error::other)?;
        Ok(Box::new(session.into()))
    }
}

impl DialTls {
    /// `to`: `host:port`; the other side's certificate has to be the host's.
    pub(crate) fn dial(&self, to: &str) -> io::Result<Box<Connection>> {
        let host = to.rsplit_once(':').map_or(to, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(self.current(), name).map_err(io::Error::other)?;
        Ok(Box::new(session.into()))
    }
}

/// Makes a handshake. The error is for the log: the peer gets an alert of its
/// own.
pub(crate) async fn shake_hands(socket: &TcpStream, session: &mut Connection) -> io::Result<()> {
    loop {
        while session.wants_write() {
            socket.writable().await?;
            pass(session.write_tls(&mut Ready(socket)))?;
        }
        if !session.is_handshaking() {
            return Ok(());
        }
        socket.readable().await?;
        if pass(session.read_tls(&mut Ready(socket)))? == Some(0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Err(error) = session.process_new_packets() {
            // The alert leaves now or never.
            let _ = session.write_tls(&mut Ready(socket));
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
    }
}

/// Nothing where the socket was not ready after all.
fn pass(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(n) => Ok(Some(n)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// A socket as what rustls reads from and writes to, without waiting.
struct Ready<'a>(&'a TcpStream);

impl io::Read for Ready<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }
}

impl io::Write for Ready<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
