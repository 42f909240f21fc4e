//! INFO: the state of the server as text.
//!
//! - [`figures`]: what each worker tells of itself
//! - [`sections`]: the text
//! - [`keyspaces`], [`persistence`], [`cluster`]: its parts on lattice keyspaces, on
//!   logs and snapshots, and on other nodes

use crate::command::SessionCommand;
use crate::front::session::Session;
use figures::Figures;
use rufous_base::Args;
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};
use sections::SECTIONS;

mod cluster;
pub mod figures;
mod keyspaces;
mod persistence;
pub mod sections;

pub static INFO: SessionCommand = SessionCommand {
    spec: Spec {
        name: "info",
        summary: "Returns the state and statistics of the server.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: -1,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::DANGEROUS),
        keys: Keys::None,
        syntax: "[section [section ...]]",
    },
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let everything = args
        .iter_from(1)
        .any(|a| is(a, "ALL") || is(a, "EVERYTHING"));
    let defaults = args.len() == 1 || args.iter_from(1).any(|a| is(a, "DEFAULT"));
    let named = |name: &str| args.iter_from(1).any(|a| is(a, name));
    let chosen: Vec<bool> = SECTIONS
        .iter()
        .map(|s| everything || defaults && s.by_default || named(s.name))
        .collect();
    let now = session.now;
    session.ask_all(
        reply,
        |local, now| local.info(now),
        move |local, workers, reply| {
            let all = Figures::of_all(workers);
            let mut text = String::new();
            for (section, _) in SECTIONS.iter().zip(chosen).filter(|(_, chosen)| *chosen) {
                if !text.is_empty() {
                    text.push_str("\r\n");
                }
                text.push_str(&format!("# {}\r\n", section.name));
                (section.write)(&mut text, local, &all, now);
            }
            reply.verbatim(*b"txt", &text);
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::SECTIONS;
    use crate::front::testing::Rig;
    use std::collections::BTreeMap;

    /// The fields of a reply, whose form is checked on the way.
    fn fields(reply: &str) -> BTreeMap<&str, &str> {
        let (head, body) = reply.split_once("\r\n").expect("a bulk");
        assert_eq!(head, format!("${}", body.len() - 2));
        let lines = body[..body.len() - 2]
            .split("\r\n")
            .filter(|l| !l.is_empty() && !l.starts_with("# "));
        let mut all = BTreeMap::new();
        for (name, value) in lines.map(|l| l.split_once(':').unwrap_or_else(|| panic!("{l}"))) {
            assert!(all.insert(name, value).is_none(), "{name} twice");
        }
        all
    }

    #[test]
    fn all_sections_of_redis_and_only_those_asked_for() {
        let mut rig = Rig::new(3);
        let all = rig.run("INFO everything");
        let names: Vec<_> = all.lines().filter_map(|l| l.strip_prefix("# ")).collect();
        let expected = "Server Clients Memory Persistence Stats Replication CPU Modules Commandstats Errorstats Latencystats Cluster Keyspaces Keyspace";
        assert_eq!(names.join(" "), expected);
        fields(&all);
        let default = rig.run("INFO");
        assert!(
            !default.contains("# Commandstats") && default.contains("# Keyspace"),
            "{default}"
        );
        let two = rig.run("INFO cpu SERVER");
        assert_eq!(two.matches("# ").count(), 2);
        assert!(two.contains("# Server\r\nredis_version:7.2.4\r\n"), "{two}");
        rig.check("INFO nosuch", "$0\r\n\r\n");
        assert_eq!(SECTIONS.len(), 14);
    }

    #[test]
    fn what_clients_look_for() {
        let mut rig = Rig::new(2);
        rig.advance_ms(90_000_000);
        let all = rig.run("INFO all");
        let fields = fields(&all);
        let check = |name: &str, value: &str| assert_eq!(fields.get(name), Some(&value), "{name}");
        check("redis_version", "7.2.4");
        check("server_name", "rufous");
        check("redis_mode", "standalone");
        check("process_id", "4711");
        check("tcp_port", "6379");
        check("uptime_in_seconds", "90000");
        check("uptime_in_days", "1");
        check("run_id", &"0123456789".repeat(4));
        check("connected_clients", "1");
        check("maxclients", "10000");
        check("maxmemory_policy", "noeviction");
        check("loading", "0");
        check("role", "master");
        check("connected_slaves", "0");
        check("cluster_enabled", "0");
    }

    #[test]
    fn counts_of_all_workers_add_up() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            for key in ["a", "b", "c", "d", "e", "f"] {
                rig.run(&format!("SET {key} 1"));
            }
            rig.run("SELECT 9");
            rig.run("SET x 1 PX 10000");
            rig.run("SET y 1 PX 1");
            rig.run("SET y 1 EX");
            rig.run("GET y");
            rig.run("GET absent");
            rig.run("MGET y absent");
            rig.advance_ms(1_000);
            let text = rig.run("INFO everything");
            let fields = fields(&text);
            let check =
                |name: &str, value: &str| assert_eq!(fields.get(name), Some(&value), "{name}");
            check("db0", "keys=6,expires=0,avg_ttl=0");
            check("db9", "keys=1,expires=1,avg_ttl=9000");
            check("expired_keys", "1");
            check("keyspace_hits", "2");
            check("keyspace_misses", "2");
            check("total_error_replies", "1");
            check("errorstat_ERR", "count=1");
            let set = fields["cmdstat_set"];
            assert!(
                set.starts_with(
                    "calls=9,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1"
                ),
                "{set}"
            );
            check(
                "latency_percentiles_usec_select",
                "p50=1.024,p99=1.024,p99.9=1.024",
            );
            assert!(
                fields["used_memory"]
                    .parse::<u64>()
                    .is_ok_and(|bytes| bytes > 0)
            );
        }
    }
}
