//! Certificates between nodes: both sides show one that the cluster's authority
//! has signed, those who dial and those who are dialled.

use super::settings::PeerTls;
use crate::tls::{Certificates, TlsError, client_config};
use rufous::runtime::{DialTls, Handle, Tls};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether files have changed.
const PERIOD: Duration = Duration::from_secs(1);

/// What nodes show each other.
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

    /// Loads files again that have changed; what is there stays where that fails.
    fn look(&self) {
        if !self.accepting.has_changed() {
            return;
        }
        self.accepting.reload();
        match client_config(&self.settings.settings()) {
            Ok(config) => self.dialling.replace(config),
            Err(error) => {
                tracing::error!(%error, "nodes are dialled with the certificates of before")
            }
        }
    }
}

/// Looks after them as long as the node runs.
pub fn watch(node: &Handle, certificates: PeerCertificates) {
    let certificates = Arc::new(certificates);
    node.spawn(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            certificates.look();
        }
    });
}
