//! The address of a Unix socket.

use std::fmt;
use std::io;
use std::path::Path;

/// The address of a Unix socket: a path, a name that is no file (on Linux), or none.
///
/// It is made from, and made into, the address of the standard library.
#[derive(Clone)]
pub struct SocketAddr(pub(super) std::os::unix::net::SocketAddr);

impl SocketAddr {
    /// True if the socket has no address.
    pub fn is_unnamed(&self) -> bool {
        self.0.is_unnamed()
    }

    /// Returns the path, if the address is one.
    pub fn as_pathname(&self) -> Option<&Path> {
        self.0.as_pathname()
    }

    /// Returns the name, if the address is one that is no file.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;
        self.0.as_abstract_name()
    }
}

/// The address that a path stands for which begins with a zero byte: on Linux the rest is a name
/// that is no file, as in tokio. Others are left to the system, which refuses such a path.
pub(super) fn abstract_address(path: &Path) -> io::Result<Option<SocketAddr>> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"\0") {
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            return Ok(Some(SocketAddr(address)));
        }
    }
    let _ = path;
    Ok(None)
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<std::os::unix::net::SocketAddr> for SocketAddr {
    fn from(address: std::os::unix::net::SocketAddr) -> SocketAddr {
        SocketAddr(address)
    }
}

impl From<SocketAddr> for std::os::unix::net::SocketAddr {
    fn from(address: SocketAddr) -> std::os::unix::net::SocketAddr {
        address.0
    }
}
