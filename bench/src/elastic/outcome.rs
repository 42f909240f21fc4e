//! Which errors a client of a cluster may meet while nodes come and go, and what each says
//! of its request.

use rufous_client::Error;

use super::ledger::{Answer, Outcome};
use crate::client::Reply;

/// No answer: the connection ended.
pub const BROKEN: &str = "connection lost";
/// Nobody listens there.
pub const UNREACHABLE: &str = "cannot connect";

/// Codes that say that nothing was done, and that it may be asked again.
const LATER: [&str; 4] = ["TRYAGAIN", "CLUSTERDOWN", "MOVED", "ASK"];
/// The code of a write that may have been done.
const UNKNOWN: &str = "UNKNOWNRESULT";

/// Whether a client has to be ready for an error of this kind.
pub fn is_retriable(kind: &str) -> bool {
    let code = kind.strip_prefix("given up: ").unwrap_or(kind);
    [BROKEN, UNREACHABLE, UNKNOWN].contains(&code) || LATER.contains(&code)
}

/// What an error reply says, and its kind.
fn refused(text: &str) -> (Outcome, String) {
    let code = text.split(' ').next().unwrap_or_default();
    match code {
        UNKNOWN => (Outcome::Doubt, UNKNOWN.into()),
        _ if LATER.contains(&code) => (Outcome::NotDone, code.into()),
        _ => (Outcome::Answered(Answer::Other(text.into())), text.into()),
    }
}

/// Of a reply at the plain door; with the kind of error, if it is one.
pub fn of_reply(reply: Reply) -> (Outcome, Option<String>) {
    let answer = match reply {
        Reply::Error(text) => {
            let (outcome, kind) = refused(&text);
            return (outcome, Some(kind));
        }
        Reply::Simple(text) if text == "OK" => Answer::Done,
        Reply::Nil => Answer::Nil,
        Reply::Integer(number) => Answer::Number(number),
        Reply::Bulk(text) => Answer::Text(text),
        other => Answer::Other(format!("{other:?}")),
    };
    (Outcome::Answered(answer), None)
}

/// Of what the client that knows the cluster says.
pub fn of_result(result: rufous_client::Result<rufous_client::Value>) -> (Outcome, Option<String>) {
    use rufous_client::Value;
    let error = match result {
        Err(error) => error,
        Ok(value) => {
            let answer = match value {
                Value::Status(text) if text == "OK" => Answer::Done,
                Value::Nil => Answer::Nil,
                Value::Int(number) => Answer::Number(number),
                Value::Bytes(text) => Answer::Text(text),
                other => Answer::Other(format!("{other:?}")),
            };
            return (Outcome::Answered(answer), None);
        }
    };
    let kind = match &error {
        Error::Lost { .. } => BROKEN.to_owned(),
        Error::Connect { .. } => UNREACHABLE.to_owned(),
        Error::Server(error) => refused(error.text()).1,
        Error::GaveUp { last, .. } => {
            let code = last.code().map_or_else(|| last.to_string(), str::to_owned);
            format!("given up: {code}")
        }
        other => other.to_string(),
    };
    let outcome = match () {
        () if error.maybe_done() => Outcome::Doubt,
        () if is_retriable(&kind) => Outcome::NotDone,
        () => Outcome::Answered(Answer::Other(kind.clone())),
    };
    (outcome, Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_whether_it_was_done() {
        let check = |text: &str, outcome: Outcome, retriable| {
            let (found, kind) = of_reply(Reply::Error(text.into()));
            assert_eq!(found, outcome, "{text}");
            assert_eq!(is_retriable(&kind.unwrap()), retriable, "{text}");
        };
        check("TRYAGAIN later", Outcome::NotDone, true);
        check("MOVED 1 h:1", Outcome::NotDone, true);
        check("UNKNOWNRESULT perhaps", Outcome::Doubt, true);
        for text in ["ERR wrong", "CROSSNODE no", "LOADING", ""] {
            check(text, Outcome::Answered(Answer::Other(text.into())), false);
        }
        assert!(is_retriable(BROKEN));
        assert!(!is_retriable("no reply of n in time"));
    }

    #[test]
    fn what_a_client_is_not_sure_of_is_in_doubt() {
        let node = || "n".to_owned();
        let lost = |maybe_done| Error::Lost {
            node: node(),
            maybe_done,
        };
        assert_eq!(of_result(Err(lost(true))).0, Outcome::Doubt);
        assert_eq!(of_result(Err(lost(false))).0, Outcome::NotDone);
        let late = Error::Timeout {
            node: node(),
            maybe_done: true,
        };
        let (outcome, kind) = of_result(Err(late));
        assert_eq!(outcome, Outcome::Doubt);
        assert!(!is_retriable(&kind.unwrap()));
    }
}
