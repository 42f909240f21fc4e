//! OBJECT FREQ: how often a key is accessed.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the logarithmic access counter of a key, where the eviction policy counts accesses.
    FREQ = run: "object|freq", syntax "key", arity 3, group Generic, since "4.0.0", flags READONLY,
    complexity "O(1)", keys Keys::SECOND,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let policy = ctx.shard.policy();
    let key = ctx.first_key(args.get(2));
    match ctx.shard.access(ctx.db, key, ctx.now) {
        Some(_) if !policy.lfu => return Err(Failure::from(NOT_TRACKED)),
        Some(stamp) => reply.integer(i64::from(policy.counter(stamp, ctx.now))),
        None => reply.null(),
    }
    Ok(())
}

const NOT_TRACKED: &str = "ERR An LFU maxmemory policy is not selected, access frequency not \
    tracked. Please note that when switching between policies at runtime LRU and LFU data will \
    take some time to adjust.";

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn grows_with_accesses() {
        let mut rig = Rig::new();
        let lfu = rufous_kernel::shard::Policy {
            lfu: true,
            ..rig.shard.policy()
        };
        rig.shard.set_policy(lfu);
        rig.check("object|freq freq k", "$-1");
        rig.check("SET k v", "+OK");
        rig.check("object|freq freq k", ":5");
        // The first step up is certain.
        rig.check("GET k", "'v'");
        rig.check("object|freq freq k", ":6");
    }

    #[test]
    fn not_with_idle_times() {
        let mut rig = Rig::new();
        rig.check("object|freq freq k", "$-1");
        rig.check("SET k v", "+OK");
        let reply = rig.run(&[b"object|freq", b"freq", b"k"]);
        assert!(reply.starts_with(
            b"-ERR An LFU maxmemory policy is not selected, access frequency not tracked."
        ));
    }
}
