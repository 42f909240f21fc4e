//! Connections that an actor wants to have: made on the control thread, and
//! given to the actor's own worker.

use crate::inbox::{Incoming, Order};
use crate::shared::Shared;
use crate::tls::{self, DialTls};
use rufous_base::{ConnInfo, Dial, DialError, Origin, WorkerId};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};

/// How they are made.
#[derive(Clone, Debug)]
pub(crate) struct Dialling {
    pub(crate) tls: Option<DialTls>,
    pub(crate) keepalive: Option<TcpKeepalive>,
}

/// Opens one connection, or passes the error to the actor.
pub(crate) async fn dial(shared: Arc<Shared>, how: Dialling, worker: WorkerId, dial: Dial) {
    let within = Duration::from_micros(dial.within_us);
    let made = tokio::time::timeout(within, connect(&how, &dial)).await;
    let made = made.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match made {
        Ok((incoming, info)) => shared.deal_to(worker, incoming, info),
        Err(error) => {
            let (token, why) = (dial.token, error.to_string());
            let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
            let error = DialError { is_refused, why };
            shared.inboxes[worker.index()].order(Order::Undialled { token, error });
        }
    }
}

async fn connect(how: &Dialling, dial: &Dial) -> io::Result<(Incoming, ConnInfo)> {
    let socket = reach(&dial.to).await?;
    let _ = socket.set_nodelay(true);
    if let Some(keepalive) = &how.keepalive {
        let _ = SockRef::from(&socket).set_tcp_keepalive(keepalive);
    }
    let (peer, local) = (socket.peer_addr()?, socket.local_addr()?);
    let info = ConnInfo {
        peer: peer.to_string(),
        local: local.to_string(),
        is_local: peer.ip().is_loopback() || peer.ip() == local.ip(),
        origin: Origin::Dialled { token: dial.token },
        certificate: None,
    };
    let incoming = match &how.tls {
        None => Incoming::Tcp(socket.into_std()?),
        Some(tls) => {
            let mut session = tls.dial(&dial.to)?;
            tls::shake_hands(&socket, &mut session).await?;
            Incoming::Tls(socket.into_std()?, session)
        }
    };
    Ok((incoming, info))
}

/// A connection to the first address of the host that takes it. If one address does not refuse it, that
/// failure is returned: the process may listen there.
async fn reach(to: &str) -> io::Result<TcpStream> {
    let mut failed: Option<io::Error> = None;
    for address in lookup_host(to).await? {
        match TcpStream::connect(address).await {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some(worse(failed, error)),
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::other("the host has no address")))
}

/// Which of two failures is returned.
fn worse(before: Option<io::Error>, error: io::Error) -> io::Error {
    match before {
        Some(before) if before.kind() != io::ErrorKind::ConnectionRefused => before,
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, TimedOut};

    #[test]
    fn a_host_refuses_where_all_of_its_addresses_do() {
        for (kinds, expected) in [
            (&[ConnectionRefused][..], ConnectionRefused),
            (&[ConnectionRefused, ConnectionRefused], ConnectionRefused),
            (&[ConnectionRefused, TimedOut], TimedOut),
            (&[TimedOut, ConnectionRefused], TimedOut),
            (&[TimedOut, HostUnreachable, ConnectionRefused], TimedOut),
        ] {
            let errors = kinds.iter().map(|kind| io::Error::from(*kind));
            let last = errors.fold(None, |before, error| Some(worse(before, error)));
            assert_eq!(last.map(|error| error.kind()), Some(expected), "{kinds:?}");
        }
    }
}
