//! What FLUSHALL, FLUSHDB and SWAPDB do to every worker; their replies and
//! declarations are in the command library.

use rufous_base::Args;
use rufous_command::{Failure, options};
use rufous_kernel::multi::NodeAction;

pub(crate) fn flush_all(args: &Args<'_>, _: u8) -> Result<NodeAction, Failure> {
    check_mode(args)?;
    Ok(NodeAction::FlushAll)
}

pub(crate) fn flush_db(args: &Args<'_>, db: u8) -> Result<NodeAction, Failure> {
    check_mode(args)?;
    Ok(NodeAction::FlushDb(db))
}

pub(crate) fn swap_db(args: &Args<'_>, _: u8) -> Result<NodeAction, Failure> {
    let index = |at: usize, text: &'static str| {
        options::integer(args.get(at)).map_err(|_| Failure::from(text))?;
        options::database(args.get(at))
    };
    let first = index(1, "ERR invalid first DB index")?;
    let second = index(2, "ERR invalid second DB index")?;
    Ok(NodeAction::SwapDb(first, second))
}

/// Databases are always freed by another thread, so both modes are one.
fn check_mode(args: &Args<'_>) -> Result<(), Failure> {
    match args.len() {
        1 => Ok(()),
        2 if options::is(args.get(1), "ASYNC") || options::is(args.get(1), "SYNC") => Ok(()),
        _ => Err(Failure::SYNTAX),
    }
}
