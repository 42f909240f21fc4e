//! LATENCY HISTOGRAM: how the time that commands take is spread.

use super::{ADMIN, spec};
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Reply};
use rufous_kernel::stats::{CommandStats, LATENCY_BUCKETS};

pub static HISTOGRAM: SessionCommand = SessionCommand {
    spec: spec(
        "latency|histogram",
        -2,
        ADMIN,
        "[command [command ...]]",
        "Returns how many calls took how long, added up over powers of two of microseconds.",
    ),
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let named: Vec<String> = args
        .iter_from(2)
        .map(|arg| String::from_utf8_lossy(arg).to_ascii_lowercase())
        .collect();
    session.ask_all(
        reply,
        |local, _| local.command_stats(),
        move |local, workers, reply| {
            let stats = merge(workers);
            // A container stands for all its subcommands.
            let chosen = |name: &str| {
                let container = name.split('|').next().unwrap_or(name);
                named.is_empty() || named.iter().any(|n| n == name || n == container)
            };
            let shown: Vec<_> = local
                .table()
                .specs()
                .map(|(id, spec)| (spec.name, &stats[usize::from(id)]))
                .filter(|(name, stats)| stats.calls > 0 && chosen(name))
                .filter_map(|(name, stats)| Some((name, stats.latency.as_deref()?)))
                .collect();
            reply.map(shown.len());
            for (name, buckets) in shown {
                reply.bulk(name.as_bytes());
                show(buckets, reply);
            }
        },
    );
    Ok(())
}

/// The counts of all workers, by command.
pub(in super::super) fn merge(workers: Vec<Vec<CommandStats>>) -> Vec<CommandStats> {
    let mut workers = workers.into_iter();
    let mut all = workers.next().unwrap_or_default();
    for stats in workers {
        all.iter_mut()
            .zip(&stats)
            .for_each(|(sum, one)| sum.merge(one));
    }
    all
}

/// Bucket `i` ends at 2^i * 1.024 µs, shown as 2^i µs.
fn show(buckets: &[u64; LATENCY_BUCKETS], reply: &mut Reply<'_>) {
    let calls: u64 = buckets.iter().sum();
    reply.map(2);
    reply.bulk(b"calls");
    reply.integer(calls as i64);
    reply.bulk(b"histogram_usec");
    let used = buckets.iter().filter(|count| **count > 0).count();
    reply.map(used);
    let mut below = 0;
    for (bucket, count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        below += count;
        reply.integer(1 << bucket);
        reply.integer(below as i64);
    }
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn calls_at_all_workers_add_up() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            for key in ["a", "b", "c", "d"] {
                rig.run(&format!("SET {key} 1"));
            }
            let expected = "*2\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:4\r\n$14\r\nhistogram_usec\r\n*2\r\n:1\r\n:4\r\n";
            rig.check("LATENCY HISTOGRAM SET nosuch", expected);
            rig.check("LATENCY HISTOGRAM nosuch", "*0\r\n");
            rig.run("CLIENT ID");
            rig.run("CLIENT GETNAME");
            let container = rig.run("LATENCY HISTOGRAM client");
            assert!(
                container.contains("client|id") && container.contains("client|getname"),
                "{container}"
            );
        }
    }
}
