//! OBJECT ENCODING: how Redis would keep the value.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::integer;
use rufous_kernel::shard::Any;

pub static ENCODING: Command = Command {
    spec: Spec {
        name: "object|encoding",
        summary: "Tells how the value of a key is represented, in Redis's terms.",
        since: "2.2.3",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY,
        keys: Keys::SECOND,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(2));
    match ctx.shard.look(ctx.db, key, ctx.now) {
        Some(Any::String(value)) => reply.bulk(encoding(value.bytes()).as_bytes()),
        Some(other) => reply.bulk(other.encoding().unwrap_or_default().as_bytes()),
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
            rig.check(&format!("SET k {value}"), "+OK\r\n");
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
        rig.check("object|encoding ENCODING none", "$-1\r\n");
    }
}
