//! DUMP: the value of a key as bytes that RESTORE makes a value of.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::hash::Hash;
use rufous_datatype::object::{Registered, Tag};
use rufous_datatype::rdb::{self, DumpWriter};
use rufous_datatype::set::Set;
use rufous_datatype::sorted_set::SortedSet;
use rufous_kernel::shard::Any;

command! {
    /// Returns the value of a key as bytes for RESTORE, in the format of Redis's files.
    DUMP = run: "dump", syntax "key", arity 2, group Generic, since "2.6.0", flags READONLY | SLOW,
    complexity "O(N) in the size of the value", keys Keys::FIRST,
}

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
            // Of what replicas know the plain value that is shown.
            match tag {
                Tag::SharedSet => inside::<Set>(any)?,
                Tag::SharedHash => inside::<Hash>(any)?,
                Tag::SharedSortedSet => inside::<SortedSet>(any)?,
                _ => rdb::dump(tag, any.len(), |at, budget, out| any.chunk(at, budget, out)),
            }
        }
    };
    // No client could send it back.
    if payload.len() as u64 > MAX_BULK {
        return Err(Failure::from(TOO_LARGE));
    }
    reply.bulk(&payload);
    Ok(())
}

fn inside<T: Registered>(any: Any<'_>) -> Result<Vec<u8>, Failure> {
    let view = any.of::<T>().map_err(|_| Failure::WRONG_TYPE)?;
    let chunk = |at, budget, out: &mut Vec<u8>| T::chunk(view, at, budget, out);
    Ok(rdb::dump(T::TAG, T::len(view), chunk))
}

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
        rig.check("DUMP none", "$-1");
        rig.check("SET k v", "+OK");
        let reply = rig.run(&[b"DUMP", b"k"]);
        let redis = b"\x00\x01v\x0a\x00\x91\x08\xce\xb2\x19\x38\x8a\xce";
        assert_eq!(body(&reply), redis);
        rig.check("SET k 7", "+OK");
        let reply = rig.run(&[b"DUMP", b"k"]);
        assert!(body(&reply).starts_with(b"\x00\xc0\x07\x0a\x00"));
    }
}
