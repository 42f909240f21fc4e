//! OBJECT ENCODING: how Redis would keep the value.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::integer;
use rufous_kernel::shard::Any;

command! {
    /// Tells how the value of a key is represented, in Redis's terms.
    ENCODING = run: "object|encoding", syntax "key", arity 3, group Generic, since "2.2.3",
    flags READONLY, complexity "O(1)", keys Keys::SECOND,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(2));
    let tuning = *ctx.shard.tuning();
    match ctx.shard.look(ctx.db, key, ctx.now) {
        Some(Any::String(value)) => reply.bulk(encoding(value.bytes()).as_bytes()),
        Some(other) => reply.bulk(other.encoding(&tuning).unwrap_or_default().as_bytes()),
        None => reply.null(),
    }
    Ok(())
}

/// The longest string that Redis keeps in one piece with its header.
const EMBEDDED: usize = 44;

fn encoding(value: &[u8]) -> &'static str {
    if integer::is_canonical_integer(value) {
        "int"
    } else if value.len() <= EMBEDDED {
        "embstr"
    } else {
        "raw"
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn by_form_and_length() {
        let mut rig = Rig::new();
        let mut check = |value: &str, encoding: &str| {
            rig.check(&format!("SET k {value}"), "+OK");
            let reply = format!("${}\r\n{encoding}\r\n", encoding.len());
            rig.check("object|encoding encoding k", &reply);
        };
        check("-12", "int");
        check("9223372036854775807", "int");
        check("9223372036854775808", "embstr");
        check("012", "embstr");
        check(&"x".repeat(44), "embstr");
        check(&"x".repeat(45), "raw");
        check(&"1".repeat(45), "raw");
        rig.check("object|encoding ENCODING none", "$-1");
    }

    #[test]
    fn sets_of_integers_by_their_number() {
        let mut rig = Rig::new();
        let encoding = |rig: &mut Rig, encoding: &str| {
            let reply = format!("${}\r\n{encoding}\r\n", encoding.len());
            rig.check("object|encoding encoding s", &reply);
        };
        for n in 1..=513 {
            rig.check(&format!("SADD s {n}"), ":1");
            if [1, 128, 129, 512].contains(&n) {
                encoding(&mut rig, "intset");
            }
        }
        encoding(&mut rig, "hashtable");
        rig.check("SREM s 1 2 3", ":3");
        rig.check("SADD s x", ":1");
        encoding(&mut rig, "hashtable");
        rig.check("DEL s", ":1");
        rig.check("SADD s 1 x", ":2");
        encoding(&mut rig, "listpack");
        rig.shard.set_tuning(rufous_datatype::algebra::Tuning {
            intset_entries: 3,
            ..*rig.shard.tuning()
        });
        rig.check("DEL s", ":1");
        rig.check("SADD s 1 2 3", ":3");
        encoding(&mut rig, "intset");
        rig.check("SADD s 4", ":1");
        encoding(&mut rig, "hashtable");
    }
}
