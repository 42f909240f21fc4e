//! A shopping cart that two devices change at the same time.
//!
//! What is in the cart is a set, how much of it a hash. In a lattice keyspace a set is *add-wins*: a
//! removal takes away what its replica shows, and an addition that it has not seen stays. Amounts
//! are counted, not overwritten: additions of both devices add up.

use anyhow::{Result, ensure};
use clap::Parser;
use redis::Commands;
use rufous_examples::{Args, Keyspace, Replicas};
use std::collections::{BTreeMap, BTreeSet};

const CARTS: Keyspace = Keyspace {
    name: "example-carts",
    prefix: "example:cart:",
    options: &["LEVEL", "eventual"],
};

fn set(items: &[&str]) -> BTreeSet<String> {
    items.iter().map(|item| (*item).into()).collect()
}

fn main() -> Result<()> {
    let mut replicas = Replicas::open(&Args::parse().url, CARTS, ["phone", "laptop"])?;
    let (items, amounts) = (replicas.key("ann"), replicas.key("ann:amounts"));

    println!("\nAnn has milk and bread in her cart.");
    replicas
        .one
        .redis
        .sadd::<_, _, ()>(&items, &["milk", "bread"])?;
    replicas.merge()?;

    println!("On her phone she removes the milk and adds an apple,");
    let phone = &mut replicas.one.redis;
    phone.srem::<_, _, ()>(&items, "milk")?;
    phone.sadd::<_, _, ()>(&items, "apple")?;
    phone.hincr::<_, _, _, ()>(&amounts, "apple", 1)?;

    println!(
        "while somebody at her laptop adds milk once more, and two apples, and removes the bread."
    );
    let laptop = &mut replicas.two.redis;
    laptop.sadd::<_, _, ()>(&items, &["milk", "apple"])?;
    laptop.hincr::<_, _, _, ()>(&amounts, "apple", 2)?;
    laptop.srem::<_, _, ()>(&items, "bread")?;

    println!("\nBefore the merge each replica shows what it knows:");
    let (phone, laptop) = replicas.look(|redis| redis.smembers::<_, BTreeSet<String>>(&items))?;
    ensure!(phone == set(&["apple", "bread"]) && laptop == set(&["apple", "milk"]));

    replicas.merge()?;
    println!("\nAfter it:");
    let (phone, laptop) = replicas.look(|redis| redis.smembers::<_, BTreeSet<String>>(&items))?;
    ensure!(phone == laptop, "the replicas differ");
    ensure!(phone == set(&["apple", "milk"]), "not what add-wins means");
    let read = |redis: &mut redis::Connection| redis.hgetall(&amounts);
    let (phone, laptop): (BTreeMap<String, u64>, _) = replicas.look(read)?;
    ensure!(
        phone == laptop && phone["apple"] == 3,
        "the replicas differ"
    );

    println!("\nThe milk is there: the removal had not seen that it was added once more.");
    println!("The bread is not: nobody added it again. And 1 apple and 2 are 3.");
    Ok(())
}
