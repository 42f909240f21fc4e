//! Figures from outside the actors: the operating system's about the process, and traffic of the
//! sockets.

use std::sync::atomic::AtomicU64;

/// Updated periodically by the process that runs the node, read by `INFO` and `MEMORY`. Zero if it
/// is not updated.
#[derive(Debug, Default)]
pub struct Process {
    pub pid: AtomicU64,
    /// Resident memory, current and peak.
    pub rss_bytes: AtomicU64,
    pub peak_rss_bytes: AtomicU64,
    /// Memory of the machine.
    pub system_memory_bytes: AtomicU64,
    pub cpu_user_us: AtomicU64,
    pub cpu_system_us: AtomicU64,
    pub net_input_bytes: AtomicU64,
    pub net_output_bytes: AtomicU64,
    /// Connections refused because of `maxclients`.
    pub rejected_connections: AtomicU64,
    pub tls_handshakes: AtomicU64,
    pub tls_handshake_errors: AtomicU64,
    /// How often certificates were loaded.
    pub tls_certificate_loads: AtomicU64,
    /// 1 if the certificate files have changed and cannot be used.
    pub tls_certificates_stale: AtomicU64,
}
