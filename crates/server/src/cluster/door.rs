//! The two kinds of endpoints of a node.

use rufous_kernel::batch;

/// How requests for keys that are elsewhere are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Forwarded by the node itself.
    Plain,
    /// With a redirection to the other node.
    Redirecting,
}

impl Door {
    /// The option of the kernel that corresponds to it.
    #[inline]
    pub(crate) fn of_requests(self) -> batch::Door {
        match self {
            Self::Plain => batch::Door::Plain,
            Self::Redirecting => batch::Door::Redirected,
        }
    }

    /// The mode reported to clients.
    pub(crate) fn mode(self) -> &'static str {
        match self {
            Self::Plain => "standalone",
            Self::Redirecting => "cluster",
        }
    }
}
