//! Connections that an actor wants to have: made on the control thread, and
//! given to the actor's own worker.

use crate::inbox::{Incoming, Order};
use crate::shared::Shared;
use crate::tls::{self, DialTls};
use rufous_base::{ConnInfo, Dial, Origin, WorkerId};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

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
            shared.inboxes[worker.index()].order(Order::Undialled { token, why });
        }
    }
}

async fn connect(how: &Dialling, dial: &Dial) -> io::Result<(Incoming, ConnInfo)> {
    let socket = TcpStream::connect(&dial.to).await?;
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
