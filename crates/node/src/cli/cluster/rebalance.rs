//! `rufous cluster rebalance`: other weights for nodes, and what they would move.

use super::ask::{Connection, Password, find};
use anyhow::{Context, Result, bail};
use clap::Args;
use rufous_base::limits::SLOTS;
use rufous_mapping::ring::MAX_WEIGHT;
use rufous_resp::Reply;
use rufous_server::cluster::preview::Preview;
use rufous_server::cluster::status::{Node, Status};
use std::fmt::Write as _;
use std::io::Write;

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Rebalance {
    /// Any node of the cluster, by its port for clients
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:7001")]
    at: String,
    /// A node (its address for clients, its number as n2, or how its id begins) and its
    /// weight: 1 to 1000, 100 for a node of which nothing else was said
    #[arg(long, value_name = "NODE=WEIGHT", value_parser = parse)]
    weight: Vec<(String, u16)>,
    /// Say what would move, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    password: Password,
}

fn parse(text: &str) -> Result<(String, u16), String> {
    let (node, weight) = text
        .split_once('=')
        .ok_or("a node and its weight, such as n2=50")?;
    let weight = weight.parse().ok();
    let weight = weight.filter(|weight| (1..=MAX_WEIGHT).contains(weight));
    let weight = weight.ok_or_else(|| format!("a weight is 1 to {MAX_WEIGHT}"))?;
    Ok((node.to_owned(), weight))
}

pub(super) fn run(rebalance: &Rebalance) -> Result<()> {
    let mut node = Connection::open(&rebalance.at, &rebalance.password)?;
    let status = node.status()?;
    let mut weights: Vec<(&Node, u16)> = Vec::new();
    for (name, weight) in &rebalance.weight {
        weights.push((find(&status, name)?, *weight));
    }
    let mut words = vec!["CLUSTER".to_owned(), "PREVIEW".to_owned()];
    for (node, weight) in &weights {
        words.extend([node.number.to_string(), weight.to_string()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Reply::Bulk(text) = node.call(&words)? else {
        bail!(
            "{} sent an unexpected reply; is it a Rufous node?",
            rebalance.at
        );
    };
    let preview = Preview::parse(&String::from_utf8_lossy(&text));
    let preview = preview.with_context(|| {
        format!(
            "{} sent an unexpected reply; is it a Rufous node?",
            rebalance.at
        )
    })?;
    std::io::stdout().write_all(table(&preview, &status).as_bytes())?;
    if rebalance.dry_run {
        return Ok(());
    }
    for (node, weight) in weights {
        let mut node = Connection::open(&node.plain, &rebalance.password)?;
        node.call(&["CLUSTER", "WEIGHT", &weight.to_string()])?;
    }
    if !rebalance.weight.is_empty() {
        println!(
            "It begins: rufous cluster status {} shows how far it is. Weights hold until a node\nstarts again: for longer, set its cluster-weight.",
            rebalance.at
        );
    }
    Ok(())
}

fn table(preview: &Preview, status: &Status) -> String {
    let mut text = format!(
        "{:<6}{:<24}{:>8}{:>10}{:>9}\n",
        "node", "clients at", "copies", "will have", "change"
    );
    for change in &preview.nodes {
        let node = status
            .nodes
            .iter()
            .find(|node| node.number == change.number);
        let plain = node.map_or("", |node| node.plain.as_str());
        let (has, will_have) = (change.has, change.will_have);
        let by = will_have as i64 - has as i64;
        let name = format!("n{}", change.number);
        let _ = writeln!(text, "{name:<6}{plain:<24}{has:>8}{will_have:>10}{by:>+9}");
    }
    let all = (SLOTS * status.copies.max(1)) as f64;
    let _ = writeln!(
        text,
        "\n{} copies of slots move, {:.1} % of all; {} is the least that could",
        preview.moving,
        preview.moving as f64 * 100.0 / all,
        preview.minimum
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_server::cluster::preview::Change;

    #[test]
    fn weights_as_operators_write_them() {
        assert_eq!(parse("n2=50"), Ok(("n2".into(), 50)));
        assert_eq!(parse("[::1]:7001=1000"), Ok(("[::1]:7001".into(), 1000)));
        for wrong in ["", "n2", "n2=", "n2=0", "n2=1001", "n2=x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown() {
        let preview = Preview {
            moving: 3277,
            minimum: 3000,
            nodes: vec![Change {
                number: 2,
                has: 9000,
                will_have: 6000,
            }],
        };
        let status = Status {
            copies: 2,
            ..Status::default()
        };
        let text = table(&preview, &status);
        assert!(text.contains("    9000      6000    -3000\n"), "{text}");
        assert!(
            text.contains("3277 copies of slots move, 10.0 % of all; 3000 is the least"),
            "{text}"
        );
    }
}
