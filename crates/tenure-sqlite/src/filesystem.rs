//! Which file systems can be trusted with the file.
//!
//! SQLite's write-ahead log needs memory shared by all who have the file open,
//! and proof of death needs one kernel to see every lock. A network file system
//! gives neither, and says so by corrupting or by letting two lead: it is
//! refused before anything is written.

use std::fs;
use std::path::Path;

use tenure_store::{Error, ErrorKind, Result};

/// Magic numbers of `statfs(2)` that mean other machines may have the file open
/// too, with the name people know them by.
const REMOTE: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS (kAFS)"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "CephFS"),
    (0x0102_1997, "9P"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x564c, "NCP"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x2003_0528, "OrangeFS"),
    (0x1983_0326, "BeeGFS"),
    (0xaad7_aaea, "PanFS"),
    (0x786f_4256, "VirtualBox shared folder"),
    (0xbacb_acbc, "VMware shared folder"),
];

const FUSE: u64 = 0x6573_5546;

/// FUSE file systems known to keep their files on this machine. Any other one
/// may be remote (sshfs, s3fs, glusterfs, rclone, …) and is not trusted.
const LOCAL_FUSE: &[&str] = &[
    "fuseblk",
    "fuse.bindfs",
    "fuse.ext4",
    "fuse.fuse-overlayfs",
    "fuse.gocryptfs",
    "fuse.encfs",
    "fuse.mergerfs",
    "fuse.ntfs-3g",
    "fuse.zfs",
];

/// The name of the remote file system that `magic` stands for; `None` if it is
/// a local one. `fuse` is the type `/proc/self/mountinfo` gives for the mount,
/// needed to tell FUSE file systems from one another.
fn remote(magic: u64, fuse: Option<&str>) -> Option<String> {
    if magic == FUSE {
        let kind = fuse.unwrap_or("fuse");
        return (!LOCAL_FUSE.contains(&kind)).then(|| format!("{kind} (FUSE)"));
    }
    let known = REMOTE.iter().find(|(number, _)| *number == magic);
    known.map(|(_, name)| (*name).to_owned())
}

/// The type of the mount that `path` lies on, out of the text of
/// `/proc/self/mountinfo`: the mount with the longest mount point above it, and
/// of those the one mounted last.
fn mount_type<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mountinfo.lines() {
        let mut halves = line.splitn(2, " - ");
        let (Some(left), Some(right)) = (halves.next(), halves.next()) else { continue };
        let Some(point) = left.split(' ').nth(4) else { continue };
        let point = unescape(point);
        let Some(kind) = right.split(' ').next() else { continue };
        if path.starts_with(&point) && best.is_none_or(|(len, _)| point.len() >= len) {
            best = Some((point.len(), kind));
        }
    }
    best.map(|(_, kind)| kind)
}

/// Mount points are written with octal escapes for space, tab, newline and
/// backslash.
fn unescape(point: &str) -> String {
    point.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Whether something is mounted at exactly this path.
pub(crate) fn is_mount_point(path: &Path) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mount_points(&mounts).any(|point| Path::new(&point) == path)
}

fn mount_points(mountinfo: &str) -> impl Iterator<Item = String> {
    mountinfo.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape)
}

/// Refuses `file` if the directory it lies in is on a network file system. The
/// file itself is not opened: closing it would drop the locks that SQLite holds
/// on it elsewhere in this process.
pub(crate) fn check(file: &Path) -> Result<()> {
    // Where a link leads is where the file lies, whether it is there yet or not.
    let file = &file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let directory = file.parent().unwrap_or(file);
    let directory = &directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let stat = rustix::fs::statfs(directory).map_err(|error| {
        Error::new(ErrorKind::Denied, format!("looking at {} failed", directory.display()))
            .caused_by(std::io::Error::from(error))
            .remedy("give a path that this process may write")
    })?;
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    let magic = (stat.f_type as u64) & 0xffff_ffff;
    let mounts = if magic == FUSE { fs::read_to_string("/proc/self/mountinfo").ok() } else { None };
    let kind = mounts.as_deref().and_then(|text| mount_type(text, directory));
    let Some(name) = remote(magic, kind) else { return Ok(()) };
    Err(Error::new(
        ErrorKind::Invalid,
        format!(
            "{} lies on a network file system, {name}, where SQLite can neither lock nor share \
             its log",
            file.display()
        ),
    )
    .remedy("give a path on a local disk, or use a PostgreSQL store to elect across hosts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        let local = [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1];
        for magic in local {
            assert_eq!(remote(magic, None), None, "{magic:x}");
        }
        for (magic, name) in [
            (0x6969, "NFS"),
            (0x517b, "SMB"),
            (0xff53_4d42, "CIFS"),
            (0xfe53_4d42, "SMB2"),
            (0x00c3_6400, "CephFS"),
            (0x0102_1997, "9P"),
            (0x0bd0_0bd0, "Lustre"),
            (0x4750_4653, "GPFS"),
        ] {
            assert_eq!(remote(magic, None).as_deref(), Some(name), "{magic:x}");
        }
    }

    #[test]
    fn a_fuse_mount_is_trusted_only_if_it_is_known_to_be_local() {
        assert_eq!(remote(FUSE, Some("fuseblk")), None);
        assert_eq!(remote(FUSE, Some("fuse.sshfs")).as_deref(), Some("fuse.sshfs (FUSE)"));
        assert!(remote(FUSE, Some("fuse.glusterfs")).is_some());
        assert!(remote(FUSE, Some("fuse.s3fs")).is_some());
        assert!(remote(FUSE, None).is_some());
    }

    #[test]
    fn the_innermost_and_latest_mount_decides() {
        let mounts = "\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /mnt rw - tmpfs tmpfs rw
31 30 0:41 / /mnt/my\\040share rw shared:1 - fuse.sshfs host:/x rw
32 31 0:42 / /mnt/my\\040share rw - fuse.bindfs /y rw
33 22 0:43 / /mnt2 rw - nfs4 host:/z rw
";
        assert_eq!(mount_type(mounts, Path::new("/var/lib")), Some("ext4"));
        assert_eq!(mount_type(mounts, Path::new("/mnt/a")), Some("tmpfs"));
        assert_eq!(mount_type(mounts, Path::new("/mnt/my share/db")), Some("fuse.bindfs"));
        assert_eq!(mount_type(mounts, Path::new("/mnt2")), Some("nfs4"));
        assert_eq!(mount_type("", Path::new("/")), None);
        let points: Vec<_> = mount_points(mounts).collect();
        assert_eq!(points, ["/", "/mnt", "/mnt/my share", "/mnt/my share", "/mnt2"]);
    }
}
