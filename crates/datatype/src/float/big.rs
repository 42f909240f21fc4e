//! Natural numbers of any size: the little arithmetic that exact conversion between decimal and binary needs.

use std::cmp::Ordering;

use super::round::Binary;

/// Least limb first, the last limb not 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Big(Vec<u32>);

impl Big {
    pub(super) fn from_u64(value: u64) -> Self {
        let mut big = Self(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }

    /// From decimal digits, which must all be digits.
    pub(super) fn from_digits<'a>(digits: impl Iterator<Item = &'a u8>) -> Self {
        let mut big = Self::default();
        let (mut pending, mut scale) = (0, 1);
        for digit in digits {
            pending = pending * 10 + u32::from(digit - b'0');
            scale *= 10;
            if scale == 1_000_000_000 {
                big.mul_add(scale, pending);
                (pending, scale) = (0, 1);
            }
        }
        big.mul_add(scale, pending);
        big
    }

    pub(super) fn mul_pow5(&mut self, mut exp: u32) {
        const FIVE_TO_13: u32 = 5u32.pow(13);
        while exp >= 13 {
            self.mul_add(FIVE_TO_13, 0);
            exp -= 13;
        }
        self.mul_add(5u32.pow(exp), 0);
    }

    fn mul_add(&mut self, factor: u32, addend: u32) {
        let mut carry = addend;
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + u64::from(carry);
            *limb = product as u32;
            carry = (product >> 32) as u32;
        }
        if carry != 0 {
            self.0.push(carry);
        }
    }

    pub(super) fn shl(&mut self, bits: u32) {
        let carry_bits = bits % 32;
        if carry_bits != 0 {
            self.mul_add(1 << carry_bits, 0);
        }
        if !self.0.is_empty() {
            self.0
                .splice(0..0, std::iter::repeat_n(0, (bits / 32) as usize));
        }
    }

    fn bit_len(&self) -> u32 {
        self.0
            .last()
            .map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_len = self.0.len().cmp(&other.0.len());
        by_len.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (index, limb) in self.0.iter_mut().enumerate() {
            let (value, first) = limb.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (value, second) = value.overflowing_sub(u32::from(borrow));
            *limb = value;
            borrow = first || second;
        }
        debug_assert!(!borrow);
        self.trim();
    }

    /// The value × 2^`exp`, cut to its top 128 bits.
    pub(super) fn to_binary(&self, exp: i32) -> Binary {
        let top = self.0.len().saturating_sub(4);
        let bits = self.0[top..]
            .iter()
            .rev()
            .fold(0u128, |bits, &limb| bits << 32 | u128::from(limb));
        // At least 97 bits are kept when anything is cut, so the remainder is sticky in the sense of `Binary`.
        let sticky = self.0[..top].iter().any(|&limb| limb != 0);
        Binary {
            bits,
            sticky,
            exp: exp + 32 * top as i32,
        }
    }

    /// The quotient × 2^`exp`, to 68 or more bits. Neither number may be 0.
    pub(super) fn divide(mut self, mut divisor: Self, exp: i32) -> Binary {
        const STEPS: i32 = 70;
        let shift = self.bit_len() as i32 - divisor.bit_len() as i32;
        if shift > 0 {
            divisor.shl(shift.unsigned_abs());
        } else {
            self.shl(shift.unsigned_abs());
        }
        let mut bits = 0u128;
        for _ in 0..STEPS {
            bits <<= 1;
            if self.compare(&divisor).is_ge() {
                self.subtract(&divisor);
                bits |= 1;
            }
            self.mul_add(2, 0);
        }
        Binary {
            bits,
            sticky: !self.0.is_empty(),
            exp: exp + shift - (STEPS - 1),
        }
    }

    /// Appends the decimal digits.
    pub(super) fn write_decimal(mut self, out: &mut Vec<u8>) {
        const CHUNK: u64 = 1_000_000_000;
        let mut chunks = Vec::with_capacity(self.0.len() * 32 / 29 + 1);
        while !self.0.is_empty() {
            let mut rest = 0u64;
            for limb in self.0.iter_mut().rev() {
                let value = rest << 32 | u64::from(*limb);
                *limb = (value / CHUNK) as u32;
                rest = value % CHUNK;
            }
            self.trim();
            chunks.push(rest as u32);
        }
        let mut buffer = itoa::Buffer::new();
        out.extend_from_slice(buffer.format(chunks.pop().unwrap_or(0)).as_bytes());
        for chunk in chunks.into_iter().rev() {
            let digits = buffer.format(chunk).as_bytes();
            out.resize(out.len() + 9 - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn big(value: u128) -> Big {
        Big::from_digits(value.to_string().as_bytes().iter())
    }

    fn decimal(value: Big) -> String {
        let mut out = Vec::new();
        value.write_decimal(&mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn digits_survive(digits in "0|[1-9][0-9]{0,200}") {
            prop_assert_eq!(decimal(Big::from_digits(digits.as_bytes().iter())), digits);
        }

        #[test]
        fn multiplies_and_shifts(value: u32, fives in 0u32..20, shift in 0u32..48) {
            let mut product = Big::from_u64(u64::from(value));
            product.mul_pow5(fives);
            product.shl(shift);
            prop_assert_eq!(decimal(product), ((u128::from(value) * 5u128.pow(fives)) << shift).to_string());
        }

        #[test]
        fn divides(a in 1u128.., b in 1u128..) {
            let Binary { bits, sticky, exp } = big(a).divide(big(b), 0);
            prop_assert!(128 - bits.leading_zeros() >= 69);
            // bits × b × 2^exp ≤ a < (bits + 1) × b × 2^exp, with equality exactly if nothing is left over.
            let scaled = |bits: u128| -> (Big, Big) {
                let (mut product, mut dividend) = (Big::default(), big(a));
                for bit in (0..128).rev() {
                    product.shl(1);
                    if bits >> bit & 1 == 1 {
                        product = big_add(product, &big(b));
                    }
                }
                if exp > 0 { product.shl(exp as u32) } else { dividend.shl(exp.unsigned_abs()) }
                (product, dividend)
            };
            let (low, dividend) = scaled(bits);
            prop_assert_eq!(low.compare(&dividend), if sticky { Ordering::Less } else { Ordering::Equal });
            let (high, dividend) = scaled(bits + 1);
            prop_assert_eq!(high.compare(&dividend), Ordering::Greater);
        }
    }

    fn big_add(mut a: Big, b: &Big) -> Big {
        let mut carry = 0u64;
        a.0.resize(a.0.len().max(b.0.len()) + 1, 0);
        for (index, limb) in a.0.iter_mut().enumerate() {
            let sum = u64::from(*limb) + u64::from(b.0.get(index).copied().unwrap_or(0)) + carry;
            *limb = sum as u32;
            carry = sum >> 32;
        }
        a.trim();
        a
    }
}
