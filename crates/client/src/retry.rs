//! What to do after an attempt: a pure decision, made in one place.

use crate::config::Addr;
use crate::error::{Error, ServerError};
use rufous_base::limits::SLOTS;
use std::time::Duration;

/// The next step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It stays at that.
    Return,
    /// The slot is elsewhere: remember it, and go there.
    Moved(u16, Addr),
    /// This once, ask there, with `ASKING`.
    Ask(Addr),
    /// The same again, later.
    Later,
    /// Another node, if there is one; the map may be old.
    Elsewhere,
}

/// Decides on an error of `node`. `repeatable`: may be done twice.
pub(crate) fn decide(error: &Error, node: &Addr, repeatable: bool) -> Next {
    match error {
        Error::Server(error) if error.is_doubt() && repeatable => Next::Elsewhere,
        Error::Server(error) => on_refusal(error, node),
        Error::Connect { .. } => Next::Elsewhere,
        Error::Lost { maybe_done, .. } | Error::Timeout { maybe_done, .. } => {
            if repeatable || !maybe_done {
                Next::Elsewhere
            } else {
                Next::Return
            }
        }
        _ => Next::Return,
    }
}

/// All that is answered to by another attempt says that the command was not done.
fn on_refusal(error: &ServerError, node: &Addr) -> Next {
    let mut words = error.text().split(' ');
    let code = words.next().unwrap_or_default();
    let target = |words: &mut std::str::Split<'_, char>| {
        let slot = words.next()?.parse::<u16>().ok();
        let slot = slot.filter(|&slot| usize::from(slot) < SLOTS)?;
        Some((slot, Addr::parse(words.next()?, node.host())?))
    };
    match code {
        "MOVED" => target(&mut words).map_or(Next::Return, |(slot, to)| Next::Moved(slot, to)),
        "ASK" => target(&mut words).map_or(Next::Return, |(_, to)| Next::Ask(to)),
        "TRYAGAIN" => Next::Later,
        // Another node may know better, or be done with it earlier.
        "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "BEHIND" => Next::Elsewhere,
        _ => Next::Return,
    }
}

/// How long to wait before attempt `attempt` (from 1): doubling from 2 ms to 256 ms, of which a part
/// is chosen by lot (`unit` in `[0, 1)`), so that clients do not come back together.
pub(crate) fn backoff(attempt: u32, unit: f64) -> Duration {
    let longest = 2.0 * f64::from(1u32 << attempt.saturating_sub(1).min(7));
    Duration::from_secs_f64(longest * (0.5 + unit / 2.0) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node() -> Addr {
        Addr::new("10.0.0.1", 7000)
    }

    #[test]
    fn refusals() {
        let check = |text: &str, expected: Next| {
            let error = Error::Server(ServerError::new(text.as_bytes()));
            for repeatable in [false, true] {
                assert_eq!(decide(&error, &node(), repeatable), expected, "{text}");
            }
        };
        check("MOVED 5 h:7001", Next::Moved(5, Addr::new("h", 7001)));
        check("MOVED 5 :7001", Next::Moved(5, Addr::new("10.0.0.1", 7001)));
        check("MOVED 5 ::1:7001", Next::Moved(5, Addr::new("::1", 7001)));
        check("ASK 5 h:7001", Next::Ask(Addr::new("h", 7001)));
        check("MOVED 16384 h:7001", Next::Return);
        check("MOVED 5", Next::Return);
        check("MOVED", Next::Return);
        check("ASK x y", Next::Return);
        check("TRYAGAIN Multiple keys", Next::Later);
        check("CLUSTERDOWN The cluster is down", Next::Elsewhere);
        check("LOADING is loading", Next::Elsewhere);
        check("BEHIND after 500 ms", Next::Elsewhere);
        check("ERR no", Next::Return);
        check("CROSSSLOT no", Next::Return);
        check("", Next::Return);
    }

    #[test]
    fn what_may_have_been_done_is_repeated_only_where_it_may_be() {
        let lost = |maybe_done| Error::Lost {
            node: "n".into(),
            maybe_done,
        };
        let late = |maybe_done| Error::Timeout {
            node: "n".into(),
            maybe_done,
        };
        let unknown = || Error::Server(ServerError::new(b"UNKNOWNRESULT perhaps"));
        assert!(unknown().maybe_done());
        for (error, repeatable, expected) in [
            (lost(true), false, Next::Return),
            (lost(true), true, Next::Elsewhere),
            (lost(false), false, Next::Elsewhere),
            (late(true), false, Next::Return),
            (late(true), true, Next::Elsewhere),
            (late(false), false, Next::Elsewhere),
            (unknown(), false, Next::Return),
            (unknown(), true, Next::Elsewhere),
        ] {
            assert_eq!(decide(&error, &node(), repeatable), expected, "{error}");
        }
    }

    #[test]
    fn waits_grow_and_end() {
        for attempt in 0..200 {
            let wait = backoff(attempt, 0.999);
            assert!(wait >= Duration::from_millis(1) && wait <= Duration::from_millis(256));
        }
        assert!(backoff(5, 0.0) > backoff(2, 0.999));
        assert_ne!(backoff(5, 0.1), backoff(5, 0.9));
    }

    proptest! {
        #[test]
        fn no_refusal_makes_it_panic(text in "(MOVED|ASK)?( [0-9:.a-z\\[\\]-]{0,12}){0,4}") {
            on_refusal(&ServerError::new(text.as_bytes()), &node());
        }
    }
}
