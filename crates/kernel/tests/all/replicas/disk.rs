//! A disk that does at once what it is asked for, and never fails.

use rufous_base::disk::{
    DiskDone, DiskError, DiskErrorKind, DiskOp, DiskReply, DiskRequest, FileInfo, FileName,
};
use std::collections::BTreeMap;

/// Does it, and says what became of it.
pub(crate) fn carry_out(files: &mut BTreeMap<FileName, Vec<u8>>, request: DiskRequest) -> DiskDone {
    let missing = || DiskError {
        kind: DiskErrorKind::NotFound,
        text: "no such file".into(),
        bytes: Vec::new(),
    };
    let result = match request.op {
        DiskOp::Create { file, reserve } => {
            files.insert(file, vec![0; reserve as usize]);
            Ok(DiskReply::Done)
        }
        DiskOp::Write {
            file, at, bytes, ..
        } => match files.get_mut(&file) {
            Some(content) => {
                let (at, end) = (at as usize, at as usize + bytes.len());
                content.resize(content.len().max(end), 0);
                content[at..end].copy_from_slice(&bytes);
                Ok(DiskReply::Wrote(bytes))
            }
            None => Err(missing()),
        },
        DiskOp::Sync { .. } | DiskOp::SyncNames => Ok(DiskReply::Done),
        DiskOp::Rename { from, to } => match files.remove(&from) {
            Some(content) => {
                files.insert(to, content);
                Ok(DiskReply::Done)
            }
            None => Err(missing()),
        },
        DiskOp::Remove { file } => {
            files.remove(&file);
            Ok(DiskReply::Done)
        }
        DiskOp::Truncate { file, bytes } => match files.get_mut(&file) {
            Some(content) => {
                content.resize(bytes as usize, 0);
                Ok(DiskReply::Done)
            }
            None => Err(missing()),
        },
        DiskOp::Read { file, at, bytes } => match files.get(&file) {
            Some(content) => {
                let at = (at as usize).min(content.len());
                let end = at.saturating_add(bytes).min(content.len());
                Ok(DiskReply::Read(content[at..end].to_vec()))
            }
            None => Err(missing()),
        },
        DiskOp::List => {
            let info = |(file, content): (&FileName, &Vec<u8>)| FileInfo {
                file: file.clone(),
                bytes: content.len() as u64,
            };
            Ok(DiskReply::Files(files.iter().map(info).collect()))
        }
    };
    DiskDone {
        id: request.id,
        result,
    }
}
