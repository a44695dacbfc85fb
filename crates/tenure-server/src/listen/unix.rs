//! A Unix socket that only its user can connect to.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use tokio::net::UnixListener;

/// Makes the socket. It gets its mode before it gets its name, so that it cannot be reached
/// under a wider one. A socket on which no process listens is replaced; anything else is left
/// alone.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            let what = "there is a file of that name, which is no socket";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            let what = "another server listens on that socket";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
        }
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    drop(std::fs::remove_file(&temporary));
    let listener = UnixListener::bind(&temporary)?;
    let named = std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = named {
        drop(std::fs::remove_file(&temporary));
        return Err(error);
    }
    Ok(listener)
}
