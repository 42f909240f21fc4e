//! Keys of a lattice keyspace: every node has them and takes writes at once, whomever it
//! reaches.
//!
//! | module | concept |
//! |---|---|
//! | [`keys`] | which counters, sets and texts, and how long |
//! | [`acts`] | what was asked and answered, and while what |
//! | [`clients`] | who asks |
//! | [`quiet`] | what all nodes say in the end |
//! | [`verdict`] | whether it can be |

pub mod acts;
pub mod clients;
pub mod keys;
pub mod quiet;
pub mod verdict;

/// The keyspace, as a node's configuration file has it.
pub const CONFIGURATION: &str = r#"[[keyspace]]
name = "loose"
prefix = "l:"
regime = "lattice"
level = "read-your-writes+monotonic-reads"
threads = "all"
"#;

/// Its level by the name that the simulator's judge of sessions knows.
pub const LEVEL: &str = "read-your-writes+monotonic-reads";
