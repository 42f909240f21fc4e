//! Closing connections, and which connections are clients.

use super::Front;
use super::connection::Connection;
use super::session::Session;
use rufous_base::Now;

impl Session<'_> {
    /// Closes the connection of the running request, once that request and all earlier ones are
    /// answered.
    pub fn close_after_reply(&mut self) {
        self.local.front.connections.close_after_reply(self.conn);
    }
}

impl Front {
    /// The connections of clients, not those that the process itself opened.
    pub fn clients(&self) -> impl Iterator<Item = &Connection> {
        self.connections().filter(|c| !c.info.is_internal())
    }

    /// The node stops soon.
    pub(crate) fn begin_farewell(&mut self, now: Now) {
        self.farewell.on_begin(now, &self.connections);
    }

    /// Whether no request is pending.
    pub(super) fn is_quiet(&self) -> bool {
        self.kernel.waiting() == 0
            && self.gathers.is_empty()
            && self.connections().all(|c| c.replies.is_empty())
    }
}
