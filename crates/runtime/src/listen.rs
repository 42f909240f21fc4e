//! Listening sockets, and the loop that accepts from one of them.

use crate::config::{Config, Listen};
use crate::inbox::Incoming;
use crate::runtime::StartError;
use crate::shared::{Room, Shared};
use crate::tls::{self, Tls};
use rufous_base::{ConnInfo, Origin};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// How long accepting rests after it failed for want of something that the
/// whole machine or process lacks: doubled each time, up to the second.
const REST: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// A socket that is bound and listens.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: BoundSocket,
    tls: Option<Tls>,
    /// Which clients connect here.
    origin: Origin,
}

#[derive(Debug)]
enum BoundSocket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket, removed when its listener is closed.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn bind(listen: &Listen, config: &Config, origin: Origin) -> Result<Bound, StartError> {
    let tls = match (listen, origin) {
        (Listen::Tls(_), Origin::Peer) => config.peer_tls.as_ref(),
        (Listen::Tls(_), _) => config.tls.as_ref(),
        (Listen::Tcp(_) | Listen::Unix { .. }, _) => None,
    };
    let tls = tls.cloned();
    if matches!(listen, Listen::Tls(_)) && tls.is_none() {
        return Err(StartError::NoCertificate);
    }
    let socket = match listen {
        Listen::Tcp(address) | Listen::Tls(address) => {
            bind_tcp(*address, config.backlog).map(BoundSocket::Tcp)
        }
        Listen::Unix { path, mode } => bind_unix(path, *mode, config.backlog)
            .map(|listener| BoundSocket::Unix(listener, SocketFile(path.clone()))),
    };
    match socket {
        Ok(socket) => Ok(Bound {
            socket,
            tls,
            origin,
        }),
        Err(source) => Err(StartError::Listen {
            at: listen.to_string(),
            source,
        }),
    }
}

fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        // So that 0.0.0.0 and :: can both be listened on.
        socket.set_only_v6(true)?;
    }
    // A restart need not wait for the old connections to time out.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog.try_into().unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn bind_unix(path: &Path, mode: Option<u32>, backlog: u32) -> io::Result<UnixListener> {
    // What a node that was killed has left; never a file of another kind.
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    if let Some(mode) = mode {
        // Before listening: no client connects while the permissions are still the default ones.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    socket.listen(backlog.try_into().unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

impl Bound {
    pub(crate) fn address(&self) -> io::Result<Listen> {
        Ok(match &self.socket {
            BoundSocket::Tcp(listener) if self.tls.is_none() => Listen::Tcp(listener.local_addr()?),
            BoundSocket::Tcp(listener) => Listen::Tls(listener.local_addr()?),
            BoundSocket::Unix(_, file) => Listen::Unix {
                path: file.0.clone(),
                mode: None,
            },
        })
    }
}

/// A listening socket that the control thread's reactor watches.
enum Acceptor {
    Tcp(tokio::net::TcpListener, Option<TcpKeepalive>),
    Unix(tokio::net::UnixListener, SocketFile),
}

impl Acceptor {
    fn new(socket: BoundSocket, keepalive: Option<TcpKeepalive>) -> io::Result<Self> {
        Ok(match socket {
            BoundSocket::Tcp(listener) => Self::Tcp(listener.try_into()?, keepalive),
            BoundSocket::Unix(listener, file) => Self::Unix(listener.try_into()?, file),
        })
    }

    /// The next connection, for the reactor of whichever worker takes it.
    async fn accept(&self) -> io::Result<(Incoming, ConnInfo)> {
        match self {
            Self::Tcp(listener, keepalive) => {
                let (socket, peer) = listener.accept().await?;
                // A client that is gone already is found out by reading.
                let _ = socket.set_nodelay(true);
                if let Some(keepalive) = keepalive {
                    let _ = SockRef::from(&socket).set_tcp_keepalive(keepalive);
                }
                let peer = canonical(peer);
                let local = socket.local_addr().map(canonical).ok();
                let info = ConnInfo {
                    peer: peer.to_string(),
                    is_local: peer.ip().is_loopback()
                        || local.is_some_and(|local| local.ip() == peer.ip()),
                    local: local.map_or_else(String::new, |local| local.to_string()),
                    origin: Origin::Client,
                    certificate: None,
                };
                Ok((Incoming::Tcp(socket.into_std()?), info))
            }
            Self::Unix(listener, file) => {
                let (socket, _) = listener.accept().await?;
                let path = file.0.display().to_string();
                let info = ConnInfo {
                    peer: path.clone(),
                    local: path,
                    is_local: true,
                    origin: Origin::Client,
                    certificate: None,
                };
                Ok((Incoming::Unix(socket.into_std()?), info))
            }
        }
    }
}

/// After so much silence it is asked whether the peer is there.
pub(crate) fn keepalive(silence: Duration) -> TcpKeepalive {
    let between = (silence / 3).max(Duration::from_secs(1));
    TcpKeepalive::new()
        .with_time(silence)
        .with_interval(between)
}

/// An IPv4 client of an IPv6 socket by its IPv4 name.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Accepts until it is dropped.
pub(crate) async fn accept_all(bound: Bound, shared: Arc<Shared>, keepalive: Option<TcpKeepalive>) {
    let Bound {
        socket,
        tls,
        origin,
    } = bound;
    let acceptor = match Acceptor::new(socket, keepalive) {
        Ok(acceptor) => acceptor,
        Err(error) => {
            tracing::error!(%error, "cannot watch a listening socket; stopping");
            shared.stop();
            return;
        }
    };
    let mut rest = REST.0;
    let mut handshakes = JoinSet::new();
    loop {
        let accepted = acceptor.accept().await;
        while handshakes.try_join_next().is_some() {}
        match accepted {
            Ok((incoming, info)) => {
                rest = REST.0;
                let info = ConnInfo { origin, ..info };
                match (Room::take(&shared, origin), &tls) {
                    (Some(room), Some(tls)) => {
                        let (shared, tls) = (Arc::clone(&shared), tls.clone());
                        handshakes.spawn(deal_secretly(shared, room, tls, incoming, info));
                    }
                    (Some(room), None) => room.deal(incoming, info),
                    (None, tls) => {
                        shared.rejected.fetch_add(1, Ordering::Relaxed);
                        if tls.is_none() {
                            turn_away(incoming);
                        }
                    }
                }
            }
            Err(error) if is_of_one_client(&error) => {}
            Err(error) => {
                shared.accept_errors.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%error, rest_ms = rest.as_millis(), "cannot accept; trying again");
                tokio::time::sleep(rest).await;
                rest = (rest * 2).min(REST.1);
            }
        }
    }
}

/// Deals a connection once its handshake is over, if it succeeds.
async fn deal_secretly(
    shared: Arc<Shared>,
    room: Room,
    tls: Tls,
    incoming: Incoming,
    info: ConnInfo,
) {
    let Incoming::Tcp(socket) = incoming else {
        return;
    };
    let shaken = tokio::time::timeout(tls::HANDSHAKE, async {
        let mut session = tls.accept()?;
        let socket = tokio::net::TcpStream::from_std(socket)?;
        tls::shake_hands(&socket, &mut session).await?;
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.map(|certificate| Arc::from(certificate.as_ref()));
        Ok((Incoming::Tls(socket.into_std()?, session), certificate))
    });
    let shaken: io::Result<(Incoming, Option<Arc<[u8]>>)> = shaken
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match shaken {
        Ok((incoming, certificate)) => {
            shared.handshakes.fetch_add(1, Ordering::Relaxed);
            // Nodes alone are judged by it.
            let certificate = certificate.filter(|_| info.origin.is_of_nodes());
            let info = ConnInfo {
                certificate,
                ..info
            };
            room.deal(incoming, info);
        }
        Err(error) => {
            let origin = info.origin;
            drop(room);
            shared.handshake_errors.fetch_add(1, Ordering::Relaxed);
            match origin {
                // Nodes are few, and their operators want to know.
                Origin::Peer => {
                    tracing::info!(%error, peer = info.peer, "TLS handshake with a node failed")
                }
                _ => tracing::debug!(%error, peer = info.peer, "no TLS handshake"),
            }
        }
    }
}

/// Errors of the connection that was to be accepted rather than of accepting.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::Interrupted
            | Kind::TimedOut
            | Kind::NotConnected
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
    )
}

/// Says why and closes. The socket does not block, and its buffer is empty.
fn turn_away(incoming: Incoming) {
    let _ = match incoming {
        Incoming::Tcp(mut socket) => socket.write(FULL),
        Incoming::Unix(mut socket) => socket.write(FULL),
        Incoming::Tls(..) | Incoming::Local(_) => Ok(0),
    };
}
