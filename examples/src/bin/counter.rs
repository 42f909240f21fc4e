//! A counter that is incremented everywhere at once.
//!
//! Two clients count at their own replicas, neither waiting for the other. `INCR` replies the sum as
//! its replica knows it; after the merge both know the sum of all.

use anyhow::{Result, ensure};
use clap::Parser;
use redis::{Commands, Connection};
use rufous_examples::{Args, Keyspace, Replicas};

const VISITS: Keyspace = Keyspace {
    name: "example-visits",
    prefix: "example:visits:",
    options: &["LEVEL", "eventual"],
};

/// Counts so often, and returns the last reply.
fn count(redis: &mut Connection, key: &str, times: u64) -> redis::RedisResult<u64> {
    let mut last = 0;
    for _ in 0..times {
        last = redis.incr(key, 1)?;
    }
    Ok(last)
}

fn main() -> Result<()> {
    let mut replicas = Replicas::open(&Args::parse().url, VISITS, ["Berlin", "Boston"])?;
    let visits = replicas.key("home");

    println!("\nBerlin counts 1000 visits and Boston 500, at the same time.");
    let (berlin, boston) = (&mut replicas.one.redis, &mut replicas.two.redis);
    let (berlin, boston) = std::thread::scope(|scope| {
        let berlin = scope.spawn(|| count(berlin, &visits, 1000));
        let boston = count(boston, &visits, 500);
        (berlin.join(), boston)
    });
    let berlin = berlin.map_err(|_| anyhow::anyhow!("counting in Berlin failed"))??;
    let boston = boston?;
    println!("The last INCR replied {berlin} in Berlin and {boston} in Boston.");
    ensure!((berlin, boston) == (1000, 500));

    println!("\nBefore the merge each replica shows what it knows:");
    let (berlin, boston) = replicas.look(|redis| redis.get::<_, u64>(&visits))?;
    ensure!((berlin, boston) == (1000, 500));

    replicas.merge()?;
    println!("\nAfter it:");
    let (berlin, boston) = replicas.look(|redis| redis.get::<_, u64>(&visits))?;
    ensure!(berlin == boston, "the replicas differ");
    ensure!(berlin == 1500, "a visit was lost or counted twice");

    println!("\nNo visit was lost, none was counted twice, and nobody waited.");
    Ok(())
}
