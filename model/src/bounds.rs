//! How much may happen in one history.

/// When a node's log is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Before anything that depends on it leaves the node.
    Always,
    /// Some time later.
    Later,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub nodes: usize,
    pub copies: usize,
    pub sync: Sync,
    pub writes: usize,
    /// Ends of nodes; each may lose what is not synced.
    pub ends: usize,
    /// Folders that are emptied, or put back as they were earlier, while their node is down.
    pub spoils: usize,
    /// Live nodes that the coordinator takes for dead.
    pub suspicions: usize,
    /// Links between nodes that break, with the messages on them, and work again.
    pub breaks: usize,
    /// Leases that run out.
    pub leases: usize,
}

/// The bounds that are tried exhaustively, with their names.
pub fn small() -> Vec<(&'static str, Bounds)> {
    let bounds = Bounds {
        nodes: 2,
        copies: 2,
        sync: Sync::Always,
        writes: 1,
        ends: 2,
        spoils: 1,
        suspicions: 0,
        breaks: 0,
        leases: 1,
    };
    let suspected = Bounds {
        ends: 0,
        spoils: 0,
        suspicions: 1,
        breaks: 1,
        leases: 2,
        ..bounds.clone()
    };
    let later = Bounds {
        sync: Sync::Later,
        spoils: 0,
        ..bounds.clone()
    };
    vec![
        ("restart", bounds),
        ("suspicion", suspected),
        ("later", later),
    ]
}

/// Larger bounds, for random histories, with their names.
pub fn large() -> Vec<(&'static str, Bounds)> {
    let two = Bounds {
        nodes: 3,
        copies: 2,
        sync: Sync::Always,
        writes: 6,
        ends: 6,
        spoils: 1,
        suspicions: 2,
        breaks: 2,
        leases: 6,
    };
    let three = Bounds {
        copies: 3,
        ..two.clone()
    };
    let later = Bounds {
        sync: Sync::Later,
        spoils: 0,
        ..two.clone()
    };
    vec![
        ("random", two),
        ("random, three copies", three),
        ("random, later", later),
    ]
}
