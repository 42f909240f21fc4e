//! `cargo xtask demo merge`: the programs of `examples`, on a node with two workers.
//!
//! Each has two replicas work apart, shows them before and after the merge, and ends with 1 where
//! they are not what they ought to be. At the end all keys that the programs left are read at both
//! replicas once more.

use crate::diff::wire::{Client, Reply};
use crate::node::Node;
use crate::process::{self, cargo, line};
use crate::project;
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 3] = ["cart", "comments", "counter"];
/// What a program takes less than a second for on a quiet machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Far longer than replicas take to hear of each other.
const QUIET: Duration = Duration::from_secs(20);
const ATTEMPTS: usize = 64;
/// Keys that are shown although they do not differ.
const SHOWN: usize = 8;

pub(crate) fn run() -> Result<bool> {
    println!("1. Build");
    process::run(cargo().args([
        "build",
        "--release",
        "--package",
        "rufous-node",
        "--package",
        "rufous-examples",
    ]))?;
    show("release")
}

/// With this build of the programs, which are there, as the server is.
pub(crate) fn show(build: &str) -> Result<bool> {
    println!("\n2. Start a node with two workers");
    let mut node = Node::start(&["--workers", "2"])?;
    let mut failed = Vec::new();
    for (at, program) in PROGRAMS.into_iter().enumerate() {
        println!("\n{}. {program}: examples/src/bin/{program}.rs", at + 3);
        let mut command = Command::new(project::target().join(build).join(program));
        command.args(["--url", &format!("redis://127.0.0.1:{}", node.port)]);
        let finished = process::watch(&mut command, LIMIT, true)?;
        if finished.status.is_none() {
            println!("{} did not end", line(&command));
        }
        if !finished.success() {
            failed.push(program);
        }
    }
    println!("\n{}. All keys at both replicas", PROGRAMS.len() + 3);
    let seen = once_quiet(node.port)?;
    let (differ, same): (Vec<_>, Vec<_>) = seen.iter().partition(|key| key.differs());
    same.iter().take(SHOWN).for_each(|key| key.print());
    if same.len() > SHOWN {
        println!("    … and {} more, the same at both", same.len() - SHOWN);
    }
    differ.iter().for_each(|key| key.print());
    node.stop()?;
    if !failed.is_empty() {
        println!("\nFailed: {}.", failed.join(", "));
    }
    if !differ.is_empty() {
        println!("\n{} keys differ between replicas.", differ.len());
    } else {
        println!("\nBoth replicas hold the same {} keys.", seen.len());
    }
    ensure!(!seen.is_empty(), "the programs left nothing to compare");
    Ok(failed.is_empty() && differ.is_empty())
}

/// A key as two replicas show it.
struct Seen {
    key: String,
    one: Reply,
    two: Reply,
}

impl Seen {
    fn differs(&self) -> bool {
        self.one != self.two
    }

    fn print(&self) {
        let Self { key, one, two } = self;
        match self.differs() {
            true => println!("    {key}: {one}, BUT {two}"),
            false => println!("    {key}: {one}"),
        }
    }
}

/// All keys, as soon as the replicas are alike, or when they have had time enough to be.
fn once_quiet(port: u16) -> Result<Vec<Seen>> {
    let (mut one, mut two) = connect(port)?;
    for name in ask(&mut one, "KEYSPACE LIST")?.items() {
        ask(&mut one, &format!("KEYSPACE ALTER {name:#} GOSSIP 10"))?;
    }
    let deadline = Instant::now() + QUIET;
    loop {
        let mut seen = Vec::new();
        for key in ask(&mut one, "KEYS *")?.items() {
            let key = format!("{key:#}");
            let (one, two) = (read(&mut one, &key)?, read(&mut two, &key)?);
            seen.push(Seen { key, one, two });
        }
        seen.sort_by(|a, b| a.key.cmp(&b.key));
        if !seen.iter().any(Seen::differs) || Instant::now() > deadline {
            return Ok(seen);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two connections that are with different workers.
fn connect(port: u16) -> Result<(Client, Client)> {
    let open = || -> Result<(Client, String)> {
        let mut client = Client::connect("127.0.0.1", port)?;
        let info = format!("{:#}", ask(&mut client, "CLIENT INFO")?);
        let mut fields = info.split_whitespace();
        let worker = fields.find(|field| field.starts_with("worker="));
        let worker = worker.context("CLIENT INFO names no worker")?.to_owned();
        Ok((client, worker))
    };
    let (one, worker) = open()?;
    // Those of the same worker stay open, or the next might be dealt to it again.
    let mut same = Vec::new();
    for _ in 0..ATTEMPTS {
        let other = open()?;
        if other.1 != worker {
            return Ok((one, other.0));
        }
        same.push(other);
    }
    bail!("{ATTEMPTS} connections are all with one worker")
}

/// All of a key's value, in an order that does not depend on its history.
fn read(client: &mut Client, key: &str) -> Result<Reply> {
    let kind = ask(client, &format!("TYPE {key}"))?;
    let command = match kind.bytes() {
        Some(b"string") => "GET",
        Some(b"hash") => "HGETALL",
        Some(b"set") => "SMEMBERS",
        Some(b"zset") => return ask(client, &format!("ZRANGE {key} 0 -1 WITHSCORES")),
        _ => return Ok(kind),
    };
    Ok(match ask(client, &format!("{command} {key}"))? {
        Reply::Many(kind, items) if command == "HGETALL" => {
            let mut fields: Vec<_> = items.chunks(2).map(<[Reply]>::to_vec).collect();
            fields.sort();
            Reply::Many(kind, fields.concat())
        }
        Reply::Many(kind, mut items) => {
            items.sort();
            Reply::Many(kind, items)
        }
        other => other,
    })
}

fn ask(client: &mut Client, command: &str) -> Result<Reply> {
    let reply = client.call_text(command)?;
    ensure!(!reply.is_error(), "{command}: {reply}");
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_where_replicas_show_different_values() {
        let text = |text: &str| Reply::Text(b'$', text.into());
        let seen = |one, two| Seen {
            key: "k".into(),
            one,
            two,
        };
        assert!(!seen(text("a"), text("a")).differs());
        assert!(seen(text("a"), text("b")).differs());
        assert!(seen(text("a"), Reply::Text(b'+', b"none".to_vec())).differs());
        let set = |items: &[&str]| Reply::Many(b'*', items.iter().map(|item| text(item)).collect());
        assert!(seen(set(&["a", "b"]), set(&["a"])).differs());
    }
}
