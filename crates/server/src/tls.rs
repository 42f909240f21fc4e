//! Certificates of a server: loaded when it starts, and again when their files
//! change or a SIGHUP comes. Files that cannot be used change nothing.

use crate::config::tls::{AuthClients, Tls as Settings};
use crate::front::process::Process;
use crate::front::shared::Shared;
use rufous::runtime::{Handle, Tls};
use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, ServerConfig, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How often it is looked whether files have changed.
const PERIOD: Duration = Duration::from_secs(1);

/// The setting that says who signs.
const AUTHORITY: &str = "tls-ca-cert-file";

/// Why there is no TLS by these settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("tls-port needs {0}")]
    Missing(&'static str),
    #[error(
        "tls-auth-clients needs tls-ca-cert-file with the authorities that sign client certificates (or set tls-auth-clients no)"
    )]
    NoAuthority,
    #[error("cannot read {setting} '{path}': {source}")]
    File {
        setting: &'static str,
        path: String,
        source: pem::Error,
    },
    #[error("{setting} '{path}' has no {what} in PEM form")]
    Empty {
        setting: &'static str,
        path: String,
        what: &'static str,
    },
    #[error("{setting} '{path}' cannot be used: {why}")]
    Unusable {
        setting: &'static str,
        path: String,
        why: String,
    },
}

/// What changes when somebody writes a file or puts another in its place.
type Mark = [Option<(SystemTime, u64)>; 3];

/// The certificates in use, and the files that they come from.
#[derive(Debug)]
pub struct Certificates {
    settings: Settings,
    tls: Tls,
    /// The files as they were last looked at.
    seen: Mutex<Mark>,
    /// Times that they were loaded.
    loads: AtomicU64,
    /// They have changed, and cannot be used as they are now.
    is_stale: AtomicBool,
}

impl Certificates {
    pub fn load(settings: &Settings) -> Result<Self, TlsError> {
        let seen = marks_of(settings);
        Ok(Self {
            tls: Tls::new(server_config(settings)?),
            settings: settings.clone(),
            seen: Mutex::new(seen),
            loads: AtomicU64::new(1),
            is_stale: AtomicBool::new(false),
        })
    }

    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Loads them again; what is there stays where that fails.
    pub fn reload(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = marks_of(&self.settings);
        match server_config(&self.settings) {
            Ok(config) => {
                self.tls.replace(config);
                self.loads.fetch_add(1, Ordering::Relaxed);
                self.is_stale.store(false, Ordering::Relaxed);
                tracing::info!("certificates were loaded again");
            }
            Err(error) => {
                self.is_stale.store(true, Ordering::Relaxed);
                tracing::error!(%error, "cannot load the new certificates; new connections keep the old ones");
            }
        }
    }

    fn tell(&self, process: &Process) {
        let loads = self.loads.load(Ordering::Relaxed);
        let is_stale = self.is_stale.load(Ordering::Relaxed);
        process
            .tls_certificate_loads
            .store(loads, Ordering::Relaxed);
        process
            .tls_certificates_stale
            .store(is_stale.into(), Ordering::Relaxed);
    }

    pub(crate) fn has_changed(&self) -> bool {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) != marks_of(&self.settings)
    }
}

/// Loads certificates again whenever their files change, as long as the node runs.
pub fn watch(handle: &Handle, certificates: Arc<Certificates>, shared: Arc<Shared>) {
    handle.spawn(async move {
        loop {
            if certificates.has_changed() {
                certificates.reload();
            }
            certificates.tell(&shared.process);
            tokio::time::sleep(PERIOD).await;
        }
    });
}

fn marks_of(settings: &Settings) -> Mark {
    let files = [
        &settings.cert_file,
        &settings.key_file,
        &settings.ca_cert_file,
    ];
    files.map(|path| {
        let about = std::fs::metadata(path).ok()?;
        Some((about.modified().ok()?, about.len()))
    })
}

/// By what the settings and their files say now.
pub fn server_config(settings: &Settings) -> Result<ServerConfig, TlsError> {
    let given = |path: &str, setting| match path.is_empty() {
        true => Err(TlsError::Missing(setting)),
        false => Ok(()),
    };
    given(&settings.cert_file, "tls-cert-file")?;
    given(&settings.key_file, "tls-key-file")?;
    let chain = certificates("tls-cert-file", &settings.cert_file)?;
    let key = private_key("tls-key-file", &settings.key_file)?;
    let versions = versions(settings);
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&versions)
        // invariant: both versions are compiled in, and one at least is asked for
        .expect("versions that the provider has");
    let builder = match verifier(settings)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(chain, key);
    config.map_err(|error| unusable("tls-cert-file", &settings.cert_file, error))
}

/// The same for who dials: its own certificate, and who signs those of others.
pub fn client_config(settings: &Settings) -> Result<ClientConfig, TlsError> {
    let versions = versions(settings);
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&versions)
        // invariant: both versions are compiled in, and one at least is asked for
        .expect("versions that the provider has")
        .with_root_certificates(roots(&settings.ca_cert_file)?);
    let chain = certificates("tls-cert-file", &settings.cert_file)?;
    let key = private_key("tls-key-file", &settings.key_file)?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map_err(|error| unusable("tls-cert-file", &settings.cert_file, error))
}

/// Whether a certificate is for a host: one of its subject alternative names is.
pub(crate) fn is_for(certificate: &[u8], host: &str) -> bool {
    let certificate = CertificateDer::from(certificate);
    let (Ok(parsed), Ok(name)) = (
        ParsedCertificate::try_from(&certificate),
        ServerName::try_from(host),
    ) else {
        return false;
    };
    verify_server_name(&parsed, &name).is_ok()
}

fn versions(settings: &Settings) -> Vec<&'static SupportedProtocolVersion> {
    let all = [
        (settings.protocols.v1_3, &version::TLS13),
        (settings.protocols.v1_2, &version::TLS12),
    ];
    let spoken = all.iter().filter(|(is_spoken, _)| *is_spoken);
    spoken.map(|(_, version)| *version).collect()
}

/// Who looks at the certificates of clients, if anybody.
fn verifier(settings: &Settings) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let path = &settings.ca_cert_file;
    match settings.auth_clients {
        AuthClients::No => return Ok(None),
        _ if path.is_empty() => return Err(TlsError::NoAuthority),
        AuthClients::Yes | AuthClients::Optional => {}
    }
    let roots = roots(path)?;
    let provider = Arc::new(default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match settings.auth_clients {
        AuthClients::Optional => builder.allow_unauthenticated(),
        AuthClients::Yes | AuthClients::No => builder,
    };
    let built = builder.build();
    let verifier = built.map_err(|error| unusable(AUTHORITY, path, error))?;
    Ok(Some(verifier))
}

fn roots(path: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(AUTHORITY, path)? {
        let added = roots.add(certificate);
        added.map_err(|error| unusable(AUTHORITY, path, error))?;
    }
    Ok(roots)
}

fn unusable(setting: &'static str, path: &str, error: impl ToString) -> TlsError {
    TlsError::Unusable {
        setting,
        path: path.into(),
        why: error.to_string(),
    }
}

fn certificates(
    setting: &'static str,
    path: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(Path::new(path)).and_then(Iterator::collect);
    match all {
        Ok(all) if Vec::is_empty(&all) => Err(lacks_item(setting, path, "certificate")),
        Ok(all) => Ok(all),
        Err(error) => Err(unreadable(setting, path, "certificate", error)),
    }
}

fn private_key(setting: &'static str, path: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(Path::new(path))
        .map_err(|error| unreadable(setting, path, "private key without a password", error))
}

fn lacks_item(setting: &'static str, path: &str, what: &'static str) -> TlsError {
    TlsError::Empty {
        setting,
        path: path.into(),
        what,
    }
}

fn unreadable(
    setting: &'static str,
    path: &str,
    what: &'static str,
    error: pem::Error,
) -> TlsError {
    match error {
        pem::Error::NoItemsFound => lacks_item(setting, path, what),
        source => TlsError::File {
            setting,
            path: path.into(),
            source,
        },
    }
}
