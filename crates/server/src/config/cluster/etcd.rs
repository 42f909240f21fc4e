//! What an etcd wants to see of the node.

use super::{Clustering, Param, Set, Wrong, secrets};
use crate::cluster::settings::{CoordinatorAddress, EtcdAccess};
use crate::config::values::{parse_yes_no, yes_no};

impl Clustering {
    /// The settings of that, which go together.
    pub(super) fn etcd_access(
        &self,
        coordinator: &CoordinatorAddress,
    ) -> Result<EtcdAccess, Wrong> {
        let file = (
            "cluster-etcd-password-file",
            self.etcd_password_file.as_str(),
        );
        let all = EtcdAccess {
            password: secrets::one_of(&self.etcd.password, file)?,
            ..self.etcd.clone()
        };
        let given = [
            ("cluster-etcd-ca-cert-file", &all.ca_cert_file),
            ("cluster-etcd-cert-file", &all.cert_file),
            ("cluster-etcd-key-file", &all.key_file),
            ("cluster-etcd-user", &all.user),
            ("cluster-etcd-password", &all.password),
        ];
        let is = |at: usize| !given[at].1.is_empty();
        let wrong = |at: usize, what: &str| Err((given[at].0, what.to_owned()));
        let first = given.iter().position(|(_, value)| !value.is_empty());
        if let Some(at) = first.filter(|_| !matches!(coordinator, CoordinatorAddress::Etcd(_))) {
            return wrong(
                at,
                "this needs an etcd as the coordinator: see cluster-coordinator",
            );
        }
        match () {
            () if is(1) && !is(2) => wrong(2, "the key of cluster-etcd-cert-file is needed, too"),
            () if is(2) && !is(1) => {
                wrong(1, "the certificate of cluster-etcd-key-file is needed, too")
            }
            () if is(1) && !is(0) => wrong(
                0,
                "client certificates need TLS: set the CA certificate of etcd as well",
            ),
            () if is(3) && !is(4) => wrong(4, "etcd wants the password of cluster-etcd-user"),
            () if is(4) && !is(3) => wrong(3, "etcd wants to know whose cluster-etcd-password is"),
            () => Ok(all),
        }
    }
}

text!(
    CA_CERT_FILE,
    SET_CA_CERT_FILE,
    "cluster-etcd-ca-cert-file",
    etcd.ca_cert_file,
    "Certificates of the authorities that sign etcd's certificate (PEM); empty: no TLS to etcd."
);
text!(
    CERT_FILE,
    SET_CERT_FILE,
    "cluster-etcd-cert-file",
    etcd.cert_file,
    "Certificate that the node presents to etcd (PEM); empty: none."
);
text!(
    KEY_FILE,
    SET_KEY_FILE,
    "cluster-etcd-key-file",
    etcd.key_file,
    "Private key of that certificate (PEM, without a password)."
);
text!(
    USER,
    SET_USER,
    "cluster-etcd-user",
    etcd.user,
    "User name at etcd, if its authentication is enabled; empty: none."
);
setting!(
    PASSWORD,
    SET_PASSWORD,
    "cluster-etcd-password",
    |all| secrets::shown(&all.etcd.password),
    |all, value| {
        all.etcd.password = value.into();
        Ok(())
    },
    "Password of that user."
);
text!(
    PASSWORD_FILE,
    SET_PASSWORD_FILE,
    "cluster-etcd-password-file",
    etcd_password_file,
    "File with that password; read at startup."
);
setting!(
    PASSWORD_IN_CLEAR,
    SET_PASSWORD_IN_CLEAR,
    "cluster-etcd-password-in-clear",
    |all| yes_no(all.etcd.in_clear),
    |all, value| {
        all.etcd.in_clear = parse_yes_no(value)?;
        Ok(())
    },
    "Whether the password may be sent to etcd without TLS."
);
