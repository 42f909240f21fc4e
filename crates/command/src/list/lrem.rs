//! LREM: removes elements that are equal to one.

use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::list::{List, Op, Reply as Answer};
use rufous_kernel::shard::Editor;

command! {
    /// Removes elements of a list that are equal to the one given: the first so many, the last if
    /// the count is negative, all if it is 0. Returns how many.
    LREM = run: "lrem", syntax "key count element", arity 4, group List, since "1.0.0",
    flags WRITE | SLOW, complexity "O(N) with N elements in the list", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (count, element) = (integer(args.get(2))?, args.get(3));
    let key = ctx.first_key(args.get(1));
    let change = |editor: &mut Editor<'_, List>| editor.apply(&Op::Remove { count, element });
    match ctx.shard.update::<List, _>(ctx.db, key, ctx.now, change)? {
        Answer::Removed(removed) => reply.count(removed),
        _ => reply.integer(0),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    from_either_end_or_all: "
        RPUSH k a b a c a d a => :7
        LREM k 1 a => :1
        LREM k -1 a => :1
        LRANGE k 0 -1 => *5 'b' 'a' 'c' 'a' 'd'
        LREM k 0 a => :2
        LREM k 0 a => :0
        LREM none 0 a => :0
        LREM k 9 b => :1
        LREM k 9 c => :1
        LREM k 9 d => :1
        EXISTS k => :0
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn of_large_lists_few_or_many() {
        let mut rig = Rig::new();
        for n in 0..2000 {
            let element: &[u8] = if n % 2 == 0 { b"even" } else { b"odd" };
            rig.run(&[b"RPUSH", b"k", element]);
        }
        rig.check("LREM k -3 even", ":3");
        rig.check("LREM k 0 odd", ":1000");
        rig.check("LLEN k", ":997");
        rig.check("LPOS k odd", "$-1");
    }
}
