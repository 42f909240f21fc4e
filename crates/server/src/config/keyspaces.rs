//! Keyspaces as text: the options of `KEYSPACE CREATE` and `ALTER`, which are
//! the keys of a `[[keyspace]]` table in the configuration file.

use rufous_kernel::keyspace::{Keyspace, Keyspaces, Regime, Resolve};
use rufous_kernel::replicate::level::Level;

/// What can be said of a keyspace beside its name, as the file spells it.
pub const OPTIONS: [&str; 9] = [
    "prefix",
    "regime",
    "level",
    "threads",
    "replicas",
    "resolve",
    "cut",
    "evict",
    "gossip-ms",
];

const RESOLVERS: [(Resolve, &str); 4] = [
    (Resolve::Newest, "newest"),
    (Resolve::Largest, "largest"),
    (Resolve::Smallest, "smallest"),
    (Resolve::Refuse, "refuse"),
];

/// Sets an option of a keyspace.
pub fn set(keyspace: &mut Keyspace, option: &str, value: &[u8]) -> Result<(), String> {
    let text = || std::str::from_utf8(value).map_err(|_| format!("{option} is text"));
    let is = |word: &str| value.eq_ignore_ascii_case(word.as_bytes());
    match option {
        "prefix" => keyspace.prefix = value.into(),
        "regime" if is("lattice") => keyspace.regime = Regime::Lattice,
        "regime" if is("strict") => keyspace.regime = Regime::Strict,
        "regime" => return Err("the regime is 'lattice' or 'strict'".into()),
        "level" => keyspace.level = text()?.parse::<Level>().map_err(|e| e.to_string())?,
        "threads" if is("all") => keyspace.threads = 0,
        "threads" => {
            let threads = number(value).filter(|n| *n > 0);
            keyspace.threads = threads.ok_or("threads are 'all' or a number from 1 to 65535")?;
        }
        "replicas" => {
            keyspace.replicas = number(value).ok_or("replicas are a number from 1 to 65535")?;
        }
        "resolve" => {
            let found = RESOLVERS.iter().find(|(_, word)| is(word));
            let resolve = found.map(|(resolve, _)| *resolve);
            keyspace.resolve = resolve.ok_or(
                "of concurrent values a plain read shows the 'newest', 'largest' or 'smallest', \
                 or 'refuse's",
            )?;
        }
        "cut" if is("yes") => keyspace.cut = true,
        "cut" if is("no") => keyspace.cut = false,
        "cut" => return Err("cut is 'yes' or 'no'".into()),
        "evict" if is("yes") => keyspace.evict = true,
        "evict" if is("no") => keyspace.evict = false,
        "evict" => return Err("evict is 'yes' or 'no'".into()),
        "gossip-ms" => {
            let period = number(value).ok_or("gossip-ms is a number from 1 to 60000")?;
            keyspace.gossip_ms = period;
        }
        _ => return Err(format!("a keyspace has no '{option}'")),
    }
    Ok(())
}

fn number<T: TryFrom<i64>>(value: &[u8]) -> Option<T> {
    let number = rufous_command::options::integer(value).ok()?;
    T::try_from(number).ok()
}

/// The options of a keyspace, as [`set`] takes them.
pub fn options(keyspace: &Keyspace) -> [(&'static str, Vec<u8>); 9] {
    let yes_no = |is: bool| if is { "yes" } else { "no" };
    let values: [Vec<u8>; 9] = [
        keyspace.prefix.to_vec(),
        match keyspace.regime {
            Regime::Lattice => "lattice",
            Regime::Strict => "strict",
        }
        .into(),
        keyspace.level.to_string().into(),
        match keyspace.threads {
            0 => "all".into(),
            threads => threads.to_string().into(),
        },
        keyspace.replicas.to_string().into(),
        RESOLVERS
            .iter()
            .find(|(resolve, _)| *resolve == keyspace.resolve)
            .map_or("newest", |(_, word)| word)
            .into(),
        yes_no(keyspace.is_cut()).into(),
        yes_no(keyspace.evict).into(),
        keyspace.gossip_ms.to_string().into(),
    ];
    let mut values = values.into_iter();
    OPTIONS.map(|name| (name, values.next().unwrap_or_default()))
}

/// Why options that were given do not go together, whatever else the keyspace has.
pub fn contradiction(keyspace: &Keyspace, is_cut_given: bool) -> Option<String> {
    let is_weaker = is_cut_given && !keyspace.cut && keyspace.level.is_ordered();
    is_weaker.then(|| {
        let level = keyspace.level;
        format!("LEVEL {level} promises an order of writes to several keys, which needs CUT yes: leave CUT out, or take another level")
    })
}

/// A table with one more, or with it in the place of the one of its name.
pub fn declared(table: &Keyspaces, keyspace: Keyspace) -> Result<Keyspaces, String> {
    let next = match table.get(&keyspace.name) {
        Some(_) => table.altered(keyspace),
        None => table.with(keyspace),
    };
    next.map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_can_be_set_again() {
        let mut keyspace = Keyspace::new("carts", b"cart:");
        for (option, value) in [
            ("regime", "LATTICE"),
            ("level", "monotonic-reads+monotonic-writes"),
            ("threads", "all"),
            ("cut", "yes"),
            ("evict", "no"),
            ("gossip-ms", "7"),
        ] {
            set(&mut keyspace, option, value.as_bytes()).unwrap();
        }
        let mut again = Keyspace::new("carts", b"");
        for (option, value) in options(&keyspace) {
            set(&mut again, option, &value).unwrap();
        }
        assert_eq!(again, keyspace);
        assert!(declared(&Keyspaces::default(), again).is_ok());
    }

    #[test]
    fn nonsense_is_refused() {
        let mut keyspace = Keyspace::new("carts", b"cart:");
        let before = keyspace.clone();
        for (option, value) in [
            ("regime", "loose"),
            ("level", "serializable"),
            ("level", "\u{0}"),
            ("threads", "0"),
            ("threads", "-1"),
            ("threads", "65536"),
            ("replicas", "many"),
            ("resolve", "oldest"),
            ("cut", "1"),
            ("evict", "later"),
            ("gossip-ms", "99999999999999999999"),
            ("tier", "cold"),
        ] {
            let refused = set(&mut keyspace, option, value.as_bytes());
            assert!(refused.is_err(), "{option} {value}");
        }
        assert!(set(&mut keyspace, "level", b"\xFF").is_err());
        assert_eq!(keyspace, before);
        set(&mut keyspace, "resolve", b"Smallest").unwrap();
        keyspace.regime = Regime::Lattice;
        let refused = declared(&Keyspaces::default(), keyspace.clone()).unwrap_err();
        assert!(refused.contains("causal"), "{refused}");
        for (option, value) in [("level", "causal"), ("threads", "all"), ("cut", "yes")] {
            set(&mut keyspace, option, value.as_bytes()).unwrap();
        }
        let table = declared(&Keyspaces::default(), keyspace.clone()).unwrap();
        let mut again = Keyspace::new("carts", b"");
        for (option, value) in options(&keyspace) {
            set(&mut again, option, &value).unwrap();
        }
        assert_eq!(table.get("carts"), Some(&again));
    }
}
