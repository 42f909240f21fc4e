//! What lattice keys change for requests: commands that they do not support, and what replies wait for.

use super::lookahead::What;
use super::request::Request;
use crate::cluster::way::Locator;
use crate::command::Dispatch;
use rufous_base::{Args, Until};
use rufous_command::{DataCommands, Failure, Flags, Group};
use rufous_kernel::{Batch, Program};

impl Locator<'_> {
    /// Why a request cannot run on its keys, if some of them are lattice keys.
    #[inline]
    pub(crate) fn refused_on_lattice(&self, id: u16, args: &Args<'_>) -> Option<Failure> {
        let placement = self.kernel.placement();
        if !placement.has_lattice() {
            return None;
        }
        DataCommands::refused_on_lattice(id, args, placement)
    }

    /// What the reply to a request waits for. A reply about lattice keys alone, or about no data, does
    /// not wait for other nodes' copies of strict keys. One about named keys has waited for the copies
    /// of their slots when the kernel, or another node, gives it.
    pub(super) fn until(&self, request: &Request<'_>, args: &Args<'_>) -> Until {
        match request.what {
            What::Command(id) => self.until_of(id, request.keys.iter().map(|key| key.arg), args),
            _ => Until::Passed,
        }
    }

    /// What the reply to `EXEC` waits for: what those to the queued commands do.
    pub(super) fn until_of_queued(&self, queued: &mut Batch) -> Until {
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
            with_args(&words, |args| {
                front.locator().until_of(id, [].into_iter(), args)
            })
        };
        for request in ["info", "config get port", "cluster info", "ping"] {
            assert_eq!(until(request), Until::Logged, "{request}");
        }
        for request in ["dbsize", "keys *", "randomkey", "flushdb"] {
            assert_eq!(until(request), Until::Passed, "{request}");
        }
    }
}
