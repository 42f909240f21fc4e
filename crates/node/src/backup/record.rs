//! What a backup consists of, as JSON with a checksum of its own.

use anyhow::{Context, Result, bail, ensure};
use rufous_kernel::durable::DataFile;
use serde::{Deserialize, Serialize};

/// The version of this format; others are refused.
const FORMAT: u32 = 1;

/// The file that a start of a node reads first.
pub(crate) const MANIFEST: &str = "manifest";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    format: u32,
    pub id: String,
    /// The instant that the backup shows, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What made it.
    pub version: String,
    pub files: Vec<StoredFile>,
    /// BLAKE3 of this text with nothing here.
    checksum: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    pub name: String,
    /// Of the contents that are stored.
    pub bytes: u64,
    /// Zeros that come after them: files of logs are longer than what is in them.
    pub zeros: u64,
    pub blake3: String,
}

impl Record {
    pub fn new(unix_ms: u64, salt: u16, files: Vec<StoredFile>) -> Self {
        Self {
            format: FORMAT,
            id: format!("{}-{salt:04x}", stamp(unix_ms)),
            unix_ms,
            version: rufous_server::identity::VERSION.into(),
            files,
            checksum: String::new(),
        }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut whole = self.clone();
        whole.checksum = self.sum()?;
        Ok(serde_json::to_vec_pretty(&whole)?)
    }

    fn sum(&self) -> Result<String> {
        let mut bare = self.clone();
        bare.checksum.clear();
        Ok(blake3::hash(&serde_json::to_vec(&bare)?)
            .to_hex()
            .to_string())
    }

    /// Reads what [`Record::encode`] wrote. Destinations are no friends: names
    /// that would lead out of a folder are refused.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let record: Self = serde_json::from_slice(bytes).context("it is not a backup record")?;
        ensure!(
            record.format == FORMAT,
            "it has format {}, and this program knows {FORMAT}: use a newer one",
            record.format
        );
        ensure!(record.checksum == record.sum()?, "its checksum is wrong");
        for file in &record.files {
            if file.name != MANIFEST && DataFile::parse(&file.name).is_none() {
                bail!(
                    "it names a file '{}' that no node has",
                    file.name.escape_debug()
                );
            }
            let is_hash = file.blake3.len() == 64
                && file
                    .blake3
                    .bytes()
                    .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            ensure!(is_hash, "the hash of '{}' is invalid", file.name);
        }
        Ok(record)
    }
}

/// A time as `20260131T235959.000Z`, which sorts by time.
pub(crate) fn stamp(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years, as years begin in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        unix_ms % 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let check = |seconds: u64, text: &str| assert_eq!(stamp(seconds * 1000 + 7), text);
        check(0, "19700101T000000.007Z");
        check(951_782_399, "20000228T235959.007Z");
        check(951_782_400, "20000229T000000.007Z");
        check(1_709_164_800, "20240229T000000.007Z");
        check(1_735_689_599, "20241231T235959.007Z");
        check(4_107_542_400, "21000301T000000.007Z");
    }

    fn record(name: &str) -> Record {
        let files = vec![StoredFile {
            name: name.into(),
            bytes: 7,
            zeros: 9,
            blake3: blake3::hash(b"content").to_hex().to_string(),
        }];
        Record::new(1_000, 0xab, files)
    }

    #[test]
    fn a_list_that_was_changed_anywhere_is_noticed() {
        let record = record(MANIFEST);
        let bytes = record.encode().expect("encoded");
        let again = Record::decode(&bytes).expect("decoded");
        assert_eq!((&again.id, &again.files), (&record.id, &record.files));
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            // Blanks between words may differ; what they say may not.
            if let Ok(found) = Record::decode(&wrong) {
                assert_eq!(found, again, "byte {at}");
            }
            assert!(Record::decode(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn names_lead_nowhere_else() {
        for name in [
            "../x",
            "/etc/passwd",
            "lock",
            "",
            "snap-1-0/../../x",
            "rufous.toml",
        ] {
            let bytes = record(name).encode().expect("encoded");
            assert!(Record::decode(&bytes).is_err(), "{name}");
        }
    }
}
