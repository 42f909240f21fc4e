//! Certificates between nodes: both the dialling and the accepting side show one that the cluster's
//! authority has signed.

use super::settings::PeerTls;
use crate::tls::{Certificates, TlsError, client_config};
use rufous::runtime::{DialTls, Handle, Tls};
use std::sync::Arc;
use std::time::Duration;

/// How often the files are checked for changes.
const PERIOD: Duration = Duration::from_secs(1);

/// The certificates that nodes show each other.
#[derive(Debug)]
pub struct PeerCertificates {
    settings: PeerTls,
    accepting: Certificates,
    dialling: DialTls,
}

impl PeerCertificates {
    pub fn load(settings: &PeerTls) -> Result<Self, TlsError> {
        let tls = settings.settings();
        Ok(Self {
            settings: settings.clone(),
            accepting: Certificates::load(&tls)?,
            dialling: DialTls::new(client_config(&tls)?),
        })
    }

    pub fn accepting(&self) -> Tls {
        self.accepting.tls()
    }

    pub fn dialling(&self) -> DialTls {
        self.dialling.clone()
    }

    /// Reloads changed files; the certificates in use stay if that fails.
    fn look(&self) {
        if !self.accepting.has_changed() {
            return;
        }
        self.accepting.reload();
        match client_config(&self.settings.settings()) {
            Ok(config) => self.dialling.replace(config),
            Err(error) => {
                tracing::error!(%error, "cannot load the new certificates; links to nodes keep the old ones")
            }
        }
    }
}

/// Checks the files as long as the node runs.
pub fn watch(node: &Handle, certificates: PeerCertificates) {
    let certificates = Arc::new(certificates);
    node.spawn(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            certificates.look();
        }
    });
}
