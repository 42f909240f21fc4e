//! Values of settings as text, with the words of Redis where one is refused.

use std::ops::RangeInclusive;

/// What a setting that is a fact takes: only what it is.
pub fn constant(value: &str, only: &str, why: &str) -> Result<(), String> {
    if value.eq_ignore_ascii_case(only) {
        Ok(())
    } else {
        Err(format!("it can only be '{only}': {why}"))
    }
}

pub fn name_of<T: Copy + PartialEq>(all: &[(T, &'static str)], value: T) -> String {
    all.iter()
        .find(|(known, _)| *known == value)
        .map_or_else(String::new, |(_, name)| (*name).into())
}

pub fn named<T: Copy>(all: &[(T, &'static str)], name: &str) -> Result<T, String> {
    let found = all
        .iter()
        .find(|(_, known)| known.eq_ignore_ascii_case(name));
    found.map(|(value, _)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(_, name)| *name).collect();
        format!(
            "argument(s) must be one of the following: {}",
            names.join(", ")
        )
    })
}

pub fn integer(value: &str, range: RangeInclusive<i64>) -> Result<i64, String> {
    let number: i64 = value
        .parse()
        .map_err(|_| "argument couldn't be parsed into an integer".to_owned())?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(format!(
        "argument must be between {} and {} inclusive",
        range.start(),
        range.end()
    ))
}

pub fn memory(value: &str, min: u64, max: u64) -> Result<u64, String> {
    let bytes = parse_memory(value).ok_or("argument must be a memory value")?;
    if (min..=max).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!(
        "argument must be between {min} and {max} inclusive"
    ))
}

/// A number of bytes with an optional unit: `k`, `m` and `g` count in
/// thousands, `kb`, `mb` and `gb` in 1024s.
pub fn parse_memory(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit: u64 = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

pub fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.into()
}

pub fn parse_yes_no(value: &str) -> Result<bool, String> {
    match value {
        v if v.eq_ignore_ascii_case("yes") => Ok(true),
        v if v.eq_ignore_ascii_case("no") => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_units() {
        let check = |text, bytes| assert_eq!(parse_memory(text), bytes, "{text}");
        check("0", Some(0));
        check("100b", Some(100));
        check("1k", Some(1000));
        check("1kb", Some(1024));
        check("100MB", Some(100 << 20));
        check("1g", Some(1_000_000_000));
        check("1Gb", Some(1 << 30));
        check("", None);
        check("gb", None);
        check("-1", None);
        check("1.5gb", None);
        check("100mb1", None);
        check("99999999999gb", None);
    }
}
