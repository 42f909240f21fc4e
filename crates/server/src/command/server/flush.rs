//! What FLUSHALL, FLUSHDB and SWAPDB do to every worker; their replies and
//! declarations are in the command library.

use rufous_base::Args;
use rufous_command::Failure;
use rufous_command::server::{flushall::check_mode, swapdb::databases};
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
    let (first, second) = databases(args)?;
    Ok(NodeAction::SwapDb(first, second))
}
