//! The settings of durability.

use crate::durable::keeper::Schedule;
use crate::durable::log::{Bounds, Fsync};

/// The embedder's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether changes are logged.
    pub log: bool,
    pub fsync: Fsync,
    pub bounds: Bounds,
    pub segment_bytes: u64,
    pub schedule: Schedule,
    /// Whether a save by schedule that fails stops writes, where there is no log.
    pub stop_on_save_error: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            log: false,
            fsync: Fsync::EverySec,
            bounds: Bounds::default(),
            segment_bytes: 64 << 20,
            schedule: Schedule::default(),
            stop_on_save_error: false,
        }
    }
}
