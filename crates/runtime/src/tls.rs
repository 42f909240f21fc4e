//! TLS of clients: what makes new connections secret, and their handshakes.
//!
//! A handshake is made on the control thread, so that strangers cost workers
//! nothing; the connection goes to a worker when it is over (see `sockets::tls`).

use rustls::{ServerConfig, ServerConnection};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;

/// A client that has not finished its handshake by then is dropped.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Certificates and rules for new connections. Whoever has a clone may replace
/// them while the node runs; connections that are there keep theirs.
#[derive(Clone, Debug)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl Tls {
    pub fn new(config: ServerConfig) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(config))))
    }

    /// For all connections that come from now on.
    pub fn replace(&self, config: ServerConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    pub(crate) fn session(&self) -> Result<ServerConnection, rustls::Error> {
        let config = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ServerConnection::new(Arc::clone(&config))
    }
}

/// Makes a handshake. The error is for the log: the client has been told by
/// an alert what it is told.
pub(crate) async fn shake_hands(
    socket: &TcpStream,
    session: &mut ServerConnection,
) -> io::Result<()> {
    while session.is_handshaking() {
        while session.wants_write() {
            socket.writable().await?;
            pass(session.write_tls(&mut Ready(socket)))?;
        }
        if !session.is_handshaking() {
            break;
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
    Ok(())
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
