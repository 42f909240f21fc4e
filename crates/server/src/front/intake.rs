//! Received bytes on their way to requests: at most a batch is parsed at a time, and what it accesses is
//! prefetched.

use super::connections::Connections;
use super::lookahead::Lookahead;
use super::parse::Parser;
use super::shared::RequestLimits;
use super::slow;
use crate::command::CommandTable;
use crate::config::Config;
use rufous_base::{ConnId, Now, Read};
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::shard::Warm;

/// See the module's description.
pub(super) struct Intake {
    table: &'static CommandTable,
    limits: RequestLimits,
    /// Requests of a batch.
    limit: usize,
    /// Bytes that a connection may have sent without completing a request.
    most_held: usize,
    /// What the turn has received.
    reads: Vec<Read>,
    next_read: usize,
    /// How much of the current read has been parsed.
    read_at: Option<usize>,
    /// Connections that resume after a wait.
    resumed: Vec<ConnId>,
    /// Taken out while a batch runs.
    pub(super) ahead: Lookahead,
    warm: Vec<Warm>,
}

impl Intake {
    pub(super) fn new(table: &'static CommandTable, config: &Config) -> Self {
        let mut intake = Self {
            table,
            limits: RequestLimits::new(config),
            limit: 0,
            most_held: 0,
            reads: Vec::new(),
            next_read: 0,
            read_at: None,
            resumed: Vec::new(),
            ahead: Lookahead::default(),
            warm: Vec::new(),
        };
        intake.configure(config);
        intake
    }

    /// Applies settings.
    pub(super) fn configure(&mut self, config: &Config) {
        self.limits = RequestLimits::new(config);
        self.limit = slow::batch_limit(config.slowlog_log_slower_than);
        self.most_held = config.client_query_buffer_limit;
    }

    /// A turn has received bytes.
    pub(super) fn on_received(&mut self, reads: &[Read]) {
        self.reads.clear();
        self.reads.extend_from_slice(reads);
        self.next_read = 0;
        self.read_at = None;
    }

    /// To be appended to: connections that need not wait any more.
    pub(super) fn resumed(&mut self) -> &mut Vec<ConnId> {
        &mut self.resumed
    }

    /// Whether all requests of the batch have run.
    pub(super) fn needs_batch(&self) -> bool {
        self.ahead.next >= self.ahead.parsed.len()
    }

    /// Whether requests are left, parsed or not.
    pub(super) fn has_more(&self) -> bool {
        !self.needs_batch()
            || self.read_at.is_some()
            || self.next_read < self.reads.len()
            || !self.resumed.is_empty()
    }

    /// Whether the request is timed on its own, as the last of the batch `ahead`.
    #[inline]
    pub(super) fn times(&self, ahead: &Lookahead) -> bool {
        (ahead.alone || self.limit == 1) && ahead.next == ahead.parsed.len()
    }

    /// Parses the next batch, from the reads of the turn and from connections that resume after a
    /// wait.
    pub(super) fn parse_batch(
        &mut self,
        now: Now,
        bytes: &[u8],
        connections: &mut Connections,
        kernel: &Worker<DataCommands>,
    ) {
        self.ahead.clear();
        while self.ahead.wants_more(self.limit) {
            let Some(&read) = self.reads.get(self.next_read) else {
                break;
            };
            let fresh = self.read_at.is_none();
            let at = self.read_at.unwrap_or(read.start);
            let Some(connection) = connections.get(read.conn).filter(|c| !c.closing) else {
                self.read_at = None;
                self.next_read += 1;
                continue;
            };
            if fresh {
                connection.on_received(now);
            }
            let keep_aside = connection.suspended.is_some() || !connection.held.is_empty();
            let mut parser = Parser {
                table: self.table,
                kernel,
                limits: self.limits.of(connection),
                limit: self.limit,
                lookahead: &mut self.ahead,
            };
            if keep_aside {
                connection.held.hold(&bytes[at..read.end]);
                let is_enough = connection.has_sent_enough();
                let is_done = connection.suspended.is_some() || !parser.parse_held(connection);
                if is_enough {
                    connections.stop_reading(read.conn);
                }
                if is_done {
                    self.end_read(connections);
                } else {
                    self.read_at = Some(read.end);
                }
                continue;
            }
            match parser.parse_received(connection, bytes, at, read.end) {
                Some(next) => self.read_at = Some(next),
                None => self.end_read(connections),
            }
        }
        self.parse_resumed(connections, kernel);
        self.warm_batch(kernel);
    }

    /// Drops a client that sends more bytes than may wait without ever completing a request.
    fn end_read(&mut self, connections: &mut Connections) {
        if let Some(read) = self.reads.get(self.next_read)
            && let Some(connection) = connections.get(read.conn)
            && !connection.held.is_empty()
            && connection.held.capacity() > self.most_held
        {
            connections.close_now(read.conn);
        }
        self.read_at = None;
        self.next_read += 1;
    }

    fn parse_resumed(&mut self, connections: &mut Connections, kernel: &Worker<DataCommands>) {
        while self.ahead.wants_more(self.limit) {
            let Some(&id) = self.resumed.last() else {
                break;
            };
            let Some(connection) = connections
                .get(id)
                .filter(|c| !c.closing && c.suspended.is_none())
            else {
                self.resumed.pop();
                continue;
            };
            if connection.held.has_deferred() {
                // Its parsed requests run first, in a batch of their own.
                break;
            }
            let mut parser = Parser {
                table: self.table,
                kernel,
                limits: self.limits.of(connection),
                limit: self.limit,
                lookahead: &mut self.ahead,
            };
            if !parser.parse_held(connection) {
                self.resumed.pop();
            }
        }
    }

    /// The next connection whose deferred requests are to run.
    pub(super) fn next_deferred(&self, connections: &mut Connections) -> Option<ConnId> {
        let id = *self.resumed.last()?;
        let connection = connections.get(id)?;
        let ready = connection.suspended.is_none() && !connection.closing;
        (ready && connection.held.has_deferred()).then_some(id)
    }

    /// Loads what the batch will access. The loads are independent, so the processor has many of
    /// them outstanding at once; when the commands access the lines, they are in its cache.
    fn warm_batch(&mut self, kernel: &Worker<DataCommands>) {
        let shard = &kernel.shard;
        self.warm.clear();
        let here = kernel.id();
        let own = || self.ahead.keys.iter().filter(|key| key.owner == here);
        for key in own() {
            self.warm
                .push(shard.warm_index(usize::from(key.db), key.hash));
        }
        for (key, &warm) in own().zip(&self.warm) {
            shard.warm_record(usize::from(key.db), warm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::Suspended;
    use super::super::outbox::Place;
    use super::super::testing::{id, info};
    use super::*;
    use rufous_base::{Effects, WorkerId};
    use rufous_kernel::placement::Placement;

    struct Rig {
        intake: Intake,
        connections: Connections,
        kernel: Worker<DataCommands>,
    }

    impl Rig {
        fn new(config: &Config) -> Self {
            let table = crate::command::table();
            let mut connections = Connections::default();
            let place = Place {
                own: WorkerId(0),
                workers: 1,
            };
            for slot in 0..2 {
                let id = id(slot, 1);
                connections
                    .on_opened(Now::default(), id, info(), place)
                    .authenticated = true;
            }
            Self {
                intake: Intake::new(table, config),
                connections,
                kernel: Worker::new(WorkerId(0), Placement::new(1), table.len(), 1),
            }
        }

        /// Parses a batch of what a connection has sent in this turn; returns the number of requests.
        fn parse(&mut self, bytes: &str) -> usize {
            let (connections, kernel) = (&mut self.connections, &self.kernel);
            let bytes = bytes.as_bytes();
            self.intake
                .parse_batch(Now::default(), bytes, connections, kernel);
            let ahead = &mut self.intake.ahead;
            ahead.next = ahead.parsed.len();
            ahead.release_held(connections);
            ahead.next
        }

        fn receive(&mut self, slot: u32, bytes: &str) -> usize {
            let conn = id(slot, 1);
            self.intake.on_received(&[Read {
                conn,
                start: 0,
                end: bytes.len(),
            }]);
            self.parse(bytes)
        }
    }

    #[test]
    fn a_request_is_complete_when_its_last_bytes_arrive() {
        let mut rig = Rig::new(&Config::in_memory());
        assert_eq!(rig.receive(0, "GET a\r\nGET b\r\nGE"), 2);
        assert_eq!(rig.receive(1, "GET c\r\n"), 1);
        assert_eq!(rig.receive(0, "T d\r\n"), 1);
        assert!(!rig.intake.has_more() && rig.intake.needs_batch());
        assert_eq!(rig.intake.ahead.keys.len(), 1);
    }

    #[test]
    fn each_command_is_a_batch_of_its_own_where_all_are_timed() {
        let mut rig = Rig::new(&Config {
            slowlog_log_slower_than: 0,
            ..Config::in_memory()
        });
        let bytes = "GET a\r\nGET b\r\n";
        assert_eq!(rig.receive(0, bytes), 1);
        assert!(rig.intake.has_more() && rig.intake.times(&rig.intake.ahead));
        assert_eq!(rig.parse(bytes), 1);
        assert_eq!(rig.parse(bytes), 0);
        assert!(!rig.intake.has_more());
    }

    #[test]
    fn a_client_that_completes_no_request_is_closed() {
        let mut rig = Rig::new(&Config {
            client_query_buffer_limit: 1000,
            ..Config::in_memory()
        });
        rig.receive(0, &"x".repeat(60));
        let is_closing = |rig: &mut Rig| rig.connections.get(id(0, 1)).expect("open").closing;
        assert!(!is_closing(&mut rig));
        rig.receive(0, &"x".repeat(2000));
        assert!(is_closing(&mut rig));
    }

    #[test]
    fn what_a_suspended_connection_sends_is_parsed_when_it_resumes() {
        let mut rig = Rig::new(&Config::in_memory());
        let fx = &mut Effects::<()>::default();
        rig.connections.suspend(id(0, 1), Suspended::Paused, fx);
        assert_eq!(rig.receive(0, "GET a\r\nGET b\r\n"), 0);
        assert!(!rig.intake.has_more());
        rig.connections.get(id(0, 1)).expect("open").suspended = None;
        rig.intake.resumed().push(id(0, 1));
        assert!(rig.intake.has_more());
        assert_eq!(rig.parse(""), 2);
        assert!(!rig.intake.has_more());
        assert!(rig.connections.get(id(0, 1)).expect("open").held.is_empty());
    }
}
