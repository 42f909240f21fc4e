//! All settings are options, in one of the groups, and refuse what they cannot be.

use super::*;
use rufous_server::config::params::PARAMS;
use rufous_server::config::values::name_of;

#[test]
fn every_option_is_a_setting_that_takes_what_it_shows() {
    let config = Config {
        unixsocketperm: 0o750,
        ..Config::default()
    };
    for option in OPTIONS {
        let param = params::find(option.name.as_bytes());
        let shown = param
            .map(|param| (param.get)(&config))
            .unwrap_or_else(|| panic!("{}", option.name));
        let set = setter(option.name).unwrap_or_else(|| panic!("{} cannot be set", option.name));
        let mut changed = config.clone();
        assert_eq!(set(&mut changed, &shown), Ok(()), "{}", option.name);
        assert_eq!(changed, config, "{}", option.name);
    }
}

/// A new setting must either become an option or be a fact.
#[test]
fn settings_that_are_no_options_are_facts() {
    let facts: Vec<_> = PARAMS
        .iter()
        .map(|p| p.name)
        .filter(|name| find(name).is_none())
        .collect();
    for name in facts {
        let config = Config::default();
        let mut changed = config.clone();
        for value in ["1", "7", "yes", "no", ""] {
            let _ = setter(name).map(|set| set(&mut changed, value));
        }
        assert_eq!(
            changed, config,
            "{name} changes something: make it an option"
        );
    }
}

#[test]
fn what_was_meant() {
    let check = |name: &str, meant| assert_eq!(nearest(name), meant, "{name}");
    check("prot", Some("port"));
    check("max-clients", Some("maxclients"));
    check("slowlog_max_len", Some("slowlog-max-len"));
    check("requierpass", Some("requirepass"));
    check("LogLevel", Some("loglevel"));
    check("replicaof", None);
    check("", None);
}

#[test]
fn distances() {
    let check = |a, b, expected| assert_eq!((distance(a, b), distance(b, a)), (expected, expected));
    check("", "", 0);
    check("", "abc", 3);
    check("port", "port", 0);
    check("prot", "port", 2);
    check("bind", "bin", 1);
    check("flaw", "lawn", 2);
}

#[test]
fn refusals() {
    let check = |name: &str, value: &str, why: &str| {
        let mut config = Config::default();
        let error = setter(name).map(|set| set(&mut config, value));
        assert!(
            matches!(&error, Some(Err(text)) if text.contains(why)),
            "{name} {value}: {error:?}"
        );
        assert_eq!(config, Config::default());
    };
    check("port", "65536", "between 0 and 65535");
    check("port", "x", "integer");
    check("workers", "0", "between 1 and");
    check("unixsocketperm", "900", "octal");
    check("unixsocketperm", "1777", "octal");
    check("unixsocket", &"x".repeat(108), "107 bytes");
    check("bind", "127.0.0.1 -", "missing");
    check("pin", "maybe", "'yes' or 'no'");
    check("log-format", "xml", "text, json");
    check(
        "loglevel",
        "loud",
        "debug, verbose, notice, warning, nothing",
    );
    check("dir", "", "empty");
    check("tls-port", "70000", "between 0 and 65535");
    check("tls-protocols", "SSLv3", "TLSv1.2 and TLSv1.3");
    check("tls-auth-clients", "maybe", "yes, no, optional");
    check("admin-bind", " ", "empty");
}

#[test]
fn names_of_variables() {
    assert_eq!(variable("slowlog-max-len"), "RUFOUS_SLOWLOG_MAX_LEN");
    assert_eq!(name_of(&LogLevel::ALL, LogLevel::Notice), "notice");
}
