//! Commands on the connection.

use crate::command::SessionCommand;
use rufous_command::{Flags, Group, Keys, Spec};

pub mod auth;
pub mod client;
pub mod echo;
pub mod hello;
pub mod ping;
pub mod quiet;
pub mod quit;
pub mod reset;
pub mod select;
pub mod session;

pub static COMMANDS: &[&SessionCommand] = &[
    &ping::PING,
    &echo::ECHO,
    &quiet::QUIET,
    &hello::HELLO,
    &auth::AUTH,
    &select::SELECT,
    &quit::QUIT,
    &reset::RESET,
    &session::SESSION,
    &session::TOKEN,
    &session::RESUME,
    &session::HELP,
    &client::CLIENT,
    &client::identity::ID,
    &client::identity::GETNAME,
    &client::identity::SETNAME,
    &client::identity::SETINFO,
    &client::list::LIST,
    &client::list::INFO,
    &client::kill::KILL,
    &client::reply::REPLY,
    &client::pause::PAUSE,
    &client::pause::UNPAUSE,
    &client::modes::NO_EVICT,
    &client::modes::NO_TOUCH,
    &client::modes::CROSSSLOT,
    &client::modes::ROLLBACK_ON_ERROR,
    &client::waiting::UNBLOCK,
    &client::tracking::GETREDIR,
    &client::tracking::TRACKINGINFO,
    &client::HELP,
];

/// A command that takes constant time and works at any time, also while the
/// server loads data.
const fn spec(
    name: &'static str,
    since: &'static str,
    arity: i32,
    flags: Flags,
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since,
        group: Group::Connection,
        complexity: "O(1)",
        arity,
        flags: Flags::LOADING.or(Flags::STALE).or(flags),
        keys: Keys::None,
        syntax,
    }
}
