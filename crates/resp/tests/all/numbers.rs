//! Integers and doubles as text.

use proptest::prelude::*;
use rufous_resp::{format_double, parse_integer};

#[track_caller]
fn check_double(value: f64, expected: &str) {
    assert_eq!(format_double(value).as_str(), expected);
}

#[test]
fn doubles() {
    check_double(3.0, "3");
    check_double(0.0, "0");
    check_double(-0.0, "-0");
    check_double(0.1, "0.1");
    check_double(-1.5, "-1.5");
    check_double(std::f64::consts::PI, "3.141592653589793");
    check_double(1e15, "1000000000000000");
    check_double(1e16, "10000000000000000");
    check_double(1e17, "1e+17");
    check_double(1e21, "1e+21");
    check_double(-1.25e100, "-1.25e+100");
    check_double(0.0001, "0.0001");
    check_double(0.00012, "0.00012");
    check_double(0.00001, "1e-05");
    check_double(1.5e-10, "1.5e-10");
    check_double(f64::MAX, "1.7976931348623157e+308");
    check_double(f64::MIN_POSITIVE, "2.2250738585072014e-308");
    check_double(5e-324, "5e-324");
    check_double(123456.789, "123456.789");
    // Exact, as %.17g has it; the shortest digits would be 36028797018963970.
    check_double(36028797018963968.0, "36028797018963968");
    check_double(f64::INFINITY, "inf");
    check_double(f64::NEG_INFINITY, "-inf");
    check_double(f64::NAN, "nan");
}

proptest! {
    #[test]
    fn doubles_read_back(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = format_double(value);
        prop_assert_eq!(text.as_str().parse::<f64>().unwrap().to_bits(), bits);
        prop_assert!(text.len() <= 24);
    }

    #[test]
    fn decimal_fractions_print_as_written(whole in 0u32..1_000_000, cents in 1u32..100) {
        let written = format!("{whole}.{cents:02}");
        let value: f64 = written.parse().unwrap();
        let text = format_double(value);
        prop_assert_eq!(text.as_str(), written.trim_end_matches('0'));
    }

    #[test]
    fn integers_read_back(value in any::<i64>()) {
        prop_assert_eq!(parse_integer(value.to_string().as_bytes()), Some(value));
    }

    #[test]
    fn only_the_canonical_form_is_an_integer(text in "[-+ ]?[0-9]{0,20}[x ]?") {
        let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
        prop_assert_eq!(parse_integer(text.as_bytes()), canonical);
    }
}

#[test]
fn integers_at_the_edges() {
    for (text, expected) in [
        ("0", Some(0)),
        ("-1", Some(-1)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("9999999999999999999", None),
        ("99999999999999999999", None),
        ("-0", None),
        ("", None),
        ("-", None),
    ] {
        assert_eq!(parse_integer(text.as_bytes()), expected, "{text:?}");
    }
}
