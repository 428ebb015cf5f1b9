//! What scripts may reach.

use std::path::{Component, Path, PathBuf};

use crate::error::BuildError;

/// What scripts may reach beside each other: nothing, unless this says so.
///
/// ```
/// use windlass_lua::Sandbox;
///
/// let sandbox = Sandbox::new().allow_net("api.example.org").allow_env();
/// # let _ = sandbox;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    directories: Vec<PathBuf>,
    hosts: Vec<String>,
    env: bool,
}

impl Sandbox {
    /// Allows nothing at all.
    pub fn new() -> Sandbox {
        Sandbox::default()
    }

    /// Files in this directory, and below: reading and writing.
    pub fn allow_fs(mut self, directory: impl Into<PathBuf>) -> Sandbox {
        self.directories.push(directory.into());
        self
    }

    /// Requests to this host: a name, `name:port`, `.domain` for all names that end so, or `*` for
    /// all.
    pub fn allow_net(mut self, host: impl Into<String>) -> Sandbox {
        self.hosts.push(host.into());
        self
    }

    /// Variables of the environment.
    pub fn allow_env(mut self) -> Sandbox {
        self.env = true;
        self
    }

    /// With the real places of its directories.
    pub(crate) fn resolved(mut self) -> Result<Sandbox, BuildError> {
        for directory in &mut self.directories {
            *directory = directory
                .canonicalize()
                .map_err(|error| BuildError::Directory {
                    path: directory.clone(),
                    message: error.to_string(),
                })?;
        }
        Ok(self)
    }

    pub(crate) fn allows_env(&self) -> bool {
        self.env
    }

    /// Whether requests may go to this host.
    pub(crate) fn check_host(&self, host: &str, port: Option<u16>) -> Result<(), String> {
        let with_port = port.map(|port| format!("{host}:{port}"));
        let fits = |allowed: &String| {
            allowed == "*"
                || allowed == host
                || Some(allowed) == with_port.as_ref()
                || (allowed.starts_with('.') && host.ends_with(allowed.as_str()))
        };
        match self.hosts.iter().any(fits) {
            true => Ok(()),
            false => Err(format!(
                "the sandbox does not allow requests to {host}: allow it with --allow-net {host}"
            )),
        }
    }

    /// The real place of a file that scripts name, if they may use it. Blocks: links are followed.
    pub(crate) fn check_path(&self, root: &Path, path: &str) -> Result<PathBuf, String> {
        let named = root.join(path);
        let real = resolve(&named).map_err(|error| format!("{path}: {error}"))?;
        match self
            .directories
            .iter()
            .any(|allowed| real.starts_with(allowed))
        {
            true => Ok(real),
            false => Err(format!(
                "the sandbox does not allow {path}: allow its directory with --allow-fs DIR"
            )),
        }
    }
}

/// The real place of a file that may not be there yet: of the part that is there, and the rest.
fn resolve(path: &Path) -> Result<PathBuf, String> {
    let mut rest = Vec::new();
    let mut there = path;
    loop {
        match there.canonicalize() {
            Ok(mut real) => {
                real.extend(rest.iter().rev());
                return Ok(real);
            }
            Err(error) => {
                // A link to nothing is there, and leads who knows where.
                if there.is_symlink() {
                    return Err(error.to_string());
                }
                match (there.components().next_back(), there.parent()) {
                    (Some(Component::Normal(name)), Some(parent)) => {
                        rest.push(name.to_owned());
                        there = parent;
                    }
                    _ => return Err(error.to_string()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let sandbox = Sandbox::new()
            .allow_net("a.org")
            .allow_net(".b.org")
            .allow_net("c.org:80");
        assert!(sandbox.check_host("a.org", Some(443)).is_ok());
        assert!(sandbox.check_host("x.b.org", None).is_ok());
        assert!(sandbox.check_host("c.org", Some(80)).is_ok());
        assert!(sandbox.check_host("c.org", Some(81)).is_err());
        assert!(sandbox.check_host("b.org", None).is_err());
        assert!(sandbox.check_host("aa.org", None).is_err());
    }

    #[test]
    fn paths_cannot_get_out() {
        let folder = std::env::temp_dir().join(format!("windlass-sandbox-{}", std::process::id()));
        let inside = folder.join("inside");
        std::fs::create_dir_all(&inside).expect("a folder");
        std::fs::write(folder.join("secret"), "x").expect("a file");
        std::os::unix::fs::symlink(folder.join("secret"), inside.join("link")).expect("a link");
        std::os::unix::fs::symlink(folder.join("nothing"), inside.join("dangling"))
            .expect("a link");
        let sandbox = Sandbox::new()
            .allow_fs(&inside)
            .resolved()
            .expect("it is there");
        for good in ["new", "a/b/c", "./x", "../inside/y"] {
            assert!(sandbox.check_path(&inside, good).is_ok(), "{good}");
        }
        for bad in [
            "../secret",
            "link",
            "dangling",
            "/etc/passwd",
            "a/../../secret",
            "..",
        ] {
            assert!(sandbox.check_path(&inside, bad).is_err(), "{bad}");
        }
        std::fs::remove_dir_all(&folder).expect("it was there");
    }
}
