//! RANDOMKEY: any key, each with the same probability.
//!
//! Every worker draws one of its keys and tells how many it has; among these,
//! one is drawn with the numbers as weights.

use crate::command::SessionCommand;
use crate::front::listing::{self, Scope};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static RANDOMKEY: SessionCommand = SessionCommand {
    spec: Spec {
        name: "randomkey",
        summary: "Returns a key chosen at random.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::READONLY
            .or(Flags::ALL_KEYS)
            .or(Flags::AFTER_OTHERS)
            .or(Flags::ANY),
        keys: Keys::None,
        syntax: "",
    },
    run,
};

fn run(session: &mut Session<'_>, _: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let db = usize::from(session.db()?);
    let of = Scope::of(session).listing();
    listing::ask_all(
        session,
        reply,
        move |local, now| local.random_key(db, of, now),
        |local, drawn, reply| {
            let drawn: Vec<_> = drawn
                .into_iter()
                .filter_map(|(key, count)| Some((key?, count)))
                .collect();
            let total: u64 = drawn.iter().map(|d| d.1).sum();
            match choose(&drawn, local.draw(total)) {
                Some(key) => reply.bulk(key),
                None => reply.null(),
            }
        },
    );
    Ok(())
}

/// The candidate in whose share of the total `lot` falls.
fn choose(drawn: &[(Vec<u8>, u64)], mut lot: u64) -> Option<&[u8]> {
    for (key, count) in drawn {
        if lot < *count {
            return Some(key);
        }
        lot -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::Rig;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_has_its_turn_and_expired_ones_have_none() {
        for workers in [1, 4] {
            let mut rig = Rig::new(workers);
            rig.check("RANDOMKEY", "$-1\r\n");
            for i in 0..20 {
                rig.check(&format!("SET k{i} v"), "+OK\r\n");
                rig.check(&format!("SET soon{i} v PX 10"), "+OK\r\n");
            }
            // No tick comes in between: nobody has removed them yet.
            rig.now.unix_us += 20_000;
            let seen: BTreeSet<String> = (0..1000).map(|_| rig.run("RANDOMKEY")).collect();
            assert_eq!(seen.len(), 20);
            assert!(seen.iter().all(|reply| reply.contains("\r\nk")));
        }
    }

    #[test]
    fn every_worker_has_its_share() {
        let drawn = [(b"a".to_vec(), 2), (b"b".to_vec(), 0), (b"c".to_vec(), 3)];
        let chosen: Vec<_> = (0..6).map(|lot| choose(&drawn, lot)).collect();
        let (a, c) = (Some(b"a".as_slice()), Some(b"c".as_slice()));
        assert_eq!(chosen, [a, a, c, c, c, None]);
        assert_eq!(choose(&[], 0), None);
    }
}
