//! Requests that are refused: unknown commands, and commands that may not run now.

use super::lookahead::What;
use super::turn::Request;
use super::{Front, Message};
use crate::command::connection::quiet;
use rufous_base::{Args, Effects};
use rufous_command::{Failure, Flags, Reply, Spec};

impl Front {
    /// Whether a request has to be refused because the data is not loaded yet. A client that was
    /// served by the first worker that is ready could meet one that is not by its next connection.
    #[inline]
    pub(crate) fn refuses_while_loading(&self, spec: &Spec) -> bool {
        let loads = self.durability.is_loading() || self.declared.is_awaited();
        (loads || self.shared.loading.is_loading()) && !spec.flags.has(Flags::LOADING)
    }

    /// Why a request that names no runnable command is refused.
    pub(crate) fn refusal(&mut self, what: What, args: &Args<'_>, errors: &[String]) -> Failure {
        match what {
            What::Malformed(index) => {
                let text = errors
                    .get(index as usize)
                    .map_or("Protocol error", String::as_str);
                format!("ERR {text}").into()
            }
            What::WrongArity(id) => {
                self.kernel.stats_mut()[usize::from(id)].rejected += 1;
                Failure::wrong_arity(self.table.spec(id).name)
            }
            What::NotQuiet(id) => {
                self.kernel.stats_mut()[usize::from(id)].rejected += 1;
                quiet::refusal(self.table.spec(id).name)
            }
            What::UnknownSub(id) => {
                let sub = String::from_utf8_lossy(&args.get(1)[..args.get(1).len().min(128)])
                    .into_owned();
                let name = self.table.spec(id).name.to_uppercase();
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

    pub(super) fn refuse(
        &mut self,
        request: &Request<'_>,
        failure: &Failure,
        fx: &mut Effects<Message>,
    ) {
        let spec = match request.what {
            What::Command(id) | What::WrongArity(id) | What::NotQuiet(id) => {
                Some(self.table.spec(id))
            }
            What::Unknown | What::UnknownSub(_) | What::Malformed(_) => None,
        };
        let aborted = self.refused_in_transaction(request.conn, spec, failure);
        let failure = aborted.as_ref().unwrap_or(failure);
        let Some(connection) = self.connections.get(request.conn) else {
            return;
        };
        connection.replies.on_request();
        Reply::new(&mut fx.output, connection.resp3).error(failure);
        if let What::Malformed(_) = request.what {
            self.connections.close_after_reply(request.conn);
        }
    }
}
