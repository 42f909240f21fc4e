//! Settings of logs and snapshots.
//!
//! Some of Redis's are facts here, which it would be wrong to leave out (tools
//! set them) and wrong to take with another value.

use super::params::Param;
use super::values::{constant, integer, memory, name_of, named, parse_yes_no, yes_no};
use std::fmt::Write;

/// When changes in the log are made to outlive the machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before they are answered.
    Always,
    /// Once a second.
    Everysec,
    /// When the operating system sees fit.
    No,
}

impl AppendFsync {
    pub const ALL: [(AppendFsync, &'static str); 3] = [
        (AppendFsync::Everysec, "everysec"),
        (AppendFsync::Always, "always"),
        (AppendFsync::No, "no"),
    ];
}

/// A snapshot is due after so many seconds with so many changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    pub seconds: u64,
    pub changes: u64,
}

impl SavePoint {
    pub const DEFAULT: [SavePoint; 3] = [
        SavePoint {
            seconds: 3600,
            changes: 1,
        },
        SavePoint {
            seconds: 300,
            changes: 100,
        },
        SavePoint {
            seconds: 60,
            changes: 10_000,
        },
    ];

    fn show(points: &[SavePoint]) -> String {
        let mut text = String::new();
        for point in points {
            let gap = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{gap}{} {}", point.seconds, point.changes);
        }
        text
    }

    fn parse(text: &str) -> Result<Vec<SavePoint>, String> {
        let numbers: Option<Vec<u64>> = text
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let numbers = numbers
            .filter(|all| all.len() % 2 == 0 && all.chunks_exact(2).all(|pair| pair[0] > 0))
            .ok_or("Invalid save parameters")?;
        let points = numbers.chunks_exact(2).map(|pair| SavePoint {
            seconds: pair[0],
            changes: pair[1],
        });
        Ok(points.collect())
    }
}

pub(super) const APPENDFSYNC: Param = Param {
    name: "appendfsync",
    get: |config| name_of(&AppendFsync::ALL, config.appendfsync),
    set: Some(|config, value| {
        config.appendfsync = named(&AppendFsync::ALL, value)?;
        Ok(())
    }),
    help: "When the log is synced to disk: before the reply, once a second, or when the operating system decides. With each of them changes survive a crash of the process.",
};

pub(super) const APPENDONLY: Param = Param {
    name: "appendonly",
    get: |config| yes_no(config.appendonly),
    set: Some(|config, value| {
        let wanted = parse_yes_no(value)?;
        if wanted && !config.folder {
            return Err("the server was started without a data folder".into());
        }
        config.appendonly = wanted;
        Ok(())
    }),
    help: "Whether every change is written to the log.",
};

pub(super) const APPENDFSYNC_MAX_BYTES: Param = Param {
    name: "appendfsync-max-bytes",
    get: |config| config.appendfsync_max_bytes.to_string(),
    set: Some(|config, value| {
        config.appendfsync_max_bytes = memory(value, 64 << 10, 1 << 40)?;
        Ok(())
    }),
    help: "With appendfsync everysec: bytes that a worker acknowledges before they are synced; beyond that, replies to changes wait for the sync.",
};

pub(super) const APPENDFSYNC_MAX_MS: Param = Param {
    name: "appendfsync-max-ms",
    get: |config| config.appendfsync_max_ms.to_string(),
    set: Some(|config, value| {
        config.appendfsync_max_ms = integer(value, 1_000..=3_600_000)? as u64;
        Ok(())
    }),
    help: "With appendfsync everysec: milliseconds for which an acknowledged change is not synced at most; where a sync takes longer, replies to changes wait for it.",
};

pub(super) const SAVE: Param = Param {
    name: "save",
    get: |config| SavePoint::show(&config.save),
    set: Some(|config, value| {
        let points = SavePoint::parse(value)?;
        if !points.is_empty() && !config.folder {
            return Err("the server was started without a data folder".into());
        }
        config.save = points;
        Ok(())
    }),
    help: "Pairs of seconds and changes: a snapshot is taken after that time with at least that many changes; empty: never.",
};

pub(super) const AUTO_AOF_REWRITE_PERCENTAGE: Param = Param {
    name: "auto-aof-rewrite-percentage",
    get: |config| config.auto_aof_rewrite_percentage.to_string(),
    set: Some(|config, value| {
        config.auto_aof_rewrite_percentage = integer(value, 0..=i64::from(i32::MAX))? as u64;
        Ok(())
    }),
    help: "Growth of the log since the last snapshot, in percent, that triggers a snapshot; 0: never.",
};

pub(super) const AUTO_AOF_REWRITE_MIN_SIZE: Param = Param {
    name: "auto-aof-rewrite-min-size",
    get: |config| config.auto_aof_rewrite_min_size.to_string(),
    set: Some(|config, value| {
        config.auto_aof_rewrite_min_size = memory(value, 0, u64::MAX >> 1)?;
        Ok(())
    }),
    help: "Minimum size of the log for auto-aof-rewrite-percentage.",
};

pub(super) const LOG_SEGMENT_SIZE: Param = Param {
    name: "log-segment-size",
    get: |config| config.log_segment_size.to_string(),
    set: Some(|config, value| {
        config.log_segment_size = memory(value, 64 << 10, 4 << 30)?;
        Ok(())
    }),
    help: "Size of one file of the log; each worker reserves one or two.",
};

pub(super) const SNAPSHOT_RETENTION: Param = Param {
    name: "snapshot-retention",
    get: |config| config.snapshot_retention.to_string(),
    set: Some(|config, value| {
        config.snapshot_retention = integer(value, 0..=10_000)? as u64;
        Ok(())
    }),
    help: "Number of earlier saves kept on disk for `rufous saves restore`.",
};

pub(super) const STOP_WRITES_ON_BGSAVE_ERROR: Param = Param {
    name: "stop-writes-on-bgsave-error",
    get: |config| yes_no(config.stop_writes_on_bgsave_error),
    set: Some(|config, value| {
        config.stop_writes_on_bgsave_error = parse_yes_no(value)?;
        Ok(())
    }),
    help: "Whether writes are refused after a snapshot failed, until one succeeds.",
};

/// A setting of Redis's that has one value here.
macro_rules! fact {
    ($constant:ident, $name:literal, $value:literal, $why:literal) => {
        pub(super) const $constant: Param = Param {
            name: $name,
            get: |_| $value.into(),
            set: Some(|_, value| constant(value, $value, $why)),
            help: $why,
        };
    };
}

fact!(
    AOF_LOAD_TRUNCATED,
    "aof-load-truncated",
    "yes",
    "a torn end of a log is cut at the last whole record"
);
fact!(
    AOF_USE_RDB_PREAMBLE,
    "aof-use-rdb-preamble",
    "yes",
    "the log continues from a snapshot"
);
fact!(
    APPENDFILENAME,
    "appendfilename",
    "log",
    "each worker has its own log files, named log-..."
);
fact!(
    DBFILENAME,
    "dbfilename",
    "manifest",
    "a snapshot has a file per worker, and the manifest names them"
);
fact!(
    NO_APPENDFSYNC_ON_REWRITE,
    "no-appendfsync-on-rewrite",
    "no",
    "the log is synced during snapshots as at other times"
);
fact!(
    RDBCHECKSUM,
    "rdbchecksum",
    "yes",
    "everything on disk has a checksum"
);
fact!(
    RDBCOMPRESSION,
    "rdbcompression",
    "no",
    "snapshots are not compressed"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn save_points() {
        let check = |text: &str, shown: Result<&str, ()>| {
            let points = SavePoint::parse(text);
            let found = points.map(|points| SavePoint::show(&points)).map_err(drop);
            assert_eq!(found, shown.map(str::to_owned), "{text}");
        };
        check("3600 1 300 100 60 10000", Ok("3600 1 300 100 60 10000"));
        check(" 5  7 ", Ok("5 7"));
        check("5 0", Ok("5 0"));
        check("", Ok(""));
        check("5", Err(()));
        check("0 5", Err(()));
        check("5 -1", Err(()));
        check("5 x", Err(()));
        assert_eq!(
            SavePoint::show(&Config::default().save),
            "3600 1 300 100 60 10000"
        );
    }

    #[test]
    fn without_a_folder_nothing_can_be_saved() {
        let mut config = Config::in_memory();
        for param in [APPENDONLY, SAVE] {
            let set = param.set.expect("settable");
            for value in ["yes", "60 1"] {
                assert!(set(&mut config, value).is_err(), "{} {value}", param.name);
            }
            assert_eq!(set(&mut config, &(param.get)(&Config::in_memory())), Ok(()));
        }
        assert_eq!(config, Config::in_memory());
    }

    #[test]
    fn whether_a_folder_is_needed() {
        let dir = tempfile::tempdir().expect("a folder");
        let missing = dir.path().join("missing").to_string_lossy().into_owned();
        let config = |appendonly, save: &str, dir: &str| Config {
            appendonly,
            save: SavePoint::parse(save).expect("valid"),
            dir: dir.into(),
            ..Config::default()
        };
        assert!(config(true, "", &missing).wants_folder());
        assert!(config(false, "1 1", &missing).wants_folder());
        assert!(!config(false, "", &missing).wants_folder());
        let there = dir.path().to_string_lossy();
        assert!(config(false, "", &there).wants_folder());
        assert!(!Config::in_memory().wants_folder());
    }
}
