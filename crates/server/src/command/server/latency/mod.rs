//! LATENCY: moments when workers were held up, and how long commands take.

use crate::command::{SessionCommand, help};
use crate::front::latency::LatencyLog;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub mod histogram;
pub mod report;

pub static COMMANDS: &[&SessionCommand] = &[
    &LATENCY,
    &LATEST,
    &HISTORY,
    &RESET,
    &report::GRAPH,
    &report::DOCTOR,
    &histogram::HISTOGRAM,
    &HELP,
];

const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT);

const fn spec(
    name: &'static str,
    arity: i32,
    flags: Flags,
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since: "2.8.13",
        group: Group::Server,
        complexity: "O(1)",
        arity,
        flags: Flags::LOADING.or(Flags::STALE).or(flags),
        keys: Keys::None,
        syntax,
    }
}

pub static LATENCY: SessionCommand = SessionCommand {
    spec: spec(
        "latency",
        -2,
        Flags::CONTAINER,
        "",
        "A container for diagnosing delays.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("latency")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec("latency|help", 2, Flags::NONE, "", "Lists the subcommands."),
    run: |session, _, reply| help::list_subcommands(session, "latency", reply),
};

pub static LATEST: SessionCommand = SessionCommand {
    spec: spec(
        "latency|latest",
        2,
        ADMIN,
        "",
        "Returns the last and the worst delay of each event.",
    ),
    run: |session, _, reply| {
        ask(session, reply, |log, reply| {
            let events = log
                .events
                .iter()
                .filter_map(|(name, e)| Some((name, e.samples.back()?, e.max_ms)));
            let events: Vec<_> = events.collect();
            reply.array(events.len());
            for (name, last, max_ms) in events {
                reply.array(4);
                reply.bulk(name.as_bytes());
                reply.integer(last.unix_s as i64);
                reply.integer(last.ms as i64);
                reply.integer(max_ms as i64);
            }
        });
        Ok(())
    },
};

pub static HISTORY: SessionCommand = SessionCommand {
    spec: spec(
        "latency|history",
        3,
        ADMIN,
        "event",
        "Returns times and delays of an event.",
    ),
    run: |session, args, reply| {
        let event = args.get(2).to_ascii_lowercase();
        ask(session, reply, move |log, reply| {
            let Some((_, event)) = log.events.iter().find(|(name, _)| name.as_bytes() == event)
            else {
                return reply.array(0);
            };
            reply.array(event.samples.len());
            for sample in &event.samples {
                reply.array(2);
                reply.integer(sample.unix_s as i64);
                reply.integer(sample.ms as i64);
            }
        });
        Ok(())
    },
};

pub static RESET: SessionCommand = SessionCommand {
    spec: spec(
        "latency|reset",
        -2,
        ADMIN,
        "[event [event ...]]",
        "Forgets the delays of events, or all.",
    ),
    run: reset_events,
};

/// Makes the reply of what all workers noted.
fn ask(
    session: &mut Session<'_>,
    reply: &mut Reply<'_>,
    finish: impl FnOnce(LatencyLog, &mut Reply<'_>) + Send + 'static,
) {
    session.ask_all(
        reply,
        |local, _| local.latency().clone(),
        |_, logs, reply| {
            let mut all = LatencyLog::default();
            logs.into_iter().for_each(|log| all.merge(log));
            finish(all, reply);
        },
    );
}

fn reset_events(
    session: &mut Session<'_>,
    args: Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let named: Vec<Vec<u8>> = args.iter_from(2).map(<[u8]>::to_ascii_lowercase).collect();
    session.ask_all(
        reply,
        move |local, _| {
            let chosen =
                |name: &str| named.is_empty() || named.iter().any(|n| n == name.as_bytes());
            let gone: Vec<_> = local
                .latency()
                .events
                .keys()
                .copied()
                .filter(|name| chosen(name))
                .collect();
            local.latency().events.retain(|name, _| !chosen(name));
            gone
        },
        |_, gone, reply| {
            let events: std::collections::BTreeSet<_> = gone.into_iter().flatten().collect();
            reply.count(events.len());
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn slow_commands_are_events() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            rig.run("DEBUG SLEEP 0.3");
            rig.check("LATENCY LATEST", "*0\r\n");
            rig.check("CONFIG SET latency-monitor-threshold 200", "+OK\r\n");
            rig.run("DEBUG SLEEP 0.1");
            rig.run("DEBUG SLEEP 0.4");
            rig.advance_ms(1_000);
            let other = rig.connect(workers - 1);
            rig.run_on(other, "DEBUG SLEEP 0.3");
            let latest = "*1\r\n*4\r\n$7\r\ncommand\r\n:1700000001\r\n:300\r\n:400\r\n";
            rig.check("LATENCY LATEST", latest);
            let history = "*2\r\n*2\r\n:1700000000\r\n:400\r\n*2\r\n:1700000001\r\n:300\r\n";
            rig.check("LATENCY HISTORY command", history);
            rig.check("LATENCY HISTORY nosuch", "*0\r\n");
            rig.check("LATENCY RESET nosuch", ":0\r\n");
            rig.check("LATENCY RESET", ":1\r\n");
            rig.check("LATENCY LATEST", "*0\r\n");
        }
    }
}
