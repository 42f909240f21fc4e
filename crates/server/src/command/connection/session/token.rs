//! What a session has seen, as the client keeps it: opaque to the client, and valid at all nodes of one cluster.
//!
//! [Sealed](rufous_datatype::replicated::sealed): a vector of dates of replicas, for the cluster. A client that makes up a token waits
//! for nothing, or in vain.

use crate::front::shared::Shared;
use rufous_datatype::replicated::sealed::{self, NotAToken};
use rufous_kernel::replicate::vector::Vector;

/// Digits of the largest token: of a cluster of 1,000 nodes with 64 workers.
const MOST_DIGITS: usize = 2 << 20;

/// Where tokens are valid: in a cluster of this name, or at a node with these files.
#[derive(Clone, Debug)]
pub(super) struct Realm(Vec<u8>);

impl Realm {
    pub(super) fn of(shared: &Shared) -> Self {
        match &shared.cluster {
            Some(cluster) => Self::named(b'c', cluster.settings.name.as_bytes()),
            None => Self::named(b'n', &shared.files.to_be_bytes()),
        }
    }

    fn named(kind: u8, name: &[u8]) -> Self {
        let len = (name.len() as u64).to_be_bytes();
        Self([&[kind][..], &len, name].concat())
    }

    pub(super) fn encode(&self, vector: &Vector) -> Vec<u8> {
        let mut seen = Vec::new();
        vector.encode(&mut seen);
        sealed::seal(&self.0, &seen)
    }

    pub(super) fn decode(&self, token: &[u8]) -> Result<Vector, NotAToken> {
        let seen = sealed::open(&self.0, token, MOST_DIGITS)?;
        Vector::decode(&seen).map_err(|_| NotAToken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_of_one_cluster() {
        let (here, there) = (Realm::named(b'c', b"a"), Realm::named(b'c', b"b"));
        let vector = Vector::of((0..6).map(|replica| (replica, 1 << 60 | u64::from(replica))));
        let token = here.encode(&vector);
        assert!(token.len() < 100, "{} digits", token.len());
        assert_eq!(here.decode(&token), Ok(vector.clone()));
        assert_eq!(here.decode(&token.to_ascii_uppercase()), Ok(vector));
        assert_eq!(there.decode(&token), Err(NotAToken));
        let nothing = here.encode(&Vector::default());
        assert_eq!(here.decode(&nothing), Ok(Vector::default()));
        assert_eq!(here.decode(b""), Err(NotAToken));
        assert_eq!(here.decode(&vec![b'0'; 4 << 20]), Err(NotAToken));
    }
}
