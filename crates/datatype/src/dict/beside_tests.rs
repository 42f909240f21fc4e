//! Bytes beside values.

use super::Dict;

fn number(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// The bytes beside a value move with it, and are returned only on request.
#[test]
fn what_lies_beside_values_stays_with_them() {
    let mut plain = Dict::new(3);
    for n in 0..300 {
        plain.insert(&number(n), b"");
    }
    let mut dict = plain.widened(8);
    for n in 0..5000 {
        dict.insert_beside(&number(n), &vec![7; n as usize % 200], &number(n));
    }
    for n in (0..5000).filter(|n| n % 5 > 0) {
        dict.remove_with(&number(n), |value| {
            assert_eq!(value.len(), n as usize % 200)
        });
    }
    assert!(dict.overwrite(&number(10), |value| value.fill(8)));
    assert!(dict.set_beside(&number(20), &number(1)) && !dict.set_beside(&number(1), &number(1)));
    dict.insert(&number(30), b"x");
    dict.check();
    for n in (0..5000).step_by(5) {
        let (byte, len) = if n == 10 {
            (8, 10)
        } else {
            (7, n as usize % 200)
        };
        let value = if n == 30 {
            b"x".to_vec()
        } else {
            vec![byte; len]
        };
        let beside = number(match n {
            20 => 1,
            30 => 0,
            _ => n,
        });
        assert_eq!(dict.get_beside(&number(n)), Some((&value[..], &beside[..])));
        assert_eq!(dict.get(&number(n)), Some(&value[..]));
    }
    let longest = |all: &mut dyn Iterator<Item = (&[u8], &[u8])>| all.map(|(_, v)| v.len()).max();
    assert_eq!(longest(&mut dict.iter()), Some(195));
    assert_eq!(
        longest(&mut (0..dict.segments()).flat_map(|n| dict.segment(n))),
        Some(195)
    );
    let mut most = 0;
    assert_eq!(
        dict.scan(0, usize::MAX, &mut |_, v| most = most.max(v.len())),
        0
    );
    assert_eq!(most, 195);
}
