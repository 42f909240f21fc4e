//! MGET: the values of several keys.

use super::warm;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::Key;

command! {
    /// Returns the strings at several keys, nil for each that is missing.
    MGET = run: "mget", syntax "key [key ...]", arity -2, group String, since "1.0.0",
    flags READONLY | FAST | PER_KEY | LIST, complexity "O(N) with N keys", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    reply.array(args.len() - 1);
    let mut at = 1;
    while at < args.len() {
        for &hash in warm::group(ctx, &args, at, 1).hashes() {
            let bytes = args.get(at);
            match ctx.shard.get(ctx.db, Key { bytes, hash }, ctx.now) {
                Ok(Some(value)) => reply.value(value),
                // A value of another type is no error here.
                Ok(None) | Err(_) => reply.null(),
            }
            at += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    values_in_the_order_of_the_keys: "
        MSET a 1 b 2 => +OK
        MGET b none a b => *4 '2' $-1 '1' '2'
        resp3: MGET none => *1 _
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn more_keys_than_are_fetched_together() {
        let mut rig = Rig::new();
        let keys: Vec<String> = (0..100).map(|i| format!("k{i}")).collect();
        let (mut mset, mut mget) = (vec![b"MSET".as_slice()], vec![b"MGET".as_slice()]);
        let mut reply = b"*100\r\n".to_vec();
        for key in &keys {
            mset.extend([key.as_bytes(), key.as_bytes()]);
            mget.push(key.as_bytes());
            reply.extend_from_slice(format!("${}\r\n{key}\r\n", key.len()).as_bytes());
        }
        assert_eq!(rig.run(&mset), b"+OK\r\n");
        assert_eq!(rig.run(&mget), reply);
    }
}
