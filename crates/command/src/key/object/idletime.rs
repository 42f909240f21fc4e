//! OBJECT IDLETIME: how long ago a key was last accessed.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Tells how many seconds ago a key was last accessed.
    IDLETIME = run: "object|idletime", syntax "key", arity 3, group Generic, since "2.2.3",
    flags READONLY, complexity "O(1)", keys Keys::SECOND,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let policy = ctx.shard.policy();
    let key = ctx.first_key(args.get(2));
    match ctx.shard.access(ctx.db, key, ctx.now) {
        Some(_) if policy.lfu => return Err(Failure::from(NOT_TRACKED)),
        Some(stamp) => reply.integer(i64::from(policy.idle_s(stamp, ctx.now))),
        None => reply.null(),
    }
    Ok(())
}

const NOT_TRACKED: &str = "ERR An LFU maxmemory policy is selected, idle time not tracked. \
    Please note that when switching between policies at runtime LRU and LFU data will take \
    some time to adjust.";

#[cfg(test)]
crate::testing::transcripts! {
    seconds_since_the_last_access: "
        object|idletime idletime k => $-1
        SET k v => +OK
        after 5500 ms: object|idletime idletime k => :5
        GET k => 'v'
        object|idletime idletime k => :0
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn not_with_frequencies() {
        let mut rig = Rig::new();
        let lfu = rufous_kernel::shard::Policy {
            lfu: true,
            ..rig.shard.policy()
        };
        rig.shard.set_policy(lfu);
        rig.check("object|idletime idletime k", "$-1");
        rig.check("SET k v", "+OK");
        let reply = rig.run(&[b"object|idletime", b"idletime", b"k"]);
        assert!(
            reply.starts_with(b"-ERR An LFU maxmemory policy is selected, idle time not tracked.")
        );
    }
}
