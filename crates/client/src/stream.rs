//! Bytes to and from a node: TCP, with TLS where it is wanted.

use crate::config::{Addr, Config};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Silence after which the system probes the peer: a client that waits without a time-out for a
/// blocking command would otherwise never notice that the machine is gone.
const KEEPALIVE: Duration = Duration::from_secs(15);

pub(crate) async fn open(addr: &Addr, config: &Config) -> io::Result<(Reader, Writer)> {
    let tcp = TcpStream::connect((addr.host(), addr.port())).await?;
    tcp.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE / 3);
    socket2::SockRef::from(&tcp).set_tcp_keepalive(&keepalive)?;
    if config.tls {
        return secure(tcp, addr, config).await;
    }
    let (reader, writer) = tcp.into_split();
    Ok((Box::new(reader), Box::new(writer)))
}

#[cfg(feature = "tls")]
async fn secure(tcp: TcpStream, addr: &Addr, config: &Config) -> io::Result<(Reader, Writer)> {
    use rustls::pki_types::ServerName;
    let tls = match &config.tls_config {
        Some(tls) => tls.clone(),
        None => system_roots()?,
    };
    let name = ServerName::try_from(addr.host().to_owned()).map_err(io::Error::other)?;
    let stream = tokio_rustls::TlsConnector::from(tls)
        .connect(name, tcp)
        .await?;
    let (reader, writer) = tokio::io::split(stream);
    Ok((Box::new(reader), Box::new(writer)))
}

/// Trusts the system's certificate authorities. Read once: the store is a large file.
#[cfg(feature = "tls")]
fn system_roots() -> io::Result<std::sync::Arc<rustls::ClientConfig>> {
    use std::sync::{Arc, OnceLock};
    static ROOTS: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    if let Some(config) = ROOTS.get() {
        return Ok(config.clone());
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(ROOTS.get_or_init(|| Arc::new(config)).clone())
}

#[cfg(not(feature = "tls"))]
async fn secure(_: TcpStream, _: &Addr, _: &Config) -> io::Result<(Reader, Writer)> {
    Err(io::Error::other("TLS needs the feature `tls`"))
}
