//! What becomes of nodes that are away.

use super::{Clustering, Param, Set, integer};
use crate::config::values::{parse_yes_no, yes_no};

setting!(
    ACCEPT_LOSS,
    SET_ACCEPT_LOSS,
    "cluster-accept-loss",
    |all| yes_no(all.accept_loss),
    |all, value| {
        all.accept_loss = parse_yes_no(value)?;
        Ok(())
    },
    "Whether slots continue although acknowledged writes may be lost: all their copies have stopped, and some copies do not come back. Set it to yes on the nodes that are left, restart them, and set it to no again."
);
setting!(
    FORGET_AFTER,
    SET_FORGET_AFTER,
    "cluster-forget-after",
    |all| all.forget_after_s.to_string(),
    |all, value| {
        all.forget_after_s = integer(value, 0..=i64::from(u32::MAX))? as u64;
        Ok(())
    },
    "Seconds after which a node that is away leaves the cluster, as with rufous cluster forget, while other nodes have copies of all its slots: deleted lattice keys do not wait for it any longer. Started again, it joins as a new node. 0: never."
);
