//! Writes zeros beyond a small write, where the file has allocated space that was never
//! written: the small writes that follow then find their pages in the page cache.
//!
//! The first write to a page of a file has to allocate, clear and enter the page. With
//! small writes this happens page by page and costs several times what the copy costs. One
//! write of this size brings large pages, and the space still reads as zeros. It never
//! makes a file longer.

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pwritev};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

/// Writes go ahead up to a multiple of this. Half of it did almost as well, and
/// more nothing but push other things out of a core's cache.
const AHEAD: u64 = 128 * 1024;
static ZEROS: [u8; AHEAD as usize] = [0; AHEAD as usize];

/// Writes all bytes. `ahead` is up to where it is settled whether zeros are
/// written. What is synced at once gains nothing.
pub(super) fn write_all(
    file: &File,
    at: u64,
    bytes: &[u8],
    sync: bool,
    ahead: &mut u64,
) -> io::Result<()> {
    if sync || bytes.len() as u64 >= AHEAD {
        return file.write_all_at(bytes, at);
    }
    let end = at.saturating_add(bytes.len() as u64);
    let Some(until) = end.checked_next_multiple_of(AHEAD).filter(|_| end > *ahead) else {
        return file.write_all_at(bytes, at);
    };
    *ahead = until;
    let zeros = blank(file, end, until)?;
    let all = [IoSlice::new(bytes), IoSlice::new(&ZEROS[..zeros])];
    let written = match pwritev(file, &all, at) {
        Ok(written) => written,
        Err(Errno::INTR) => 0,
        Err(error) => return Err(error.into()),
    };
    match bytes.get(written..) {
        Some(rest) if !rest.is_empty() => file.write_all_at(rest, at + written as u64),
        _ => Ok(()),
    }
}

/// How many bytes from `end` on, up to `until`, are allocated space of the file that
/// was never written.
fn blank(file: &File, end: u64, until: u64) -> io::Result<usize> {
    let until = until.min(file.metadata()?.len());
    if until <= end {
        return Ok(0);
    }
    let until = match seek(file, SeekFrom::Data(end)) {
        Ok(data) => until.min(data),
        Err(Errno::NXIO) => until,
        // Not every file system can tell.
        Err(_) => end,
    };
    Ok(until.saturating_sub(end) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, fallocate};
    use std::os::unix::fs::MetadataExt;

    fn contents(file: &File) -> Vec<u8> {
        let mut all = vec![1; file.metadata().expect("told").len() as usize];
        file.read_exact_at(&mut all, 0).expect("read");
        all
    }

    /// Writes here and to a model, and compares.
    fn same(file: &File, writes: &[(u64, usize)]) -> u64 {
        let (mut model, mut ahead) = (contents(file), 0);
        for (number, &(at, bytes)) in writes.iter().enumerate() {
            let bytes = vec![number as u8 + 1; bytes];
            write_all(file, at, &bytes, false, &mut ahead).expect("written");
            let (at, end) = (at as usize, at as usize + bytes.len());
            model.resize(model.len().max(end), 0);
            model[at..end].copy_from_slice(&bytes);
            assert!(contents(file) == model, "after write {number}");
        }
        ahead
    }

    #[test]
    fn room_reads_as_zeros_and_what_is_there_stays() {
        let file = tempfile::tempfile().expect("made");
        fallocate(&file, FallocateFlags::empty(), 0, 4 * AHEAD).expect("room");
        file.write_all_at(b"there", AHEAD + 5).expect("written");
        let writes = [
            (0, 100),
            (100, 50_000),
            (AHEAD - 10, 20),
            (AHEAD + 10, 60_000),
        ];
        let ahead = same(&file, &writes);
        assert_eq!(ahead, 2 * AHEAD);
        let pages = file.metadata().expect("told").blocks() * 512;
        assert_eq!(pages, 4 * AHEAD, "no room but what was reserved");
        // Behind it, over its end, and over the end of the file.
        same(
            &file,
            &[
                (50, 10),
                (2 * AHEAD - 5, 10),
                (4 * AHEAD - 7, 14),
                (4 * AHEAD + 7, 9),
            ],
        );
    }

    #[test]
    fn a_file_without_room_grows_by_what_is_written() {
        let file = tempfile::tempfile().expect("made");
        same(
            &file,
            &[(0, 100), (100, 7), (107, 3 * AHEAD as usize), (5, 10)],
        );
    }
}
