//! Small file systems of their own, where this process may mount them.

use rufous_skip::{Missing, skip};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What takes all room that is left.
const BALLAST: &str = "ballast";

pub(crate) struct Mount {
    /// Where it is mounted.
    root: PathBuf,
    frozen: bool,
    _temporary: Option<tempfile::TempDir>,
}

/// How large a file system's blocks are.
#[derive(Clone, Copy)]
pub(crate) enum Block {
    /// As the pages of the memory that an image may lie in: each finds room as
    /// a whole or not at all.
    Page,
    /// Smaller: several of them, written at once, may find room in part.
    Small,
}

impl Block {
    fn bytes(self) -> &'static str {
        match self {
            Block::Page => "4096",
            Block::Small => "1024",
        }
    }
}

/// Whether the program ran and succeeded; what it complains about is printed.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    match Command::new(program).args(args).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            println!("{program} {}: {}", args.join(" "), text.trim());
            false
        }
        Err(error) => {
            println!("{program}: {error}");
            false
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("names of ours are text")
}

impl Mount {
    /// In memory, with so many KiB. None, with the reason printed, where that
    /// is not permitted.
    pub(crate) fn memory(kib: u64) -> Option<Self> {
        let temporary = tempfile::tempdir().expect("a folder");
        let root = temporary.path().to_path_buf();
        let size = format!("size={kib}k");
        if !succeeds("mount", &["-t", "tmpfs", "-o", &size, "none", text(&root)]) {
            skip(Missing::Permission("permission to mount a tmpfs (root)"));
            return None;
        }
        Some(Self {
            root,
            frozen: false,
            _temporary: Some(temporary),
        })
    }

    /// ext4 on an image, made anew, of so many MiB.
    pub(crate) fn ext4(image: &Path, mib: u64, features: &str) -> Option<Self> {
        Self::ext4_of(Block::Page, image, mib, features)
    }

    pub(crate) fn ext4_of(block: Block, image: &Path, mib: u64, features: &str) -> Option<Self> {
        let file = File::create(image).expect("a file");
        file.set_len(mib << 20).expect("sparse");
        let arguments = [
            "-q",
            "-F",
            "-O",
            features,
            "-E",
            "lazy_itable_init=0",
            "-N",
            "1024",
            "-b",
            block.bytes(),
            text(image),
        ];
        if !succeeds("mkfs.ext4", &arguments) {
            skip(Missing::Program("mkfs.ext4"));
            return None;
        }
        // The tables of the file system lie in front. Where the image is on a disk that fills up,
        // they must have their blocks: what no file system outlives is no test of ours.
        let mut front = std::fs::read(image).expect("made");
        front.truncate(8 << 20);
        let mut file = OpenOptions::new().write(true).open(image).expect("made");
        file.write_all(&front).expect("there is room");
        Self::image(image)
    }

    /// What is on an image already.
    pub(crate) fn image(image: &Path) -> Option<Self> {
        let temporary = tempfile::tempdir().expect("a folder");
        let root = temporary.path().to_path_buf();
        if !succeeds(
            "mount",
            &["-o", "loop,errors=continue", text(image), text(&root)],
        ) {
            skip(Missing::Permission(
                "permission to mount an image (root and loop devices)",
            ));
            return None;
        }
        let mount = Self {
            root,
            frozen: false,
            _temporary: Some(temporary),
        };
        mount.write_by_page();
        Some(mount)
    }

    /// Requests to the loop device are of a page at most: it confirms a larger
    /// one also where only the front of it found room, which no disk does.
    fn write_by_page(&self) {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let mine = |line: &&str| line.split(' ').nth(1) == Some(text(&self.root));
        let device = mounts
            .lines()
            .find(mine)
            .and_then(|line| line.split(' ').next());
        let name = device.and_then(|device| device.strip_prefix("/dev/"));
        let name = name.expect("it is mounted");
        let limit = format!("/sys/block/{name}/queue/max_sectors_kb");
        std::fs::write(limit, "4").expect("who may mount may do so");
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// The folder of the node on it.
    pub(crate) fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// Takes all the room there is.
    pub(crate) fn fill(&self) {
        let path = self.root.join(BALLAST);
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)
            .expect("a file");
        for len in [256 << 10, 4 << 10] {
            let bytes = vec![1; len];
            loop {
                match file.write_all(&bytes) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("cannot fill the disk: {error}"),
                }
            }
        }
    }

    /// Lets go of it.
    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.root.join(BALLAST)).expect("it was filled");
    }

    /// Nothing can be written any more, as after an error that ext4 does not get over.
    pub(crate) fn abort(&self) -> bool {
        succeeds("mount", &["-o", "remount,abort", text(&self.root)])
    }

    pub(crate) fn remount(&self, how: &str) -> bool {
        succeeds(
            "mount",
            &["-o", &format!("remount,{how}"), text(&self.root)],
        )
    }

    /// Writes wait until it thaws.
    pub(crate) fn freeze(&mut self) -> bool {
        self.frozen = succeeds("fsfreeze", &["-f", text(&self.root)]);
        self.frozen
    }

    pub(crate) fn thaw(&mut self) {
        self.frozen = !succeeds("fsfreeze", &["-u", text(&self.root)]);
        assert!(!self.frozen);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.frozen {
            succeeds("fsfreeze", &["-u", text(&self.root)]);
        }
        if !succeeds("umount", &[text(&self.root)]) {
            succeeds("umount", &["-l", text(&self.root)]);
        }
    }
}
