//! KEYSPACE LIST and DESCRIBE: every worker has the table.

use super::spec;
use crate::command::SessionCommand;
use crate::config::keyspaces;
use rufous_command::{Failure, Flags};

pub static LIST: SessionCommand = SessionCommand {
    spec: spec(
        "keyspace|list",
        2,
        Flags::NONE,
        "",
        "Returns the names of all keyspaces.",
    ),
    run: |session, _, reply| {
        let mut names: Vec<_> = session.local.keyspaces().iter().collect();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        reply.array(names.len());
        for keyspace in names {
            reply.bulk(keyspace.name.as_bytes());
        }
        Ok(())
    },
};

pub static DESCRIBE: SessionCommand = SessionCommand {
    spec: spec(
        "keyspace|describe",
        3,
        Flags::NONE,
        "name",
        "Returns the options of a keyspace.",
    ),
    run: |session, args, reply| {
        let name = String::from_utf8_lossy(args.get(2));
        let found = session.local.keyspaces().get(&name);
        let keyspace = found.ok_or(Failure::from("ERR no such keyspace"))?;
        let options = keyspaces::options(keyspace);
        reply.map(options.len() + 1);
        reply.bulk(b"name");
        reply.bulk(keyspace.name.as_bytes());
        for (option, value) in options {
            reply.bulk(option.as_bytes());
            reply.bulk(&value);
        }
        Ok(())
    },
};
