//! Why requests are refused that name no command that can run.

use super::lookahead::What;
use crate::command::connection::quiet;
use rufous_base::Args;
use rufous_command::{DataCommands, Failure, Table};
use rufous_kernel::Worker;

/// Why a request that names no runnable command is refused.
pub(crate) fn refusal(
    what: What,
    args: &Args<'_>,
    errors: &[String],
    table: &Table,
    kernel: &mut Worker<DataCommands>,
) -> Failure {
    match what {
        What::Malformed(index) => {
            let text = errors
                .get(index as usize)
                .map_or("Protocol error", String::as_str);
            format!("ERR {text}").into()
        }
        What::WrongArity(id) => {
            kernel.stats_mut()[usize::from(id)].rejected += 1;
            Failure::wrong_arity(table.spec(id).name)
        }
        What::NotQuiet(id) => {
            kernel.stats_mut()[usize::from(id)].rejected += 1;
            quiet::refusal(table.spec(id).name)
        }
        What::UnknownSub(id) => {
            let sub =
                String::from_utf8_lossy(&args.get(1)[..args.get(1).len().min(128)]).into_owned();
            let name = table.spec(id).name.to_uppercase();
            format!("ERR unknown subcommand '{sub}'. Try {name} HELP.").into()
        }
        What::Unknown | What::Command(_) => {
            let shown =
                |arg: &[u8]| String::from_utf8_lossy(&arg[..arg.len().min(128)]).into_owned();
            let mut text = format!(
                "ERR unknown command '{}', with args beginning with: ",
                shown(args.get(0))
            );
            for arg in args.iter_from(1) {
                if text.len() > 128 + 64 {
                    break;
                }
                text.push_str(&format!("'{}' ", shown(arg)));
            }
            text.into()
        }
    }
}
