//! Where logs go, what a line looks like, and how much is logged.
//!
//! The level changes while the node runs (`CONFIG SET loglevel`); the file is
//! opened anew at SIGHUP, so that others can move it away.

use rufous_server::config::{Config, LogFormat, LogLevel};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// The log of this process.
#[derive(Clone)]
pub(super) struct Log {
    filter: reload::Handle<Targets, Registry>,
    file: Option<LogFile>,
}

/// Starts logging. To be called once.
pub(super) fn start(config: &Config) -> io::Result<Log> {
    let (filter, handle) = reload::Layer::new(targets(config.loglevel));
    let file = match config.logfile.as_str() {
        "" => None,
        path => Some(LogFile::open(Path::new(path))?),
    };
    let writer = match &file {
        Some(file) => Writer::File(file.clone()),
        None => Writer::StandardError,
    };
    let colours = file.is_none() && io::stderr().is_terminal();
    let layer = fmt::layer().with_writer(writer).with_ansi(colours);
    let layer = match config.log_format {
        LogFormat::Text => layer.with_target(false).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(filter.and_then(layer))
        .try_init()
        .map_err(io::Error::other)?;
    Ok(Log {
        filter: handle,
        file,
    })
}

impl Log {
    pub(super) fn set_level(&self, level: LogLevel) {
        if self.filter.reload(targets(level)).is_err() {
            tracing::warn!("cannot change the log level");
        }
    }

    /// Opens the file anew; the old one stays in use where that fails.
    pub(super) fn reopen(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), LogFile::reopen)
    }
}

/// What is logged at a level: ours from that level on, of others at most warnings.
fn targets(level: LogLevel) -> Targets {
    let ours = match level {
        LogLevel::Debug => LevelFilter::TRACE,
        LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    };
    Targets::new()
        .with_target("rufous", ours)
        .with_default(ours.min(LevelFilter::WARN))
}

/// A file that lines are appended to.
#[derive(Clone)]
struct LogFile {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        // Absolute, so that it stays the same file wherever the process goes.
        let path = std::path::absolute(path)?;
        Ok(Self {
            file: Arc::new(Mutex::new(append_to(&path)?)),
            path,
        })
    }

    fn reopen(&self) -> io::Result<()> {
        let file = append_to(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

enum Writer {
    StandardError,
    File(LogFile),
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Box<dyn Write + 'a>;

    fn make_writer(&'a self) -> Self::Writer {
        match self {
            Writer::StandardError => Box::new(io::stderr()),
            Writer::File(file) => Box::new(file.clone()),
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn levels() {
        let check = |level, ours: &[Level], others: &[Level]| {
            for each in [
                Level::TRACE,
                Level::DEBUG,
                Level::INFO,
                Level::WARN,
                Level::ERROR,
            ] {
                let targets = targets(level);
                assert_eq!(
                    targets.would_enable("rufous_server::node", &each),
                    ours.contains(&each),
                    "{level:?} {each}"
                );
                assert_eq!(
                    targets.would_enable("hyper", &each),
                    others.contains(&each),
                    "{level:?} {each}"
                );
            }
        };
        let (t, d, i, w, e) = (
            Level::TRACE,
            Level::DEBUG,
            Level::INFO,
            Level::WARN,
            Level::ERROR,
        );
        check(LogLevel::Debug, &[t, d, i, w, e], &[w, e]);
        check(LogLevel::Verbose, &[d, i, w, e], &[w, e]);
        check(LogLevel::Notice, &[i, w, e], &[w, e]);
        check(LogLevel::Warning, &[w, e], &[w, e]);
        check(LogLevel::Nothing, &[], &[]);
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("log");
        let mut log = LogFile::open(&path)?;
        log.write_all(b"one\n")?;
        std::fs::rename(&path, dir.path().join("old"))?;
        log.write_all(b"two\n")?;
        log.reopen()?;
        log.write_all(b"three\n")?;
        assert_eq!(
            std::fs::read_to_string(dir.path().join("old"))?,
            "one\ntwo\n"
        );
        assert_eq!(std::fs::read_to_string(&path)?, "three\n");
        Ok(())
    }
}
