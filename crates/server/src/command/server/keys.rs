//! KEYS: all keys that match a pattern.
//!
//! Every worker goes through its own part once and sends its matches as they
//! will stand in the reply, so that the worker that asked only joins them.

use crate::command::SessionCommand;
use crate::front::listing::{self, Scope};
use crate::front::local::Local;
use crate::front::session::Session;
use rufous_base::{Args, Now};
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};
use rufous_datatype::glob::Glob;
use rufous_kernel::shard::{ListStep, Listing};
use rufous_resp::encode;

pub static KEYS: SessionCommand = SessionCommand {
    spec: Spec {
        name: "keys",
        summary: "Returns all keys that match a pattern. Visits every key at once: prefer SCAN.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(N) where N is the number of keys in the database",
        arity: 2,
        flags: Flags::READONLY
            .or(Flags::SLOW)
            .or(Flags::ALL_KEYS)
            .or(Flags::AFTER_OTHERS)
            .or(Flags::LIST)
            .or(Flags::DANGEROUS),
        keys: Keys::None,
        syntax: "pattern",
    },
    run,
};

/// Keys fetched from the shard at a time.
const STEP: usize = 1024;

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let db = usize::from(session.db()?);
    let of = (db, Scope::of(session).listing());
    let glob = Glob::new(args.get(1), false);
    if let Some(name) = glob.as_exact() {
        exact(session, reply, of, name.to_vec());
        return Ok(());
    }
    listing::ask_all(
        session,
        reply,
        move |local, now| matches(local, now, of, &glob),
        |_, parts, reply| {
            reply.array(parts.iter().map(|part| part.count).sum());
            for part in &parts {
                reply.out.bytes.extend_from_slice(&part.encoded);
            }
        },
    );
    Ok(())
}

/// The matches of one worker.
struct Part {
    count: usize,
    /// As elements of the reply; keys are written alike in every protocol.
    encoded: Vec<u8>,
}

fn matches(local: &mut Local<'_>, now: Now, (db, listing): (usize, Listing), glob: &Glob) -> Part {
    let mut part = Part {
        count: 0,
        encoded: Vec::new(),
    };
    let mut next = Some(0).filter(|_| local.may_list(db, listing));
    while let Some(cursor) = next {
        let step = ListStep {
            db,
            cursor,
            count: STEP,
            listing,
        };
        next = local.scan(step, now, &mut |_, item| {
            if glob.is_all() || glob.matches(item.key) {
                part.count += 1;
                encode::bulk(&mut part.encoded, item.key);
            }
        });
    }
    part
}

/// A pattern that only one key can match: the worker that would list it is asked for it.
fn exact(session: &mut Session<'_>, reply: &mut Reply<'_>, of: (usize, Listing), name: Vec<u8>) {
    let owner = session.local.owner(&name);
    let asked = name.clone();
    listing::ask_one(
        session,
        reply,
        owner,
        move |local, now| local.lists(of, &asked, now),
        move |_, present, reply| {
            reply.array(usize::from(present));
            if present {
                reply.bulk(&name);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    /// Names of an array of short keys, sorted.
    fn names(reply: &str) -> Vec<&str> {
        let mut names: Vec<&str> = reply.split("\r\n").skip(2).step_by(2).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_worker_adds_its_matches() {
        for workers in [1, 4] {
            let mut rig = Rig::new(workers);
            for i in 0..30 {
                rig.check(&format!("SET k{i:02} v"), "+OK\r\n");
            }
            rig.check("SET soon v PX 10", "+OK\r\n");
            assert_eq!(names(&rig.run("KEYS *")).len(), 31);
            assert_eq!(names(&rig.run("KEYS k1?")), names(&rig.run("KEYS k1*")));
            assert_eq!(names(&rig.run("KEYS k[12]5")), ["k15", "k25"]);
            rig.advance_ms(20);
            rig.check("KEYS s*", "*0\r\n");
            rig.check("KEYS soon", "*0\r\n");
        }
    }

    #[test]
    fn a_pattern_without_wildcards_names_one_key() {
        let mut rig = Rig::new(4);
        for key in ["a", "b", "c", "d", "*", "\"\""] {
            rig.check(&format!("SET {key} v"), "+OK\r\n");
            rig.check(&format!("EXISTS {key}"), ":1\r\n");
        }
        rig.check("KEYS b", "*1\r\n$1\r\nb\r\n");
        rig.check("KEYS \\*", "*1\r\n$1\r\n*\r\n");
        rig.check("KEYS \"\"", "*1\r\n$0\r\n\r\n");
        rig.check("KEYS none", "*0\r\n");
        assert!(rig.run("KEYS *").starts_with("*6\r\n"));
        assert!(rig.run("KEYS ?").starts_with("*5\r\n"));
    }
}
