//! A cluster with etcd as its coordinator: how the node connects to it.

use super::control;
use super::settings::EtcdAccess;
use super::start::{Teller, loaded};
use super::state::Cluster;
use crate::front::shared::Shared;
use rufous::runtime::Handle;
use rufous_coordinator::etcd::{Etcd, Settings, Tls};
use rufous_coordinator::{Error, Member};
use std::sync::Arc;
use std::time::Duration;

/// Delay between two attempts to log in to etcd.
const PAUSE: Duration = Duration::from_millis(500);

/// Reads the files that the settings name.
pub(super) fn settings(
    hosts: &[String],
    name: &str,
    access: &EtcdAccess,
) -> Result<Settings, Error> {
    let read = |file: &String| {
        let text = std::fs::read_to_string(file);
        text.map_err(|error| Error::Settings(format!("cannot read '{file}': {error}")))
    };
    let is_given = |file: &&String| !file.is_empty();
    let tls = match is_given(&&access.ca_cert_file) {
        false => None,
        true => {
            let authority = read(&access.ca_cert_file)?;
            let certificate = Some(&access.cert_file).filter(is_given).map(read);
            let key = Some(&access.key_file).filter(is_given).map(read);
            let identity = certificate.transpose()?.zip(key.transpose()?);
            Some(Tls {
                authority,
                identity,
            })
        }
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let user = (!access.user.is_empty()).then(|| (access.user.clone(), access.password.clone()));
    Ok(Settings {
        endpoints: hosts
            .iter()
            .map(|host| format!("{scheme}://{host}"))
            .collect(),
        cluster: name.to_owned(),
        user,
        tls,
    })
}

/// The coordinator may be unavailable when the node starts.
pub(super) fn follow(
    (node, shared): (Handle, &Arc<Shared>),
    settings: Settings,
    me: Member,
    cluster: Arc<Cluster>,
    teller: Teller,
) {
    let shared = Arc::clone(shared);
    node.clone().spawn_to_end(async move {
        loaded(&node, &shared).await;
        let mut said = String::new();
        while !node.is_stopping() {
            match Etcd::open(&settings, me.clone()).await {
                Ok(etcd) => return control::serve(node, etcd, cluster, teller).await,
                Err(error @ Error::Away(_)) => {
                    let what = error.to_string();
                    if said != what {
                        tracing::warn!(%error, "cannot reach the cluster yet; trying again");
                        said = what;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    tracing::error!(%error, "cannot start the cluster with these settings");
                    return node.stop();
                }
            }
        }
    });
}
