//! What does not come through: packets are dropped by `iptables` in the namespace of one of
//! two ends, or by routes that lead nowhere in the sender's. The first drops what comes, too,
//! the second makes sockets notice at once: nodes have to bear both.

use std::fmt;

use anyhow::Result;

use crate::space::{Host, run};

/// A way to drop packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Iptables,
    Routes,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tool::Iptables => "iptables",
            Tool::Routes => "routes",
        })
    }
}

/// What this machine can do, tried at a host.
pub fn tools(host: &Host) -> Vec<Tool> {
    let mut tools = vec![Tool::Routes];
    if lose(host, 1).and_then(|()| stop_losing(host, 1)).is_ok() {
        tools.push(Tool::Iptables);
    }
    tools
}

/// A direction that is closed: nothing comes from the one to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub from: Host,
    pub to: Host,
    pub tool: Tool,
}

impl Cut {
    pub fn close(&self) -> Result<()> {
        match self.tool {
            Tool::Iptables => self.rule("-A"),
            Tool::Routes => self.route("add"),
        }
    }

    pub fn open(&self) -> Result<()> {
        match self.tool {
            Tool::Iptables => self.rule("-D"),
            Tool::Routes => self.route("del"),
        }
    }

    /// At the receiver: what it sends itself is not touched.
    fn rule(&self, what: &str) -> Result<()> {
        let from = self.from.address.to_string();
        iptables(&self.to, &[what, "INPUT", "-s", &from, "-j", "DROP"])
    }

    fn route(&self, what: &str) -> Result<()> {
        let to = format!("{}/32", self.to.address);
        let words = ["ip", "-n", &self.from.name, "route", what, "blackhole", &to];
        run(&words)
    }
}

/// Of what comes to a host, so many of a hundred packets are lost by chance.
pub fn lose(host: &Host, percent: u32) -> Result<()> {
    losing(host, "-A", percent)
}

pub fn stop_losing(host: &Host, percent: u32) -> Result<()> {
    losing(host, "-D", percent)
}

fn losing(host: &Host, what: &str, percent: u32) -> Result<()> {
    let probability = format!("{:.2}", f64::from(percent) / 100.0);
    let chance = ["-m", "statistic", "--mode", "random", "--probability"];
    let end = [probability.as_str(), "-j", "DROP"];
    // What a host says to itself does not use a network.
    let words = [&[what, "INPUT", "!", "-i", "lo"], &chance[..], &end[..]].concat();
    iptables(host, &words)
}

fn iptables(host: &Host, words: &[&str]) -> Result<()> {
    // It waits for its lock, which all namespaces share.
    let begin = ["ip", "netns", "exec", &host.name, "iptables", "-w"];
    run(&[&begin[..], words].concat())
}
