//! What is wrong with a table of keyspaces, as clients are told.

use std::fmt;

/// Why a table of keyspaces is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    Name,
    Prefix,
    Gossip,
    Replicas,
    Cut,
    Ordered,
    Resolve,
    Strict,
    TooMany,
    NameTaken,
    PrefixTaken(Box<str>),
    Missing,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Invalid::Name => "a keyspace's name has 1 to 64 letters, digits and any of -_.:",
            Invalid::Prefix => "a prefix has at most 256 bytes",
            Invalid::Gossip => "the gossip period must be 1 to 60000 milliseconds",
            Invalid::Replicas => "replicas on other nodes are not supported: REPLICAS must be 1",
            Invalid::Cut => "CUT needs a replica on every worker: THREADS all",
            Invalid::Ordered => {
                "this LEVEL promises an order of writes to several keys: it needs a replica on every worker, THREADS all"
            }
            Invalid::Resolve => {
                "only LEVEL causal keeps several values of a key: \
                 RESOLVE of other levels is newest"
            }
            Invalid::Strict => {
                "a strict keyspace has one owner for each key: \
                 LEVEL, THREADS, RESOLVE and CUT are for lattice keyspaces"
            }
            Invalid::TooMany => "the limit of 1024 keyspaces is reached",
            Invalid::NameTaken => "a keyspace with this name exists",
            Invalid::PrefixTaken(name) => {
                return write!(f, "keyspace '{name}' has this prefix");
            }
            Invalid::Missing => "no such keyspace",
        };
        f.write_str(text)
    }
}
