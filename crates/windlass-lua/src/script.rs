//! Where Lua code comes from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ScriptError;

/// Lua code, with its name and the folder that its modules come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// As in error messages.
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    /// None: it is only a text.
    pub(crate) path: Option<PathBuf>,
    /// The folder of modules; none for a text.
    pub(crate) root: Option<PathBuf>,
}

impl Script {
    /// A text, which has no modules.
    pub fn text(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Script {
        Script {
            name: name.into(),
            text: text.into(),
            path: None,
            root: None,
        }
    }

    /// A file; its modules are in its own folder. Blocks.
    pub fn file(path: impl AsRef<Path>) -> Result<Script, ScriptError> {
        let path = path.as_ref();
        let real = path.canonicalize().map_err(|error| failed(path, &error))?;
        let root = real.parent().map(Path::to_owned).unwrap_or_default();
        Script::read(&real, &root)
    }

    /// Another file of the same folder, or below. Blocks.
    pub(crate) fn sibling(root: &Path, name: &str) -> Result<Script, ScriptError> {
        let named = root.join(name);
        let real = named
            .canonicalize()
            .map_err(|error| failed(&named, &error))?;
        if !real.starts_with(root) {
            return Err(ScriptError::Outside {
                path: name.into(),
                root: root.to_owned(),
            });
        }
        Script::read(&real, root)
    }

    /// A module: `a.b` is `a/b.lua`, or `a/b/init.lua`. Blocks.
    pub(crate) fn module(root: &Path, name: &str) -> Result<Script, ScriptError> {
        let path = name.replace('.', "/");
        let first = Script::sibling(root, &format!("{path}.lua"));
        match first {
            Err(ScriptError::File { .. }) => {
                Script::sibling(root, &format!("{path}/init.lua")).or(first)
            }
            found => found,
        }
    }

    fn read(real: &Path, root: &Path) -> Result<Script, ScriptError> {
        let bytes = fs::read(real).map_err(|error| failed(real, &error))?;
        let text = String::from_utf8(bytes).map_err(|_| ScriptError::NotText {
            path: real.to_owned(),
        })?;
        let name = real
            .strip_prefix(root)
            .unwrap_or(real)
            .display()
            .to_string();
        Ok(Script {
            name: name.into(),
            text: text.into(),
            path: Some(real.to_owned()),
            root: Some(root.to_owned()),
        })
    }

    /// The same script with another text.
    pub(crate) fn changed(&self, text: &str) -> Script {
        Script {
            text: text.into(),
            ..self.clone()
        }
    }

    /// As Lua names it in messages.
    pub(crate) fn chunk_name(&self) -> String {
        format!("@{}", self.name)
    }

    /// Its text, without the first line if that is for the system.
    pub(crate) fn code(&self) -> &str {
        match self.text.starts_with('#') {
            // The line stays, empty, so that numbers are right.
            true => self.text.find('\n').map_or("", |end| &self.text[end..]),
            false => &self.text,
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> ScriptError {
    ScriptError::File {
        path: path.to_owned(),
        message: error.to_string(),
    }
}
