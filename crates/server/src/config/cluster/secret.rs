//! The secret that the nodes of a cluster prove to each other.

use super::{Clustering, Param, Set, Wrong, secrets};
use crate::cluster::settings::ClusterSecret;
use crate::config::values::{name_of, named};
use rufous_wire::proof::Demand;

/// By the names of `cluster-auth`.
const DEMANDS: [(Demand, &str); 2] = [
    (Demand::Required, "required"),
    (Demand::Optional, "optional"),
];

impl Clustering {
    pub(super) fn secret(&self) -> Result<Option<ClusterSecret>, Wrong> {
        let file = ("cluster-secret-file", self.secret_file.as_str());
        let secret = secrets::one_of(self.secret.text(), file)?;
        Ok((!secret.is_empty()).then(|| ClusterSecret::new(secret)))
    }
}

setting!(
    SECRET,
    SET_SECRET,
    "cluster-secret",
    |all| secrets::shown(all.secret.text()),
    |all, value| {
        all.secret = ClusterSecret::new(value);
        Ok(())
    },
    "Secret that the nodes of a cluster prove to each other, the same on all; empty: none. Required beyond loopback without TLS between nodes."
);
text!(
    SECRET_FILE,
    SET_SECRET_FILE,
    "cluster-secret-file",
    secret_file,
    "File with that secret; read at startup."
);
setting!(
    AUTH,
    SET_AUTH,
    "cluster-auth",
    |all| name_of(&DEMANDS, all.demand),
    |all, value| {
        all.demand = named(&DEMANDS, value)?;
        Ok(())
    },
    "Whether nodes that do not prove the secret are refused; optional: any process is believed, for the time in which running nodes get a secret."
);
