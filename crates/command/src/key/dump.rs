//! DUMP: the value of a key as bytes that RESTORE makes a value of.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::rdb::{self, DumpWriter};
use rufous_kernel::shard::Any;

pub static DUMP: Command = Command {
    spec: Spec {
        name: "dump",
        summary: "Returns the value of a key as bytes for RESTORE, in the format of Redis's files.",
        since: "2.6.0",
        group: Group::Generic,
        complexity: "O(N) in the size of the value",
        arity: 2,
        flags: Flags::READONLY.or(Flags::SLOW),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let payload = match ctx.shard.read(ctx.db, key, ctx.now) {
        None => {
            reply.null();
            return Ok(());
        }
        Some(Any::String(value)) => DumpWriter::string(value.bytes()),
        Some(any) => {
            let Some(tag) = any.tag() else {
                return Err(Failure::WRONG_TYPE);
            };
            if tag.is_replicated() {
                return Err(Failure::from(REPLICATED));
            }
            rdb::dump(tag, any.len(), |at, budget, out| any.chunk(at, budget, out))
        }
    };
    // Nobody could send it back.
    if payload.len() as u64 > MAX_BULK {
        return Err(Failure::from(TOO_LARGE));
    }
    reply.bulk(&payload);
    Ok(())
}

const REPLICATED: &str = "ERR the payload would not have what replicas know of the elements: \
     read these with the commands of the type";
const TOO_LARGE: &str = "ERR the payload would be larger than what a request may have";

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    fn body(reply: &[u8]) -> &[u8] {
        let start = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        &reply[start..reply.len() - 2]
    }

    #[test]
    fn strings_as_redis_writes_them() {
        let mut rig = Rig::new();
        rig.check("DUMP none", "$-1\r\n");
        rig.check("SET k v", "+OK\r\n");
        let reply = rig.run(&[b"DUMP", b"k"]);
        let redis = b"\x00\x01v\x0a\x00\x91\x08\xce\xb2\x19\x38\x8a\xce";
        assert_eq!(body(&reply), redis);
        rig.check("SET k 7", "+OK\r\n");
        let reply = rig.run(&[b"DUMP", b"k"]);
        assert!(body(&reply).starts_with(b"\x00\xc0\x07\x0a\x00"));
    }
}
