//! LTRIM: keeps a part of a list.

use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::list::{List, Op};
use rufous_kernel::shard::Editor;

command! {
    /// Removes all elements of a list but those from one index to another.
    LTRIM = run: "ltrim", syntax "key start stop", arity 4, group List, since "1.0.0", flags WRITE,
    complexity "O(log N) with N elements in the list: removed elements are freed in the background",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (start, stop) = (integer(args.get(2))?, integer(args.get(3))?);
    let key = ctx.first_key(args.get(1));
    let change = |editor: &mut Editor<'_, List>| editor.apply(&Op::Trim { start, stop });
    ctx.shard.update::<List, _>(ctx.db, key, ctx.now, change)?;
    reply.ok();
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    keeps_what_lies_between: "
        LTRIM none 0 1 => +OK
        RPUSH k a b c d e => :5
        LTRIM k 0 -1 => +OK
        LTRIM k 1 -2 => +OK
        LRANGE k 0 -1 => *3 'b' 'c' 'd'
        LTRIM k 0 0 => +OK
        LRANGE k 0 -1 => *1 'b'
        LTRIM k 1 0 => +OK
        EXISTS k => :0
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn what_goes_of_a_large_list_is_garbage() {
        let mut rig = Rig::new();
        for n in 0..30_000 {
            rig.run(&[b"RPUSH", b"k", format!("element {n}").as_bytes()]);
        }
        rig.check("LTRIM k 0 99", "+OK");
        assert_eq!(rig.shard.take_garbage().len(), 1);
        rig.check("LLEN k", ":100");
        rig.check("LINDEX k -1", "'element 99'");
        rig.check("LTRIM k 1 0", "+OK");
        rig.check("EXISTS k", ":0");
    }
}
