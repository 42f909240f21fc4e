//! The cluster state that all workers of a node share.

use crate::health::Board;
use crate::links::clocks::Far;
use crate::reports::Reports;
use crate::rooms::Rooms;
use rufous_mapping::Member;
use rufous_wire::proof::Auth;
use rufous_wire::{Local, Peers};

/// Whether a certificate (DER) is one for a host.
pub type IsFor = fn(certificate: &[u8], host: &str) -> bool;

/// See the module's description.
#[derive(Debug)]
pub struct Common {
    /// How this node introduces itself to others.
    pub local: Local,
    /// The secret that nodes prove to each other; `None`: any peer is believed.
    pub auth: Option<Auth>,
    /// Under TLS: the certificate of a node that connects has to be for the host that the member with
    /// its id has announced.
    pub is_for: Option<IsFor>,
    pub peers: Peers,
    pub rooms: Rooms,
    pub reports: Reports,
    pub health: Board,
    /// Nodes whose clocks are far from this node's.
    pub far: Far,
}

impl Common {
    pub fn new(local: Local) -> Self {
        Self {
            local,
            auth: None,
            is_for: None,
            peers: Peers::default(),
            rooms: Rooms::default(),
            reports: Reports::default(),
            health: Board::default(),
            far: Far::default(),
        }
    }

    /// Whether the certificate of a peer allows it to be this member.
    pub(crate) fn is_certified(&self, certificate: Option<&[u8]>, member: &Member) -> bool {
        let Some(is_for) = self.is_for else {
            return true;
        };
        let host = member.peer.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        certificate.is_some_and(|certificate| is_for(certificate, host))
    }
}
