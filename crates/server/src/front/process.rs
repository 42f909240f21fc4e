//! Figures that only the outside of the actors can know: what the operating
//! system counts of the process, and what the sockets carried.

use std::sync::atomic::AtomicU64;

/// Written now and then by whoever runs the node, read by `INFO` and
/// `MEMORY`. Zero where nobody writes.
#[derive(Debug, Default)]
pub struct Process {
    pub pid: AtomicU64,
    /// Resident memory, now and at its highest.
    pub rss_bytes: AtomicU64,
    pub peak_rss_bytes: AtomicU64,
    /// Of the machine.
    pub system_memory_bytes: AtomicU64,
    pub cpu_user_us: AtomicU64,
    pub cpu_system_us: AtomicU64,
    pub net_input_bytes: AtomicU64,
    pub net_output_bytes: AtomicU64,
    /// Turned away because of `maxclients`.
    pub rejected_connections: AtomicU64,
    pub tls_handshakes: AtomicU64,
    pub tls_handshake_errors: AtomicU64,
    /// Times that certificates were loaded.
    pub tls_certificate_loads: AtomicU64,
    /// 1 where their files have changed and cannot be used.
    pub tls_certificates_stale: AtomicU64,
}
