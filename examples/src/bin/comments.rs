//! A thread of comments: replies never show before what they answer, and edits at the same time
//! stand beside each other until somebody joins them.
//!
//! `LEVEL causal` keeps concurrent values of a string, `CUT` has no replica show a write before
//! those that it may depend on. `CAUSAL.GET` replies a token and all values; `CAUSAL.SET` with that
//! token replaces just these, so that nothing is overwritten that its writer has not read.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use redis::{Commands, Connection, cmd};
use rufous_examples::{Args, Keyspace, Replicas};

const COMMENTS: Keyspace = Keyspace {
    name: "example-comments",
    prefix: "example:comment:",
    options: &["LEVEL", "causal", "CUT", "yes"],
};

/// Comments of the thread, each an answer to the one before.
const REPLIES: usize = 200;

/// A comment as it was read: what to reply to a writer, and all values.
fn read(redis: &mut Connection, key: &str) -> Result<(Vec<u8>, Vec<String>)> {
    let mut reply: Vec<Vec<u8>> = cmd("CAUSAL.GET").arg(key).query(redis)?;
    ensure!(!reply.is_empty(), "CAUSAL.GET replied no token");
    let token = reply.remove(0);
    let values = reply.into_iter().map(String::from_utf8);
    let mut values = values
        .collect::<Result<Vec<_>, _>>()
        .context("a comment is text")?;
    values.sort();
    Ok((token, values))
}

fn write(redis: &mut Connection, key: &str, token: &[u8], text: &str) -> Result<()> {
    let reply = cmd("CAUSAL.SET").arg(key).arg(token).arg(text).query(redis);
    reply
        .map(|_: Vec<u8>| ())
        .with_context(|| format!("CAUSAL.SET {key}"))
}

fn thread(replicas: &mut Replicas) -> Result<()> {
    let keys: Vec<String> = (0..REPLIES).map(|n| replicas.key(&n.to_string())).collect();
    println!("\nAnn writes {REPLIES} comments, each an answer to the one before.");
    for (n, key) in keys.iter().enumerate() {
        let () = replicas.one.redis.set(key, format!("comment {n}"))?;
    }
    println!("While the replicas merge, Bob looks again and again, at the newest comment first.");
    let mut seen = Vec::new();
    replicas.merge_watched(|bob| {
        let there = |key| bob.exists::<_, bool>(key);
        let there: Vec<bool> = keys.iter().rev().map(there).collect::<Result<_, _>>()?;
        // Read later, and so nothing that is older may be missing.
        let first = there.iter().position(|is_there| *is_there);
        let whole = there
            .iter()
            .skip(first.unwrap_or(there.len()))
            .all(|is_there| *is_there);
        ensure!(whole, "an answer was there before what it answers");
        seen.push(there.into_iter().filter(|is_there| *is_there).count());
        Ok(())
    })?;
    seen.dedup();
    println!("    Bob      sees {seen:?} comments, none before what it answers");
    let all = |redis: &mut Connection| redis.mget::<_, Vec<Option<String>>>(&keys);
    let (ann, bob) = (all(&mut replicas.one.redis)?, all(&mut replicas.two.redis)?);
    ensure!(
        ann == bob && ann.iter().all(Option::is_some),
        "the replicas differ"
    );
    Ok(())
}

fn edits(replicas: &mut Replicas) -> Result<()> {
    let key = replicas.key("0");
    println!(
        "\nNow both edit the first comment at the same time: each reads it, and writes with the token."
    );
    for (client, text) in [
        (&mut replicas.one, "hello (edited by Ann)"),
        (&mut replicas.two, "hello (edited by Bob)"),
    ] {
        let (token, _) = read(&mut client.redis, &key)?;
        write(&mut client.redis, &key, &token, text)?;
    }
    println!("\nBefore the merge each replica shows what it knows:");
    let (ann, bob) = replicas.look(|redis| read(redis, &key).map(|seen| seen.1))?;
    ensure!(ann == ["hello (edited by Ann)"] && bob == ["hello (edited by Bob)"]);

    replicas.merge()?;
    println!("\nAfter it, both edits:");
    let (ann, bob) = replicas.look(|redis| read(redis, &key).map(|seen| seen.1))?;
    ensure!(ann == bob, "the replicas differ");
    ensure!(ann.len() == 2, "an edit was lost");

    println!("\nBob has read both, and writes what is to stand in their place.");
    let bob = &mut replicas.two.redis;
    let (token, values) = read(bob, &key)?;
    write(bob, &key, &token, &values.join(" + "))?;
    replicas.merge()?;
    let (ann, bob) = replicas.look(|redis| read(redis, &key).map(|seen| seen.1))?;
    ensure!(ann == bob && ann.len() == 1, "the replicas differ");
    Ok(())
}

fn main() -> Result<()> {
    let mut replicas = Replicas::open(&Args::parse().url, COMMENTS, ["Ann", "Bob"])?;
    thread(&mut replicas)?;
    edits(&mut replicas)?;
    println!("\nNo edit was lost, and nobody saw an answer without its question.");
    Ok(())
}
