//! The encoding of states: big-endian integers where order matters, otherwise varints of seven bits a byte, low bits
//! first, in their shortest form.

/// Bytes that are not the encoding of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a state of this lattice")
    }
}

impl std::error::Error for Malformed {}

/// A state with an encoding. A state has exactly one encoding.
pub trait Coded: Sized {
    fn encode(&self, out: &mut Vec<u8>);
    /// Decodes a state from all of `bytes`.
    fn decode(bytes: &[u8]) -> Result<Self, Malformed>;

    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (&byte, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(byte)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (&array, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(array)
    }

    pub fn bytes(&mut self, len: u64) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(len).map_err(|_| Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A varint in its shortest form.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || byte == 0 && shift > 0 {
                return Err(Malformed);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    /// The remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_one_form() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            let mut reader = Reader(&bytes);
            assert_eq!(reader.varint(), Ok(number));
            assert_eq!(reader.end(), Ok(()));
            for cut in 0..bytes.len() {
                assert_eq!(Reader(&bytes[..cut]).varint(), Err(Malformed));
            }
        }
        let long = [0x81, 0x00];
        assert_eq!(Reader(&long).varint(), Err(Malformed));
        let wide = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Reader(&wide).varint(), Err(Malformed));
        assert_eq!(Reader(&[0xff; 11]).varint(), Err(Malformed));
    }
}
