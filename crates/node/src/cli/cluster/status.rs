//! `rufous cluster status`.

use super::ask::{Password, status_at};
use crate::cli::fail;
use anyhow::Result;
use clap::Args;
use rufous_base::limits::SLOTS;
use rufous_server::cluster::status::{Node, Status};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Show {
    /// Any node of the cluster, by its port for clients
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:7001")]
    at: String,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Wait so long for every slot to have all its copies
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
    #[command(flatten)]
    password: Password,
}

/// Success only if every slot has all its copies and every live node serves lattice keys: scripts
/// go by it.
pub(super) fn run(show: &Show) -> ExitCode {
    let until = Instant::now() + Duration::from_secs(show.wait);
    let found = loop {
        let found = status_at(&show.at, &show.password);
        let is_well = found.as_ref().is_ok_and(Status::is_well);
        if is_well || Instant::now() >= until {
            break found;
        }
        std::thread::sleep(PAUSE);
    };
    let status = match found {
        Ok(status) => status,
        Err(error) => return fail(format!("{error:#}")),
    };
    match print(&status, show.json) {
        Ok(()) if status.is_well() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => fail(format!("cannot print: {error}")),
    }
}

fn print(status: &Status, json: bool) -> Result<()> {
    let text = match json {
        true => serde_json::to_string_pretty(status)? + "\n",
        false => table(status),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

pub(super) fn table(status: &Status) -> String {
    let mut text = format!(
        "{:<6}{:<24}{:<10}{:>7}{:>8}{:>8}{:>8}  {:<12}{:<6}{:<6}{:<12}{}\n",
        "node",
        "clients at",
        "state",
        "slots",
        "copies",
        "learns",
        "weight",
        "program",
        "wire",
        "used",
        "zone",
        "id"
    );
    for node in &status.nodes {
        let Node {
            plain,
            slots,
            copies,
            learns,
            weight,
            zone,
            ..
        } = node;
        let name = format!("n{}", node.number);
        let state = state(node);
        let id = node.id.get(..8).unwrap_or(&node.id);
        let [program, wire, used] = versions(node);
        let zone = if zone.is_empty() { "-" } else { zone };
        let _ = writeln!(
            text,
            "{name:<6}{plain:<24}{state:<10}{slots:>7}{copies:>8}{learns:>8}{weight:>8}  {program:<12}{wire:<6}{used:<6}{zone:<12}{id}"
        );
    }
    text + &summary(status) + &differences(status)
}

/// Its program, the versions of the messages between nodes that it speaks, and the
/// one that the asked node speaks with it: not with itself.
fn versions(node: &Node) -> [String; 3] {
    let unknown = || "?".to_owned();
    let wire = node.wire_oldest.zip(node.wire_newest);
    [
        node.program.clone().unwrap_or_else(unknown),
        wire.map_or_else(unknown, |(oldest, newest)| format!("{oldest}-{newest}")),
        match (node.wire_used, wire) {
            (Some(used), _) => used.to_string(),
            (None, Some(_)) => "-".to_owned(),
            (None, None) => unknown(),
        },
    ]
}

fn state(node: &Node) -> &'static str {
    match (node.is_alive, node.drains) {
        (false, _) => "away",
        (true, _) if node.ails.is_some() => "ails",
        (true, _) if !node.unheard.is_empty() => "unheard",
        (true, _) if node.waits.is_some() => "waits",
        (true, true) => "drains",
        (true, false) => "alive",
    }
}

fn summary(status: &Status) -> String {
    let copies = match status.copies {
        1 => "1 copy".to_owned(),
        copies => format!("{copies} copies"),
    };
    let mut text = format!("\nepoch {}: ", status.epoch);
    let _ = match status.serves_all() {
        true => writeln!(text, "all {SLOTS} slots are served, each has {copies}"),
        false => writeln!(
            text,
            "{} of {SLOTS} slots are served, {} have fewer than {copies}",
            status.slots_served, status.slots_few
        ),
    };
    for node in &status.nodes {
        if let Some(why) = &node.ails {
            let _ = writeln!(text, "node {} cannot take writes, {why}", node.number);
        }
        if let Some(why) = node.waits.as_ref().filter(|_| node.is_alive) {
            let _ = writeln!(text, "node {} serves no lattice keys: {why}", node.number);
        }
        if let Some(folder) = &node.folder {
            let what = match folder.as_str() {
                "emptied" => "was empty",
                _ => "was restored from an earlier state, or cloned",
            };
            let _ = writeln!(
                text,
                "node {}: its data folder {what}; its copies of strict slots are not used where another node has one",
                node.number
            );
        }
        if node.is_alive && node.unserved > 0 {
            let _ = writeln!(
                text,
                "node {} does not serve {} slots that it is the head of: it lacks data or leases of other nodes",
                node.number, node.unserved
            );
        }
        if node.is_alive && !node.unheard.is_empty() {
            let others: Vec<String> = node.unheard.iter().map(u16::to_string).collect();
            let others = others.join(", ");
            let _ = writeln!(
                text,
                "node {} ({}) and these nodes do not hear one another: {others}",
                node.number, node.peer
            );
        }
    }
    if status.slots_learning > 0 {
        let _ = writeln!(text, "{} slots are on their way", status.slots_learning);
    }
    if status.went_back {
        text.push_str(
            "the coordinator was restored to an earlier mapping, which the nodes refuse: nodes cannot join or leave until it has the last one again (docs/operations/coordinator.md)\n",
        );
    }
    if !status.is_current {
        text.push_str(
            "the coordinator is unreachable: this is the last known state, and nodes cannot join or leave\n",
        );
    }
    text
}

/// What nodes have to be brought to, where they differ: who upgrades one after the
/// other sees how far that is.
fn differences(status: &Status) -> String {
    let nodes = || status.nodes.iter();
    let programs = tally(nodes().filter_map(|node| node.program.clone()));
    let newest = tally(nodes().filter_map(|node| node.wire_newest));
    let mut text = String::new();
    if programs.len() > 1 {
        let _ = writeln!(text, "programs differ: {}", listed(&programs));
    }
    if newest.len() > 1 {
        let _ = writeln!(
            text,
            "the newest wire version that nodes speak differs: {}",
            listed(&newest)
        );
    }
    text
}

fn tally<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

fn listed<T: Display>(counts: &BTreeMap<T, usize>) -> String {
    let each = counts.iter().map(|(what, count)| match count {
        1 => format!("{what} on 1 node"),
        _ => format!("{what} on {count} nodes"),
    });
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16, is_alive: bool, drains: bool) -> Node {
        Node {
            number,
            is_alive,
            drains,
            id: "ab".repeat(20),
            plain: format!("127.0.0.1:700{number}"),
            slots: 8192,
            copies: 9000,
            weight: 100,
            ..Node::default()
        }
    }

    #[test]
    fn versions_are_shown_and_where_they_differ() {
        let known = |number, program: &str, newest, used| Node {
            program: Some(program.into()),
            wire_oldest: Some(1),
            wire_newest: Some(newest),
            wire_used: used,
            ..node(number, true, false)
        };
        let mut status = Status {
            epoch: 7,
            nodes: vec![
                known(0, "0.2.0", 2, None),
                known(1, "0.2.0", 2, Some(2)),
                known(2, "0.1.0", 1, Some(1)),
                node(3, false, false),
            ],
            ..Status::default()
        };
        let text = table(&status);
        for (line, cells) in [
            (1, "0.2.0 1-2 -"),
            (2, "0.2.0 1-2 2"),
            (3, "0.1.0 1-1 1"),
            (4, "? ? ?"),
        ] {
            let line = text.lines().nth(line).expect("a line for each node");
            let words: Vec<_> = line.split_whitespace().collect();
            assert_eq!(words[7..10].join(" "), cells, "{text}");
        }
        assert!(
            text.ends_with(
                "programs differ: 0.1.0 on 1 node, 0.2.0 on 2 nodes\n\
                 the newest wire version that nodes speak differs: 1 on 1 node, 2 on 2 nodes\n"
            ),
            "{text}"
        );
        status.nodes.remove(2);
        assert!(!table(&status).contains("differ"));
    }

    #[test]
    fn what_is_shown() {
        let mut status = Status {
            epoch: 7,
            is_current: true,
            copies: 2,
            slots_served: SLOTS,
            slots_whole: SLOTS,
            nodes: vec![
                node(1, true, false),
                node(2, true, true),
                node(3, false, false),
            ],
            ..Status::default()
        };
        let text = table(&status);
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[1].starts_with("n1    127.0.0.1:7001          alive"),
            "{text}"
        );
        assert!(
            lines[2].contains(" drains ") && lines[3].contains(" away "),
            "{text}"
        );
        assert!(text.ends_with("epoch 7: all 16384 slots are served, each has 2 copies\n"));
        status.nodes[0].waits = Some("n3 cannot be reached".into());
        let text = table(&status);
        assert!(
            text.contains("\nnode 1 serves no lattice keys: n3 cannot"),
            "{text}"
        );
        assert!(text.contains(" waits ") && !status.is_well(), "{text}");
        status.nodes[0].waits = None;
        status.slots_whole = 16000;
        status.slots_few = 384;
        status.is_current = false;
        let text = table(&status);
        assert!(
            text.contains("384 have fewer than 2 copies\nthe coordinator is unreachable"),
            "{text}"
        );
    }
}
