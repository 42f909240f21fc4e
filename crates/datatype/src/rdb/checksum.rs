//! CRC-64 with the polynomial of Jones, bits reversed, eight bytes at a time: table `n` has the
//! checksums of a byte followed by `n` zeroes.

const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ ((sum & 1) * POLYNOMIAL);
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut zeroes = 1;
    while zeroes < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u64 = tables[zeroes - 1][byte];
            tables[zeroes][byte] = before >> 8 ^ tables[0][before as usize & 255];
            byte += 1;
        }
        zeroes += 1;
    }
    tables
}

pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = 0;
    for word in words {
        let bytes = (sum ^ u64::from_le_bytes(*word)).to_le_bytes();
        sum = 0;
        for (byte, table) in bytes.iter().zip(TABLES.iter().rev()) {
            sum ^= table[usize::from(*byte)];
        }
    }
    for byte in rest {
        sum = sum >> 8 ^ TABLES[0][usize::from(sum as u8 ^ byte)];
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_agree() {
        assert_eq!(checksum(b""), 0);
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let text: Vec<u8> = (0..100).collect();
        let by_byte = |text: &[u8]| {
            text.iter().fold(0u64, |sum, byte| {
                sum >> 8 ^ TABLES[0][usize::from(sum as u8 ^ byte)]
            })
        };
        for len in 0..text.len() {
            assert_eq!(checksum(&text[..len]), by_byte(&text[..len]));
        }
    }
}
