//! Small file systems of their own, where this process may mount them.

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
            println!("SKIPPED: file systems cannot be mounted here (that takes root)");
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
            text(image),
        ];
        if !succeeds("mkfs.ext4", &arguments) {
            println!("SKIPPED: no ext4 can be made here");
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
            println!("SKIPPED: images cannot be mounted here (that takes root and loop devices)");
            return None;
        }
        Some(Self {
            root,
            frozen: false,
            _temporary: Some(temporary),
        })
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
