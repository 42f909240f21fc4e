//! Which connections `CLIENT LIST` and `CLIENT KILL` mean.

use crate::front::connection::Connection;
use rufous_base::{Args, Now};
use rufous_command::Failure;
use rufous_command::options::{self, is};

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    /// Links between servers and subscribers: there are none on this server.
    Other,
}

impl Kind {
    pub(super) fn parse(word: &[u8]) -> Result<Kind, Failure> {
        if is(word, "NORMAL") {
            return Ok(Kind::Normal);
        }
        if ["MASTER", "REPLICA", "SLAVE", "PUBSUB"]
            .into_iter()
            .any(|kind| is(word, kind))
        {
            return Ok(Kind::Other);
        }
        let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
        Err(format!("ERR Unknown client type '{word}'").into())
    }

    pub(super) fn covers(self, _: &Connection) -> bool {
        self == Kind::Normal
    }
}

/// Conditions that all have to hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    pub(super) id: Option<u64>,
    pub(super) kind: Option<Kind>,
    pub(super) peer: Option<String>,
    pub(super) local: Option<String>,
    pub(super) min_age_s: Option<u64>,
    /// Those that have authenticated.
    pub(super) default_user: bool,
    pub(super) include_caller: bool,
}

impl Filter {
    /// The pairs of words of `CLIENT KILL` from argument `at` on.
    pub(super) fn parse(args: &Args<'_>, mut at: usize) -> Result<Filter, Failure> {
        let mut filter = Filter::default();
        while at < args.len() {
            if at + 1 == args.len() {
                return Err(Failure::SYNTAX);
            }
            filter.add(args.get(at), args.get(at + 1))?;
            at += 2;
        }
        Ok(filter)
    }

    fn add(&mut self, option: &[u8], value: &[u8]) -> Result<(), Failure> {
        let text = || String::from_utf8_lossy(value).into_owned();
        let positive = |refusal: &'static str| match options::integer(value) {
            Ok(number @ 1..) => Ok(Some(number as u64)),
            _ => Err(Failure::from(refusal)),
        };
        if is(option, "ID") {
            self.id = positive("ERR client-id should be greater than 0")?;
        } else if is(option, "MAXAGE") {
            self.min_age_s = positive("ERR maxage is not an integer or out of range")?;
        } else if is(option, "TYPE") {
            self.kind = Some(Kind::parse(value)?);
        } else if is(option, "ADDR") {
            self.peer = Some(text());
        } else if is(option, "LADDR") {
            self.local = Some(text());
        } else if is(option, "USER") {
            if value != b"default" {
                return Err(format!("ERR No such user '{}'", text()).into());
            }
            self.default_user = true;
        } else if is(option, "SKIPME") && (is(value, "YES") || is(value, "NO")) {
            self.include_caller = is(value, "NO");
        } else {
            return Err(Failure::SYNTAX);
        }
        Ok(())
    }

    pub(super) fn covers(&self, connection: &Connection, now: Now) -> bool {
        let age_s = now.mono_us.saturating_sub(connection.created_us) / 1_000_000;
        self.id.is_none_or(|id| id == connection.client_id)
            && self.kind.is_none_or(|kind| kind.covers(connection))
            && self
                .peer
                .as_ref()
                .is_none_or(|peer| *peer == connection.info.peer)
            && self
                .local
                .as_ref()
                .is_none_or(|local| *local == connection.info.local)
            && self.min_age_s.is_none_or(|min| age_s >= min)
            && (!self.default_user || connection.authenticated)
    }
}
