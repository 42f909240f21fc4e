//! Records that are read, and then written [Anna §VIII-B]: a client reads a few keys, and when it has
//! them it writes the same keys; half of all requests change something.

use std::sync::Arc;

use super::served::{Route, SHAPE};
use rufous_bench::loadgen::conn::{Batch, Expect};
use rufous_bench::loadgen::keys::digits;
use rufous_bench::loadgen::reply::Check;
use rufous_bench::loadgen::source::Source;
use rufous_bench::loadgen::template::{Command, Template};

/// Requests for keys drawn beforehand.
pub(crate) struct ReadModifyWrite {
    numbers: Arc<[u32]>,
    at: usize,
    pipeline: usize,
    route: Route,
    clients: Vec<Client>,
    get: Template,
    set: Template,
}

#[derive(Clone, Debug, Default)]
struct Client {
    keys: Vec<u32>,
    /// It has read them.
    writes: bool,
}

impl ReadModifyWrite {
    pub(crate) fn new(
        numbers: &Arc<[u32]>,
        pipeline: usize,
        route: &Route,
        clients: usize,
    ) -> Self {
        let start = Client {
            keys: Vec::new(),
            writes: true,
        };
        Self {
            numbers: Arc::clone(numbers),
            at: 0,
            pipeline,
            route: route.clone(),
            clients: vec![start; clients],
            get: Template::new(Command::Get, SHAPE),
            set: Template::new(Command::Set, SHAPE),
        }
    }

    /// What a client does next.
    fn turn(&mut self, client: usize) {
        let client = &mut self.clients[client];
        client.writes = !client.writes;
        if client.writes {
            return;
        }
        if self.at + self.pipeline > self.numbers.len() {
            self.at = 0;
        }
        let end = (self.at + self.pipeline).min(self.numbers.len());
        client.keys.clear();
        client.keys.extend_from_slice(&self.numbers[self.at..end]);
        self.at = end;
    }
}

/// Appends the reading of a key.
pub(crate) fn get(template: &Template, number: u32, batch: &mut Batch) {
    let number = u64::from(number);
    template.emit_from(&mut batch.out, number);
    let (first, len) = (digits(number), SHAPE.value_bytes as u32);
    let check = Check::Value { first, len };
    batch.expects.push(Expect::completing(check, 0));
}

/// Appends the writing of a key.
pub(crate) fn set(template: &Template, number: u32, batch: &mut Batch) {
    template.emit_from(&mut batch.out, u64::from(number));
    batch.expects.push(Expect::completing(Check::Simple, 0));
}

impl Source for ReadModifyWrite {
    fn fill(&mut self, conn: usize, batch: &mut Batch) {
        let (client, node) = (conn / self.route.nodes, conn % self.route.nodes);
        if node == 0 {
            self.turn(client);
        }
        let Client { keys, writes } = &self.clients[client];
        for &number in keys.iter().filter(|&&n| self.route.is_at(n, node)) {
            match writes {
                true => set(&self.set, number, batch),
                false => get(&self.get, number, batch),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(source: &mut ReadModifyWrite, conn: usize) -> String {
        let mut batch = Batch::default();
        source.fill(conn, &mut batch);
        let text = String::from_utf8(batch.out).unwrap();
        assert_eq!(text.matches("\r\n$25\r\n").count(), batch.expects.len());
        text
    }

    #[test]
    fn what_was_read_is_written_next() {
        let numbers: Arc<[u32]> = (0..6).collect();
        let mut source = ReadModifyWrite::new(&numbers, 2, &Route::new(6, 1), 2);
        for (conn, command, keys) in [
            (0, "GET", [0, 1]),
            (1, "GET", [2, 3]),
            (0, "SET", [0, 1]),
            (0, "GET", [4, 5]),
            (0, "SET", [4, 5]),
            (1, "SET", [2, 3]),
            (1, "GET", [0, 1]),
        ] {
            let text = filled(&mut source, conn);
            assert_eq!(text.matches(command).count(), 2);
            for key in keys {
                assert!(text.contains(&format!("k{key:08}\r\n")), "{text}");
            }
        }
    }

    #[test]
    fn each_node_is_asked_for_its_keys() {
        let numbers: Arc<[u32]> = (0..100).collect();
        let route = Route::new(100, 2);
        let mut source = ReadModifyWrite::new(&numbers, 100, &route, 1);
        let here = (0..100).filter(|&n| route.is_at(n, 0)).count();
        for command in ["GET", "SET", "GET"] {
            let parts = [0, 1].map(|conn| filled(&mut source, conn));
            let counts = parts.map(|part| part.matches(command).count());
            assert_eq!(counts, [here, 100 - here]);
        }
    }
}
