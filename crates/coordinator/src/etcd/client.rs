//! Calls to an etcd of several members: one connection at a time, to the first that accepts one.
//!
//! After a failure the caller gives the connection up, and the next call goes to the next member.
//! Where a user is set, each connection begins with a login. etcd ends logins that were not used for
//! minutes, and forgets them when it restarts: then a call is refused without an effect, and is made
//! again after a new login.

use super::grpc::{Fault, Link, Place, Stream};
use super::messages::{
    Grant, Granted, LoggedIn, Login, News, OfLease, Range, Ranged, Renewed, Revoked, Transacted,
    Transaction, Watch, Watched, behind,
};
use super::{Settings, Tls};
use crate::Error;
use http::Uri;
use prost::Message;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Time to connect to one member of etcd and to log in. Below that of a request, so that a request
/// can reach another one.
const CONNECTING: Duration = Duration::from_millis(900);
/// Statuses of gRPC.
const INVALID_ARGUMENT: u32 = 3;
const PERMISSION_DENIED: u32 = 7;
const FAILED_PRECONDITION: u32 = 9;
const UNAUTHENTICATED: u32 = 16;
/// Those of a login that etcd refuses.
const REFUSALS: [u32; 4] = [
    INVALID_ARGUMENT,
    PERMISSION_DENIED,
    FAILED_PRECONDITION,
    UNAUTHENTICATED,
];

#[derive(Clone)]
pub(super) struct Client(Arc<Inner>);

struct Inner {
    places: Vec<Place>,
    user: Option<(String, String)>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    link: Option<Link>,
    /// The place to which the next connection is made.
    next: usize,
}

impl Client {
    /// Connects to nothing yet.
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let tls = settings.tls.as_ref().map(config).transpose()?;
        let places = settings.endpoints.iter();
        let places: Vec<Place> = places
            .map(|endpoint| place(endpoint, tls.as_ref()))
            .collect::<Result<_, _>>()?;
        if places.is_empty() {
            return Err(Error::Settings("no address of etcd".to_owned()));
        }
        Ok(Self(Arc::new(Inner {
            places,
            user: settings.user.clone(),
            current: Mutex::default(),
        })))
    }

    /// Whether etcd accepts the user. A refusal is an error of the settings.
    pub(super) async fn log_in(&self) -> Result<(), Error> {
        if self.0.user.is_none() {
            return Ok(());
        }
        match self.link().await {
            Ok(_) => Ok(()),
            Err(Fault::Status { code, message }) if REFUSALS.contains(&code) => Err(
                Error::Settings(format!("etcd refuses the login: {message}")),
            ),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Gives up the connection, so that the next call makes one to the next member.
    pub(super) async fn give_up(&self) {
        self.0.current.lock().await.link = None;
    }

    async fn link(&self) -> Result<Link, Fault> {
        let mut current = self.0.current.lock().await;
        if let Some(link) = current.link.as_ref().filter(|link| !link.has_ended()) {
            return Ok(link.clone());
        }
        let mut fault = None;
        for _ in &self.0.places {
            let place = &self.0.places[current.next % self.0.places.len()];
            // Also if this future is dropped, the next attempt is made elsewhere.
            current.next = current.next.wrapping_add(1);
            let late = || Fault::Link(format!("{}: no answer in time", place.authority));
            let opened = timeout(CONNECTING, self.open(place)).await;
            match opened.unwrap_or_else(|_| Err(late())) {
                Ok(link) => return Ok(current.link.insert(link).clone()),
                // All members have the same users.
                Err(Fault::Status { code, message }) if REFUSALS.contains(&code) => {
                    return Err(Fault::Status { code, message });
                }
                Err(other) => fault = Some(other),
            }
        }
        Err(fault.unwrap_or_else(|| Fault::Link("no address of etcd".to_owned())))
    }

    async fn open(&self, place: &Place) -> Result<Link, Fault> {
        let mut link = Link::open(place).await?;
        if let Some((name, password)) = self.0.user.clone() {
            let login = Login { name, password };
            let done: LoggedIn = link.call("Auth/Authenticate", &login).await?;
            link.set_token(&done.token)?;
        }
        Ok(link)
    }

    async fn call<A: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
    ) -> Result<A, Error> {
        let link = self.link().await?;
        match link.call(method, message).await {
            Err(Fault::Status { code, message: why })
                if self.0.user.is_some() && wants_a_new_login(code, &why) =>
            {
                self.give_up().await;
                Ok(self.link().await?.call(method, message).await?)
            }
            done => Ok(done?),
        }
    }

    pub(super) async fn range(&self, range: &Range) -> Result<Ranged, Error> {
        self.call("KV/Range", range).await
    }

    pub(super) async fn transact(&self, txn: &Transaction) -> Result<Transacted, Error> {
        self.call("KV/Txn", txn).await
    }

    pub(super) async fn grant(&self, ttl: i64) -> Result<i64, Error> {
        let granted: Granted = self.call("Lease/LeaseGrant", &Grant { ttl }).await?;
        if !granted.error.is_empty() {
            return Err(Error::Away(granted.error));
        }
        Ok(granted.id)
    }

    pub(super) async fn revoke(&self, lease: i64) -> Result<(), Error> {
        let revoke = OfLease { id: lease };
        let _gone: Revoked = self.call("Lease/LeaseRevoke", &revoke).await?;
        Ok(())
    }

    /// A stream that renews leases: an answer for each message.
    pub(super) async fn renewing(&self) -> Result<Stream<Renewed>, Error> {
        Ok(self.link().await?.begin("Lease/LeaseKeepAlive").await?)
    }

    /// Changes of keys with the prefix, from a revision on.
    pub(super) async fn watch(
        &self,
        prefix: &str,
        start_revision: i64,
    ) -> Result<Stream<News>, Error> {
        let mut stream = self.link().await?.begin("Watch/Watch").await?;
        let watched = Watched {
            key: prefix.as_bytes().to_vec(),
            range_end: behind(prefix),
            start_revision,
        };
        stream.say(&Watch {
            create: Some(watched),
        })?;
        Ok(stream)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Away(fault.to_string())
    }
}

/// A login that ended, or one from before a change of users and permissions.
fn wants_a_new_login(code: u32, why: &str) -> bool {
    code == UNAUTHENTICATED || (code == INVALID_ARGUMENT && why.contains("auth: revision"))
}

fn place(endpoint: &str, tls: Option<&Arc<ClientConfig>>) -> Result<Place, Error> {
    let wrong = |what: &str| Error::Settings(format!("address of etcd '{endpoint}': {what}"));
    let uri: Uri = endpoint
        .parse()
        .map_err(|_| wrong("it is http://host:port or https://host:port"))?;
    let host = uri.host().ok_or_else(|| wrong("no host"))?;
    let port = uri.port_u16().ok_or_else(|| wrong("no port"))?;
    // An IPv6 address is in brackets there.
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let tls = match (uri.scheme_str(), tls) {
        (Some("http"), None) => None,
        (Some("https"), Some(config)) => {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| wrong("no name that a certificate can have"))?;
            Some((name, Arc::clone(config)))
        }
        (Some("http"), Some(_)) => return Err(wrong("with TLS it begins with https")),
        (Some("https"), None) => return Err(wrong("https needs the certificate of its authority")),
        _ => return Err(wrong("it begins with http or https")),
    };
    let authority = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    Ok(Place {
        authority,
        host,
        port,
        tls,
    })
}

fn config(tls: &Tls) -> Result<Arc<ClientConfig>, Error> {
    let wrong = |what: &str| Error::Settings(format!("TLS to etcd: {what}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(tls.authority.as_bytes()) {
        let added = certificate.map(|certificate| roots.add(certificate));
        if !matches!(added, Ok(Ok(()))) {
            return Err(wrong("the certificate of etcd's authority is invalid"));
        }
    }
    if roots.is_empty() {
        return Err(wrong("no certificate in the file of etcd's authority"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error.to_string()))?
        .with_root_certificates(roots);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
            let chain = chain
                .collect::<Result<_, _>>()
                .map_err(|_| wrong("the node's certificate is invalid"))?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                .map_err(|_| wrong("the node's private key is invalid"))?;
            let shown = builder.with_client_auth_cert(chain, key);
            shown.map_err(|error| wrong(&format!("certificate and private key: {error}")))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(endpoint: &str, tls: Option<Tls>) -> Result<Client, Error> {
        Client::new(&Settings {
            endpoints: vec![endpoint.to_owned()],
            tls,
            ..Settings::default()
        })
    }

    #[test]
    fn addresses_are_checked() {
        for (endpoint, authority, host) in [
            ("http://127.0.0.1:2379", "127.0.0.1:2379", "127.0.0.1"),
            ("http://[::1]:2379", "[::1]:2379", "::1"),
            ("http://etcd-0.etcd:1", "etcd-0.etcd:1", "etcd-0.etcd"),
        ] {
            let client = made(endpoint, None).expect(endpoint);
            let place = &client.0.places[0];
            assert_eq!((&*place.authority, &*place.host), (authority, host));
        }
        for endpoint in [
            "http://a b",
            "127.0.0.1:2379",
            "http://etcd",
            "https://etcd:1",
            "ftp://etcd:1",
            "",
        ] {
            assert!(matches!(made(endpoint, None), Err(Error::Settings(_))));
        }
        let tls = Tls {
            authority: "no certificate".to_owned(),
            identity: None,
        };
        assert!(made("https://etcd:1", Some(tls)).is_err());
    }

    #[test]
    fn a_login_that_ended_is_made_again() {
        assert!(wants_a_new_login(16, "etcdserver: invalid auth token"));
        assert!(wants_a_new_login(
            3,
            "etcdserver: auth: revision in header is old"
        ));
        assert!(!wants_a_new_login(7, "etcdserver: permission denied"));
        assert!(!wants_a_new_login(3, "etcdserver: duplicate key"));
    }
}
