//! Registers that are broken in one way each, and must be found out.

use async_trait::async_trait;
use tenure_cas::{Batches, Listed, MemoryRegister, Watching};

use super::*;

/// What is wrong with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    CreatesOver,
    ReplacesAny,
    OtherVersionOnRead,
    SameVersion,
    ListsNothing,
    RemovesAny,
    KnowsNoRemoval,
    MayNotRemove,
    NeverReplaces,
    NeverCreates,
    FindsAnything,
    NeverRemoves,
}

#[derive(Debug)]
struct Broken {
    defect: Defect,
    inner: MemoryRegister,
}

impl Broken {
    async fn present(&self, key: &str) -> Option<Version> {
        match self.inner.load(key, None).await.unwrap() {
            Loaded::Found { version, .. } => Some(version),
            _ => None,
        }
    }
}

#[async_trait]
impl Register for Broken {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        match self.inner.load(key, known).await? {
            Loaded::Unchanged if self.defect == Defect::OtherVersionOnRead => {
                Ok(Loaded::Found { bytes: b"x".to_vec(), version: Version::new("other") })
            }
            Loaded::Unchanged | Loaded::Found { .. } if self.defect == Defect::SameVersion => {
                Ok(Loaded::Unchanged)
            }
            Loaded::Absent if self.defect == Defect::FindsAnything => {
                Ok(Loaded::Found { bytes: b"x".to_vec(), version: Version::new("other") })
            }
            loaded => Ok(loaded),
        }
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        let present = self.present(key).await;
        let expect = match (self.defect, expect, present) {
            (Defect::CreatesOver, Expect::Absent, Some(version))
            | (Defect::ReplacesAny | Defect::SameVersion, Expect::Version(_), Some(version))
                if self.defect != Defect::SameVersion || bytes.ends_with(b"4}") =>
            {
                Expect::Version(version)
            }
            (Defect::NeverReplaces, Expect::Version(_), _)
            | (Defect::NeverCreates, Expect::Absent, _) => return Ok(Swapped::Conflict),
            (_, expect, _) => expect,
        };
        let swapped = self.inner.swap(key, expect, bytes).await?;
        Ok(match (self.defect, swapped) {
            (Defect::SameVersion, Swapped::Stored(_)) => Swapped::Stored(Version::new("same")),
            (_, swapped) => swapped,
        })
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        let error = |kind| Err(Error::new(kind, "no"));
        match (self.defect, self.present(key).await) {
            (Defect::RemovesAny, Some(version)) => self.inner.remove(key, &version).await,
            (Defect::KnowsNoRemoval, _) => error(ErrorKind::Invalid),
            (Defect::MayNotRemove, _) => error(ErrorKind::Denied),
            (Defect::NeverRemoves, _) => Ok(Removed::Conflict),
            _ => self.inner.remove(key, expect).await,
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let all = self.inner.list(prefix).await?;
        Ok(if self.defect == Defect::ListsNothing { Vec::new() } else { all })
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}

async fn probed(defect: Defect) -> (Result<Found>, MemoryRegister) {
    let inner = MemoryRegister::new();
    let broken: Arc<dyn Register> = Arc::new(Broken { defect, inner: inner.clone() });
    (probe(&broken, Cloud::S3, "b", "/p/").await, inner)
}

#[tokio::test(flavor = "current_thread")]
async fn a_good_register_passes_and_nothing_is_left_behind() {
    let (found, register) = probed(Defect::None).await;
    assert!(found.unwrap().conditional_removal);
    assert_eq!(register.list("").await.unwrap(), []);
    assert_eq!(register.writes(), 3, "a creation, a replacement and a removal");
}

/// Each of these would let two members lead at once, or none ever.
#[tokio::test(flavor = "current_thread")]
async fn every_defect_is_found_and_told_and_nothing_is_left_behind() {
    for (defect, word) in [
        (Defect::CreatesOver, "where there was one already"),
        (Defect::ReplacesAny, "in place of another"),
        (Defect::OtherVersionOnRead, "not the one it gives to reads"),
        (Defect::SameVersion, "two contents one version"),
        (Defect::NeverReplaces, "does not replace"),
        (Defect::ListsNothing, "leaves out"),
        (Defect::NeverCreates, "new random name exists"),
        (Defect::FindsAnything, "that was never written"),
        (Defect::NeverRemoves, "does not remove"),
    ] {
        let (found, register) = probed(defect).await;
        let error = found.expect_err("it is broken");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let said = error.to_string();
        assert!(said.contains(word) && said.contains("If-Match"), "{defect:?}: {said}");
        if !matches!(defect, Defect::SameVersion | Defect::NeverRemoves) {
            assert_eq!(register.list("").await.unwrap(), [], "{defect:?}");
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_register_that_removes_anything_is_used_without_its_removals() {
    for defect in [Defect::RemovesAny, Defect::KnowsNoRemoval] {
        let (found, _) = probed(defect).await;
        assert!(!found.unwrap().conditional_removal, "{defect:?}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_missing_permission_is_an_error_and_not_a_defect() {
    let (found, _) = probed(Defect::MayNotRemove).await;
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Denied);
}

/// Sixteen at once, on one register: none is disturbed by another.
#[tokio::test(flavor = "current_thread")]
async fn many_may_probe_at_once() {
    let inner = MemoryRegister::new();
    let register: Arc<dyn Register> =
        Arc::new(Broken { defect: Defect::RemovesAny, inner: inner.clone() });
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let register = register.clone();
        tasks.spawn(async move { probe(&register, Cloud::S3, "b", "").await.map(drop) });
    }
    for done in tasks.join_all().await {
        done.unwrap();
    }
    assert_eq!(inner.list("").await.unwrap(), []);
}
