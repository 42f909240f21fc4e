//! LATENCY GRAPH, LATENCY DOCTOR: delays for people to read.

use super::{ADMIN, ask, spec};
use crate::command::SessionCommand;
use crate::front::latency::Event;
use rufous_command::Failure;
use std::fmt::Write;

/// Rows and columns of a graph.
const HEIGHT: u64 = 5;
const WIDTH: usize = 80;

pub static GRAPH: SessionCommand = SessionCommand {
    spec: spec(
        "latency|graph",
        3,
        ADMIN,
        "event",
        "Draws the delays of an event.",
    ),
    run: |session, args, reply| {
        let name = args.get(2).to_ascii_lowercase();
        ask(session, reply, move |log, reply| {
            match log
                .events
                .iter()
                .find(|(event, _)| event.as_bytes() == name)
            {
                Some((name, event)) => reply.verbatim(*b"txt", &graph(name, event)),
                None => {
                    let name = String::from_utf8_lossy(&name[..name.len().min(128)]).into_owned();
                    let text = format!("ERR No samples available for event '{name}'");
                    reply.error(&Failure::from(text));
                }
            }
        });
        Ok(())
    },
};

pub static DOCTOR: SessionCommand = SessionCommand {
    spec: spec(
        "latency|doctor",
        2,
        ADMIN,
        "",
        "Explains the delays in words.",
    ),
    run: |session, _, reply| {
        let threshold_ms = session.local.config().latency_monitor_threshold_ms;
        ask(session, reply, move |log, reply| {
            let mut text = String::new();
            if threshold_ms == 0 {
                text.push_str("Delays are not being noted. Turn this on with CONFIG SET latency-monitor-threshold <milliseconds>.\n");
            } else if log.events.is_empty() {
                let _ = writeln!(text, "No command took {threshold_ms} ms or longer.");
            }
            for (name, event) in &log.events {
                let count = event.samples.len() as u64;
                let mean = event.samples.iter().map(|s| s.ms).sum::<u64>() / count.max(1);
                let _ = writeln!(
                    text,
                    "{name}: {count} slow seconds, {mean} ms on average, {} ms at worst. SLOWLOG GET shows the commands.",
                    event.max_ms
                );
            }
            reply.verbatim(*b"txt", &text);
        });
        Ok(())
    },
};

/// Columns from the oldest to the newest sample, their height by the delay.
fn graph(name: &str, event: &Event) -> String {
    let shown: Vec<u64> = event
        .samples
        .iter()
        .rev()
        .take(WIDTH)
        .rev()
        .map(|s| s.ms)
        .collect();
    let (low, high) = (
        shown.iter().min().copied().unwrap_or(0),
        shown.iter().max().copied().unwrap_or(0),
    );
    let mut text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n",
        event.max_ms
    );
    text.push_str(&"-".repeat(WIDTH));
    text.push('\n');
    for row in (0..HEIGHT).rev() {
        let columns = shown.iter().map(|ms| {
            let height = if high == low {
                HEIGHT
            } else {
                1 + (ms - low) * (HEIGHT - 1) / (high - low)
            };
            if height > row { '#' } else { ' ' }
        });
        let line: String = columns.collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::latency::Sample;
    use crate::front::testing::Rig;

    #[test]
    fn columns_grow_with_the_delay() {
        let samples = [10, 20, 50]
            .into_iter()
            .map(|ms| Sample { unix_s: ms, ms })
            .collect();
        let drawn = graph(
            "command",
            &Event {
                samples,
                max_ms: 60,
            },
        );
        let rows: Vec<_> = drawn.lines().skip(2).collect();
        assert_eq!(rows, ["  #", "  #", "  #", " ##", "###"]);
        assert!(drawn.starts_with("command - high 50 ms, low 10 ms (all time high 60 ms)\n"));
    }

    #[test]
    fn replies() {
        let mut rig = Rig::new(1);
        rig.check(
            "LATENCY GRAPH command",
            "-ERR No samples available for event 'command'\r\n",
        );
        assert!(
            rig.run("LATENCY DOCTOR")
                .contains("CONFIG SET latency-monitor-threshold")
        );
        rig.run("CONFIG SET latency-monitor-threshold 100");
        assert!(rig.run("LATENCY DOCTOR").contains("or longer."));
        rig.run("DEBUG SLEEP 0.2");
        assert!(
            rig.run("LATENCY DOCTOR")
                .contains("command: 1 slow seconds, 200 ms on average")
        );
        assert!(rig.run("LATENCY GRAPH command").contains("high 200 ms"));
    }
}
