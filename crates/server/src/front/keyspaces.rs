//! Keyspaces in the front: changes of their table, declaration of those in the configuration file,
//! and refusal of commands that lattice keys do not support.

use super::lookahead::{ParsedKey, What};
use super::persistence::COORDINATOR;
use super::session::Session;
use super::turn::Request;
use super::{Front, Message};
use crate::command::Dispatch;
use crate::config::keyspaces;
use rufous_base::{Args, ConnId, Effects, Now, Output, Until, WorkerId};
use rufous_command::{DataCommands, Failure, Flags, Group, Reply, Spec, lattice};
use rufous_kernel::keyspace::{Keyspace, Keyspaces};
use rufous_kernel::{Header, Program, Submitted};

impl Front {
    /// The worker that runs a command on a key that was parsed earlier.
    #[inline]
    pub(super) fn owner_of(&self, key: &ParsedKey, args: &Args<'_>) -> WorkerId {
        // The table may have changed since.
        match self.kernel.keyspaces().is_empty() {
            true => key.owner,
            false => self.kernel.placement().owner(args.get(key.arg as usize)),
        }
    }

    /// Why a request cannot run on its keys, if some of them are lattice keys.
    #[inline]
    pub(crate) fn refused_on_lattice(&self, spec: &Spec, args: &Args<'_>) -> Option<Failure> {
        if !spec.flags.has(Flags::WRITE) || !self.kernel.placement().has_lattice() {
            return None;
        }
        self.look_for_refusal(spec, args)
    }

    #[cold]
    fn look_for_refusal(&self, spec: &Spec, args: &Args<'_>) -> Option<Failure> {
        let placement = self.kernel.placement();
        let mut keys = Vec::new();
        spec.keys.find(args, 0, &mut keys);
        let found = |key: &[u8]| {
            placement.lattice(key).map(|found| lattice::Found {
                name: found.name.to_string(),
                is_causal: found.level.keeps_siblings(),
            })
        };
        lattice::refusal(spec, args, &keys, found)
    }

    /// Notes what the reply to a request waits for. A reply about lattice keys alone, or about no
    /// data, does not wait for other nodes' copies of strict keys. One about named keys has waited
    /// for the copies of their slots when the kernel, or another node, gives it. `is_more`: the
    /// request runs in a transaction that answers each command at once.
    #[inline]
    pub(super) fn note_until(
        &mut self,
        request: &Request<'_>,
        spec: &Spec,
        is_more: bool,
        args: &Args<'_>,
    ) {
        if self.connections.splits()
            && (is_more || self.find_until(request, spec, args) == Until::Passed)
        {
            self.connections.wait_for_copies(request.conn);
        }
    }

    fn find_until(&mut self, request: &Request<'_>, spec: &Spec, args: &Args<'_>) -> Until {
        let What::Command(id) = request.what else {
            return Until::Passed;
        };
        if spec.flags.has(Flags::EXEC) {
            self.until_of_exec(request.conn)
        } else {
            self.until_of(id, request.keys.iter().map(|key| key.arg), args)
        }
    }

    /// What the reply to `EXEC` waits for: what those to the queued commands do.
    fn until_of_exec(&mut self, conn: ConnId) -> Until {
        let queued = |front: &mut Self| {
            let connection = front.connections.get(conn)?;
            connection.transaction.queued.take()
        };
        let Some(mut queued) = queued(self) else {
            return Until::Logged;
        };
        let mut all = Until::Logged;
        for index in 0..queued.requests.len() {
            let (header, args, _) = queued.parts(index);
            let mut found = Vec::new();
            let spec = self.table.spec(header.command);
            spec.keys.find(&args, header.db, &mut found);
            let keys = found.iter().map(|(_, arg)| *arg);
            if self.until_of(header.command, keys, &args) == Until::Passed {
                all = Until::Passed;
            }
        }
        if let Some(connection) = self.connections.get(conn) {
            connection.transaction.queued = Some(queued);
        }
        all
    }

    /// What the reply to a command waits for when the kernel has given it.
    pub(crate) fn until_of(
        &self,
        id: u16,
        keys: impl Iterator<Item = u32>,
        args: &Args<'_>,
    ) -> Until {
        let spec = self.table.spec(id);
        // What tells of the node, or of the connection, shows no values.
        let is_of_node = spec.group == Group::Server && spec.flags.has(Flags::STALE);
        if is_of_node || spec.group == Group::Connection {
            return Until::Logged;
        }
        if DataCommands::is_open(id, args) {
            return Until::Passed;
        }
        let keys = keys.map(|arg| args.get(arg as usize));
        let is_keyed = matches!(self.table.dispatch(id), Dispatch::Key | Dispatch::Keys);
        if is_keyed && !DataCommands::may_wait(id) {
            self.kernel.until(keys)
        } else {
            self.kernel.placement().until(keys)
        }
    }

    /// Why a key cannot be watched: writes of other replicas have no common order with those here.
    pub(super) fn refused_watch(&self, key: &[u8]) -> Option<Failure> {
        let keyspace = self.kernel.placement().lattice(key)?;
        Some(
            format!(
                "ERR 'watch' cannot be coordination-free: another replica may have written \
                 already what this one does not know. Keyspace '{}' is of regime lattice; \
                 use a type whose updates merge, or a keyspace of regime strict",
                keyspace.name
            )
            .into(),
        )
    }
}

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
    pub(super) reply: Option<Output>,
}

impl Declared {
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited
    }
}

impl Front {
    pub(super) fn await_declared(&mut self) {
        self.declared.awaited = !self.config.keyspaces.is_empty();
    }

    /// This worker has loaded its data.
    pub(super) fn begin_declaring(&mut self) {
        if !self.declared.awaited {
            return self.end_declaring();
        }
        if self.id() == COORDINATOR {
            self.declared.left = self.config.keyspaces.iter().rev().cloned().collect();
            self.declare_next();
        }
    }

    fn end_declaring(&mut self) {
        self.declared.awaited = false;
        self.kernel.share_lattices();
        if self.config.folder {
            self.shared.loading.finish_worker();
        }
    }

    fn declare_next(&mut self) {
        while let Some(keyspace) = self.declared.left.pop() {
            let table = self.kernel.keyspaces();
            let name = keyspace.name.clone();
            if table.get(&name) == Some(&keyspace) {
                continue;
            }
            match keyspaces::declared(table, keyspace) {
                Ok(table) => return self.declare(name, table),
                Err(why) => not_declared(&name, &why),
            }
        }
        self.out.tell_others(|front, _| front.end_declaring());
        self.end_declaring();
    }

    fn declare(&mut self, name: Box<str>, table: Keyspaces) {
        let header = Header {
            conn: ITSELF,
            client: 0,
            seq: 0,
            command: self.table.find(b"keyspace").unwrap_or_default(),
            db: 0,
            resp3: false,
            no_touch: true,
            quiet: false,
            door: rufous_kernel::batch::Door::default(),
            key: 0,
            hash: 0,
        };
        let (mut done, mut out) = (Output::default(), Output::default());
        Reply::new(&mut done, false).ok();
        self.declared.under_way = Some(name);
        let submitted = self.kernel.submit_keyspaces(&header, table, done, &mut out);
        if submitted == Submitted::Done {
            self.declared.reply = Some(out);
        }
    }

    #[inline]
    pub(super) fn go_on_declaring(&mut self, now: Now, fx: &mut Effects<Message>) {
        while let Some(reply) = self.declared.reply.take() {
            self.on_declared(&reply);
            self.settle_kernel(now, fx);
        }
    }

    #[cold]
    fn on_declared(&mut self, reply: &Output) {
        let name = self.declared.under_way.take().unwrap_or_default();
        if reply.is_error((0, 0)) {
            let text = String::from_utf8_lossy(&reply.bytes);
            not_declared(&name, text.trim_start_matches('-').trim_end());
        }
        self.declare_next();
    }
}

fn not_declared(name: &str, why: &str) {
    tracing::error!(
        keyspace = name,
        "the configuration file's keyspace was left as it is here: {why}"
    );
}

impl Session<'_> {
    /// Has all workers apply a table; `done` makes the reply when they have.
    pub(crate) fn change_keyspaces(
        &mut self,
        table: Keyspaces,
        done: Output,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let command = self.local.front.table.find(b"keyspace").unwrap_or_default();
        let header = self.connection()?.header(command, false, None);
        let kernel = &mut self.local.front.kernel;
        let submitted = kernel.submit_keyspaces(&header, table, done, reply.out);
        self.pending = submitted != Submitted::Done;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Until;
    use crate::front::testing::{Rig, with_args};

    #[test]
    fn what_tells_of_the_node_does_not_wait_for_copies() {
        let rig = Rig::new(2);
        let front = &rig.fronts[0];
        let until = |request: &str| {
            let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
            let id = front.table.find(words[0]).expect("a command");
            let sub = words.get(1).and_then(|sub| front.table.find_sub(id, sub));
            let id = sub.unwrap_or(id);
            with_args(&words, |args| front.until_of(id, [].into_iter(), args))
        };
        for request in ["info", "config get port", "cluster info", "ping"] {
            assert_eq!(until(request), Until::Logged, "{request}");
        }
        for request in ["dbsize", "keys *", "randomkey", "flushdb"] {
            assert_eq!(until(request), Until::Passed, "{request}");
        }
    }
}
