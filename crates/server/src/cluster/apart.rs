//! What a node of several refuses of lattice keyspaces, unless it was told to share them:
//! nodes that crash at bad moments may end with different replicas (record 26), and so
//! no setting tells it so yet.

use crate::front::Front;
use rufous_base::Args;
use rufous_command::{Failure, Spec};

impl Front {
    /// Whether there are other nodes that would not hear of a lattice keyspace's keys.
    fn is_one_of_several(&self) -> bool {
        let cluster = self.shared.cluster.as_ref();
        let shares = cluster.is_some_and(|cluster| cluster.settings.shares_lattices);
        let mapping = self.links().and_then(|links| links.mapping());
        !shares && mapping.is_some_and(|mapping| mapping.members.len() > 1)
    }

    /// Why a keyspace of regime lattice is not made or changed here.
    pub(crate) fn refused_lattice_keyspace(&self) -> Option<Failure> {
        self.is_one_of_several().then(|| {
            "ERR keyspaces of regime lattice are not replicated between nodes: a cluster of \
             several nodes has none"
                .into()
        })
    }

    /// Why a request on keys of a lattice keyspace is not done here.
    #[cold]
    pub(crate) fn refused_lattice_keys(&self, spec: &Spec, args: &Args<'_>) -> Option<Failure> {
        if !self.is_one_of_several() {
            return None;
        }
        let (placement, mut keys) = (self.kernel.placement(), Vec::new());
        spec.keys.find(args, 0, &mut keys);
        let mut keys = keys.iter().map(|(_, arg)| args.get(*arg as usize));
        let keyspace = keys.find_map(|key| placement.lattice(key))?;
        Some(
            format!(
                "ERR keyspace '{}' is of regime lattice, and not replicated between nodes: a \
                 cluster of several nodes does not serve its keys",
                keyspace.name
            )
            .into(),
        )
    }
}
