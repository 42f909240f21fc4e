//! How a node joins its cluster: its identity, its addresses, and its coordinator.

use super::control;
use super::etcd;
use super::identity::{Identity, IdentityError, RESTORED};
use super::kept::Keeping;
use super::past::Run;
use super::settings::{CoordinatorAddress, Settings, Wrong};
use super::state::Cluster;
use super::tls::{self, PeerCertificates};
use super::unclaimed::Unclaimed;
use crate::front::Front;
use crate::front::shared::Shared;
use crate::identity::VERSION;
use crate::tls::TlsError;
use rufous::runtime::{self, Handle, Listen, Runtime};
use rufous_coordinator::local::Local;
use rufous_coordinator::loopback::{Client, Secret};
use rufous_coordinator::meeting::Meeting;
use rufous_coordinator::{Coordinator, NodeId};
use rufous_kernel::worker::Past;
use rufous_mapping::{Folder, Member};
use rufous_wire::message::ID;
use rufous_wire::proof::{Demand, NONCE};
use rufous_wire::version::OLDEST;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The cluster's part of the data folder.
pub(super) const FOLDER: &str = "cluster";

/// Random bits of an incarnation, below the time in milliseconds.
const LOW_BITS: u32 = 12;

/// How often to check whether a node has loaded its data.
const LOAD_LOOK: Duration = Duration::from_millis(20);

/// Why a node cannot join its cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    Settings(#[from] Wrong),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("between nodes: {0}")]
    Tls(#[from] TlsError),
    #[error("the operating system gave no random numbers: {0}")]
    Random(String),
    #[error(transparent)]
    Coordinator(#[from] rufous_coordinator::Error),
}

/// A node that is about to start.
#[derive(Debug)]
pub struct Joining {
    pub cluster: Arc<Cluster>,
    certificates: Option<PeerCertificates>,
    etcd: Option<rufous_coordinator::etcd::Settings>,
    folder: Option<PathBuf>,
}

impl Joining {
    /// `folder` is the node's data folder, whose lock the caller holds.
    pub fn prepare(settings: &Settings, folder: Option<&Path>) -> Result<Self, ClusterError> {
        settings.check()?;
        let mut random = [0; ID + 8 + NONCE];
        getrandom::fill(&mut random).map_err(|error| ClusterError::Random(error.to_string()))?;
        let (mut made, mut start, mut entropy) = ([0; ID], [0; 8], [0; NONCE]);
        made.copy_from_slice(&random[..ID]);
        start.copy_from_slice(&random[ID..ID + 8]);
        entropy.copy_from_slice(&random[ID + 8..]);
        let least = least_incarnation(start);
        // A node whose id is given may have run with another folder.
        let knows = folder.is_some_and(|folder| Identity::is_in(&folder.join(FOLDER)));
        let is_new = !knows && settings.id.is_none();
        let unclaimed = folder.map(unclaimed).transpose()?.flatten();
        let data = folder;
        let folder = folder.map(|folder| folder.join(FOLDER));
        let identity = match &folder {
            Some(folder) => Identity::next(folder, settings.id, made, least)?,
            // Nothing is kept when it ends: the next start is another node.
            None => Identity {
                id: settings.id.unwrap_or(made),
                incarnation: least,
                after: 0,
            },
        };
        let certificates = settings.tls.as_ref().map(PeerCertificates::load);
        let local = rufous_wire::Local {
            cluster: settings.name.clone(),
            id: identity.id,
            incarnation: identity.incarnation,
            start: u64::from_le_bytes(start),
            oldest: OLDEST,
            newest: settings.wire_version,
            program: VERSION.to_owned(),
        };
        let auth = settings.auth(entropy);
        warn_of_optional(settings);
        let mut cluster = Cluster::guarded(settings.clone(), local, auth);
        cluster.unclaimed = unclaimed;
        cluster.set_folder(folder.as_deref(), identity);
        cluster.keeping = Arc::new(Keeping::below(folder.as_deref(), settings));
        cluster.kept = cluster.keeping.read()?;
        if let (Some(folder), Some(data)) = (&folder, data) {
            cluster.mark_lost(folder, data)?;
        }
        cluster.shown.set_went_back(cluster.kept.is_behind);
        cluster.about.set_went_back(cluster.kept.is_behind);
        cluster.is_new = is_new;
        if let (Some(folder), Some(data)) = (&folder, data) {
            let begun = Run::begin(folder, data, is_new);
            let (run, past) = begun.map_err(|source| IdentityError::File {
                path: folder.clone(),
                source,
            })?;
            (cluster.run, cluster.past) = (Some(Arc::new(run)), past);
        } else if is_new {
            cluster.past = Past::New;
        }
        Ok(Self {
            etcd: match &settings.coordinator {
                CoordinatorAddress::Etcd(hosts) => {
                    Some(etcd::settings(hosts, &settings.name, &settings.etcd)?)
                }
                _ => None,
            },
            cluster: Arc::new(cluster),
            certificates: certificates.transpose()?,
            folder,
        })
    }

    /// Where the node listens for others, and its certificates for them.
    pub fn configure(&self, config: &mut runtime::Config) {
        let listen = self.cluster.settings.listen;
        config.listen_peers = vec![match self.certificates {
            Some(_) => Listen::Tls(listen),
            None => Listen::Tcp(listen),
        }];
        let clients = self.cluster.settings.clients;
        config.listen_redirected = clients.map(Listen::Tcp).into_iter().collect();
        let certificates = self.certificates.as_ref();
        config.peer_tls = certificates.map(PeerCertificates::accepting);
        config.dial_tls = certificates.map(PeerCertificates::dialling);
    }

    /// The node has started: it is announced to others as soon as it has loaded its data.
    pub fn join(self, node: &Runtime<Front>, shared: &Arc<Shared>) -> Result<(), ClusterError> {
        let member = member(&self.cluster, node, node.teller().workers());
        self.cluster.about.begin(member.clone());
        let me = rufous_coordinator::Member {
            id: member.id,
            incarnation: member.incarnation,
            after: self.cluster.after.unwrap_or(0),
            about: rufous_wire::mapping::encode_member(&member),
        };
        if let Some(certificates) = self.certificates {
            tls::watch(node, certificates);
        }
        let (handle, teller) = (node.handle(), node.teller());
        let cluster = Arc::clone(&self.cluster);
        tracing::info!(id = %member.id, incarnation = member.incarnation, peer = member.peer, "a node of a cluster");
        match (&self.cluster.settings.coordinator, &self.folder) {
            (CoordinatorAddress::Local, Some(folder)) => {
                follow(handle, Local::open(folder, me)?, cluster, teller);
            }
            (CoordinatorAddress::Local, None) => {
                follow(handle, Meeting::default().join(me)?, cluster, teller)
            }
            (CoordinatorAddress::Meeting(meeting), None) => {
                follow(handle, meeting.join(me)?, cluster, teller)
            }
            (CoordinatorAddress::Meeting(meeting), Some(_)) => {
                let (meeting, shared) = (meeting.clone(), Arc::clone(shared));
                handle.clone().spawn_to_end(async move {
                    loaded(&handle, &shared).await;
                    match meeting.join(me) {
                        Ok(seat) => control::serve(handle, seat, cluster, teller).await,
                        Err(error) => tracing::error!(%error, "no cluster"),
                    }
                });
            }
            (CoordinatorAddress::Loopback(at), _) => {
                let (at, shared) = (at.clone(), Arc::clone(shared));
                handle.clone().spawn_to_end(async move {
                    loaded(&handle, &shared).await;
                    follow_process(handle, at, me, cluster, teller).await;
                });
            }
            (CoordinatorAddress::Etcd(_), _) => {
                if let Some(etcd) = self.etcd {
                    etcd::follow((handle, shared), etcd, me, cluster, teller);
                }
            }
        }
        Ok(())
    }
}

fn warn_of_optional(settings: &Settings) {
    if settings.demand == Demand::Optional {
        tracing::warn!(
            "cluster-auth is optional: any process that reaches cluster-listen can act as a node; remove the setting once all nodes have the secret"
        );
    }
}

impl Cluster {
    /// What the folder tells of earlier starts.
    fn set_folder(&mut self, folder: Option<&Path>, identity: Identity) {
        self.after = folder.map(|_| identity.after);
        let restored = folder.map(|folder| folder.join(RESTORED));
        self.restored = restored.filter(|path| path.exists());
    }

    /// Marks the data where it is of a cluster of which no mapping is kept.
    fn mark_lost(&mut self, folder: &Path, data: &Path) -> Result<(), IdentityError> {
        if self.unclaimed.is_none() && self.keeping.has_lost(&self.kept) {
            let marked = Unclaimed::of_lost_mapping(data, folder);
            self.unclaimed = marked.map_err(|source| IdentityError::File {
                path: folder.to_owned(),
                source,
            })?;
        }
        Ok(())
    }
}

/// The least incarnation of this start, by the clock and at random: no start with an emptied
/// folder, or with one from the past, has the number of an earlier start, which would let it pass
/// for that one with all its data.
fn least_incarnation(random: [u8; 8]) -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let ms = since.map_or(0, |since| since.as_millis() as u64);
    let low = u64::from_le_bytes(random) % (1 << LOW_BITS);
    (ms % (1 << (u64::BITS - 1 - LOW_BITS))) << LOW_BITS | low
}

/// Data in a folder from before its node was in a cluster.
fn unclaimed(folder: &Path) -> Result<Option<Unclaimed>, IdentityError> {
    let cluster = folder.join(FOLDER);
    let knows = Identity::is_in(&cluster);
    Unclaimed::find(folder, &cluster, knows).map_err(|source| IdentityError::File {
        path: cluster,
        source,
    })
}

/// A node announced before it has its data would be counted on, but could not answer.
pub(super) async fn loaded(node: &Handle, shared: &Shared) {
    while shared.loading.is_loading() && !node.is_stopping() {
        tokio::time::sleep(LOAD_LOOK).await;
    }
}

pub(super) type Teller = runtime::Teller<crate::front::Message>;

fn follow<C>(node: Handle, coordinator: C, cluster: Arc<Cluster>, teller: Teller)
where
    C: Coordinator + Send + Sync + 'static,
{
    let serving = control::serve(node.clone(), coordinator, cluster, teller);
    node.spawn_to_end(serving);
}

/// The coordinator may be unavailable when the node starts.
async fn follow_process(
    node: Handle,
    at: String,
    me: rufous_coordinator::Member,
    cluster: Arc<Cluster>,
    teller: Teller,
) {
    let secret = cluster.settings.secret.as_ref();
    let secret = secret.map(|secret| Secret::new(secret.text().as_bytes()));
    match Client::open(&at, &cluster.settings.name, secret, me) {
        Ok(client) => control::serve(node, client, cluster, teller).await,
        Err(error) => {
            tracing::error!(%error, "cannot start the cluster with these settings");
            node.stop();
        }
    }
}

/// What a node announces, with the ports that it was given.
fn member(cluster: &Cluster, node: &Handle, workers: usize) -> Member {
    let settings = &cluster.settings;
    let address = |listen: &Listen| match listen {
        Listen::Tcp(at) | Listen::Tls(at) => Some(settings.address(at.port())),
        Listen::Unix { .. } => None,
    };
    let first = |all: &[Listen]| all.iter().find_map(address).unwrap_or_default();
    Member {
        id: NodeId(cluster.common.local.id),
        incarnation: cluster.common.local.incarnation,
        peer: first(node.peer_addresses()),
        plain: first(node.addresses()),
        cluster: first(node.redirected_addresses()),
        zone: settings.zone.clone(),
        weight: settings.weight,
        workers: workers as u16,
        drains: false,
        folder: cluster.after.map_or(Folder::Unsaid, Folder::After),
    }
}
