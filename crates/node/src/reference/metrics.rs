//! The metrics reference.

use super::{cell, keep};
use crate::admin::declared;
use crate::node::Node;
use rufous_server::cluster::Settings;
use rufous_server::config::Config;
use std::fmt::Write;

const METRICS: &str = "\
# Metrics

Written by `cargo xtask docs --write` from the tables of metrics. `/metrics` on the admin port
(`admin-port`, 9121 by default) shows them in the text format of Prometheus. Metrics of the cluster are
shown by nodes that are in one. Counters begin with 0 when the node starts.

| metric | type | labels | meaning |
|---|---|---|---|
";

#[test]
fn metrics_reference() {
    let config = Config {
        workers: 1,
        bind: Vec::new(),
        cluster: Some(Settings::new("reference")),
        ..Config::in_memory()
    };
    let node = Node::start(&config).expect("a node");
    let mut out = String::from(METRICS);
    let mut all = declared(&node);
    all.sort();
    for (name, kind, labels, help) in &all {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        let _ = writeln!(
            out,
            "| `{name}` | {kind} | {} | {} |",
            labels.join(", "),
            cell(help)
        );
    }
    let double = all.windows(2).find(|pair| pair[0].0 == pair[1].0);
    assert_eq!(double, None, "a metric is declared twice");
    keep("metrics.md", &out);
}
