//! A copy of some files of the workspace, to be changed and built elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A folder that holds certain files, and a lockfile that cargo may have written for them.
pub(crate) struct FolderCopy {
    pub(crate) root: PathBuf,
}

impl FolderCopy {
    /// Makes the folder, or brings the one of the last time up to date.
    pub(crate) fn of(root: PathBuf, files: &[(String, Vec<u8>)]) -> Result<Self, Error> {
        let copy = FolderCopy { root };
        let names = files.iter().map(|(name, _)| name.as_str()).collect();
        copy.remove_others(&copy.root, &names)?;
        for (name, content) in files {
            copy.write(name, content)?;
        }
        Ok(copy)
    }

    /// Writes a file unless it is the same already: what keeps its date is not compiled again.
    pub(crate) fn write(&self, file: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.root.join(file);
        if fs::read(&path).is_ok_and(|old| old == content) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::writing(parent))?;
        }
        fs::write(&path, content).map_err(Error::writing(path))
    }

    /// Removes what the files no longer have: cargo would find a forgotten test by itself.
    fn remove_others(&self, dir: &Path, files: &BTreeSet<&str>) -> Result<(), Error> {
        let Ok(entries) = fs::read_dir(dir) else {
            return Ok(());
        };
        for entry in entries {
            let path = entry.map_err(Error::reading(dir))?.path();
            if path.is_dir() {
                self.remove_others(&path, files)?;
            } else {
                let relative = path
                    .strip_prefix(&self.root)
                    .unwrap_or(&path)
                    .to_string_lossy();
                // The lockfile may be one that cargo wrote for the copy.
                if relative != "Cargo.lock" && !files.contains(&*relative) {
                    fs::remove_file(&path).map_err(Error::writing(&path))?;
                }
            }
        }
        Ok(())
    }
}
