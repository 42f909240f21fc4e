//! Connections that speak HTTP. A page in a browser on this machine can send requests to a local port,
//! with commands in their bodies; nothing after the first lines may run.

use rufous_base::Now;

/// Microseconds between two log lines about rejected HTTP requests.
const LOG_PERIOD_US: u64 = 60_000_000;

/// Whether this is the first word of an HTTP request, or of a line of its header.
pub(super) fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}

/// When rejected HTTP requests are logged.
#[derive(Debug, Default)]
pub(super) struct HttpLog {
    logged_us: Option<u64>,
}

impl HttpLog {
    /// A connection is closed because it speaks HTTP. Returns whether that is logged.
    pub(super) fn on_closed(&mut self, now: Now) -> bool {
        let period_us = |at: u64| at.saturating_add(LOG_PERIOD_US);
        let is_due = self.logged_us.is_none_or(|at| now.mono_us >= period_us(at));
        if is_due {
            self.logged_us = Some(now.mono_us);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_logged_a_minute() {
        let mut log = HttpLog::default();
        let mut at = |mono_us| {
            log.on_closed(Now {
                mono_us,
                ..Now::default()
            })
        };
        assert!(at(5) && !at(6) && !at(4 + LOG_PERIOD_US));
        assert!(at(5 + LOG_PERIOD_US) && !at(6 + LOG_PERIOD_US));
    }

    #[test]
    fn words_of_http_in_any_case() {
        assert!(is_http(b"POST") && is_http(b"Host:") && !is_http(b"GET"));
    }
}
