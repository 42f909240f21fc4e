//! Changes of the table of keyspaces, and the declaration of those in the configuration file.

use crate::command::CommandTable;
use crate::config::keyspaces;
use rufous_base::{ConnId, Output};
use rufous_kernel::Header;
use rufous_kernel::keyspace::{Keyspace, Keyspaces};

/// Stands for the connection in requests of the node itself.
pub(super) const ITSELF: ConnId = ConnId {
    slot: u32::MAX,
    generation: u32::MAX,
};

/// The keyspaces of the configuration file, which worker 0 creates when the data is loaded and
/// before any client is served. The file overrides a keyspace's stored settings where these can
/// change; other keyspaces stay as they are.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// No client is served yet.
    awaited: bool,
    /// Those still to be created, the next one last.
    left: Vec<Keyspace>,
    under_way: Option<Box<str>>,
    reply: Option<Output>,
}

impl Declared {
    /// The node starts with these keyspaces in the configuration file.
    pub(super) fn on_start(&mut self, keyspaces: &[Keyspace]) {
        self.awaited = !keyspaces.is_empty();
    }

    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited
    }

    /// The data is loaded, at the worker that creates the keyspaces.
    pub(super) fn on_loaded(&mut self, keyspaces: &[Keyspace]) {
        self.left = keyspaces.iter().rev().cloned().collect();
    }

    /// The next table, if keyspaces are left that this one lacks.
    pub(super) fn next(&mut self, table: &Keyspaces) -> Option<Keyspaces> {
        while let Some(keyspace) = self.left.pop() {
            let name = keyspace.name.clone();
            if table.get(&name) == Some(&keyspace) {
                continue;
            }
            match keyspaces::declared(table, keyspace) {
                Ok(table) => {
                    self.under_way = Some(name);
                    return Some(table);
                }
                Err(why) => not_declared(&name, &why),
            }
        }
        None
    }

    /// The reply to the change under way.
    pub(super) fn on_reply(&mut self, reply: Output) {
        self.reply = Some(reply);
    }

    /// Whether the change under way has been replied to. Returns true once.
    #[inline]
    pub(super) fn goes_on(&mut self) -> bool {
        self.reply.is_some() && self.take_reply()
    }

    #[cold]
    fn take_reply(&mut self) -> bool {
        let Some(reply) = self.reply.take() else {
            return false;
        };
        let name = self.under_way.take().unwrap_or_default();
        if reply.is_error((0, 0)) {
            let text = String::from_utf8_lossy(&reply.bytes);
            not_declared(&name, text.trim_start_matches('-').trim_end());
        }
        true
    }

    /// All are created.
    pub(super) fn on_end(&mut self) {
        self.awaited = false;
    }
}

/// A request of the node itself to change the table of keyspaces.
pub(super) fn request(table: &CommandTable) -> Header {
    Header {
        conn: ITSELF,
        client: 0,
        seq: 0,
        command: table.find(b"keyspace").unwrap_or_default(),
        db: 0,
        resp3: false,
        no_touch: true,
        quiet: false,
        door: rufous_kernel::batch::Door::default(),
        key: 0,
        hash: 0,
        strict_in: None,
    }
}

fn not_declared(name: &str, why: &str) {
    tracing::error!(
        keyspace = name,
        "the configuration file's keyspace was left as it is here: {why}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_are_created_one_after_the_other_unless_they_are_there() {
        let [a, b, c] = ["a", "b", "c"].map(|name| Keyspace::new(name, name.as_bytes()));
        let mut table = Keyspaces::default().with(b.clone()).expect("a table");
        let mut declared = Declared::default();
        declared.on_start(&[]);
        assert!(!declared.is_awaited());
        let all = [a, b, c];
        declared.on_start(&all);
        assert!(declared.is_awaited() && declared.next(&table).is_none());
        declared.on_loaded(&all);
        for name in ["a", "c"] {
            let next = declared.next(&table).expect("one that is lacking");
            assert!(next.get(name).is_some() && !declared.goes_on());
            declared.on_reply(Output::default());
            assert!(declared.goes_on() && !declared.goes_on());
            table = next;
        }
        assert!(declared.next(&table).is_none());
        declared.on_end();
        assert!(!declared.is_awaited());
    }

    #[test]
    fn one_that_cannot_be_created_is_left_out() {
        let twice = ["a", "b"].map(|name| Keyspace::new(name, b"same:"));
        let mut declared = Declared::default();
        declared.on_start(&twice);
        declared.on_loaded(&twice);
        let table = declared.next(&Keyspaces::default()).expect("the first one");
        assert!(declared.next(&table).is_none());
    }
}
