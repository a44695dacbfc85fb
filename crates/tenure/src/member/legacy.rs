//! What a leader leaves to its successor.
//!
//! It is a name that has no owner: the store's name for the election, with the number
//! of the term that wrote it. A leader writes it under the fence of its own term, and then
//! gives the term up. Its successor takes it if, and only if, the number is the one directly
//! before its own.
//!
//! # What could break it
//!
//! - **A deposed leader writes late**, after its successor has read, or after the successor's
//!   successor. The store compares the term in the step that writes: a term that is not the
//!   newest, or that was given back, writes nothing. So what was written under term n was
//!   written before term n + 1 began, and does not change after that.
//! - **A leader in between left nothing**: A (term 5) leaves something, B (term 6) works and
//!   dies, C (term 7) finds what A left, which B's work has made wrong. C takes only what term
//!   6 wrote.
//! - **The store forgot a term** (it was promoted or restored): A (5) left something, B (6) is
//!   forgotten, C is elected with a number that jumped. The terms before C that the store
//!   knows are not all there were. C's number is not 6, and so it takes nothing. Numbers jump
//!   at a restart of PostgreSQL too: then nothing is inherited although nothing was forgotten.
//! - **The answer to the write is lost.** It may have been written, and it was the leader's
//!   last word either way: the term is given up all the same.
//! - **The leader dies between the write and the release.** Its work had stopped; the next
//!   term takes what it left.
//! - **Two tasks of one leader write at once.** Each change names the revision that it saw;
//!   the one that comes second looks again and writes over the first.
//! - **The election is purged.** What was left in it goes with it: the election was not used for
//!   the age that was asked for, and a term that begins later is told that nothing was left.
//! - **The successor reads before it leads.** [`Leadership::inherited`] is a method of the
//!   leadership, and reads after the term was won.

use tenure_core::{Name, NameAnswer, NameWish, TermRef, Value, WhichNames};
use tenure_store::{Error as StoreError, ErrorKind};

use crate::member::names::{Names, refused};
use crate::naming::NameError;
use crate::{Leadership, Result};

/// The key of the number in the index of the value.
const TERM: &str = "term";
/// The longest name of an election in which something can be left, in bytes.
const MAX_LEAVING: usize = 188;
/// How often a write is tried while others of this leader write too.
const TRIES: usize = 16;

impl Leadership {
    /// Leaves something to the next leader of this election, and gives the term up, as
    /// [`resign`](Self::resign) does: 64 KiB at most. The work under this leadership must have
    /// stopped. The next term has it by [`inherited`](Self::inherited); no later one does.
    ///
    /// On an error the term is given up too. [`NameError::Fenced`]: the term was over already,
    /// and nothing was written. A store that cannot change names under the fence of a term (an
    /// object store) refuses, before anything is written.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let election = tenure.election("sequencer");
    /// let first = election.campaign().await?;
    /// assert_eq!(first.inherited().await?, None);
    /// first.leave_behind(b"next = 17").await?;
    ///
    /// let second = election.campaign().await?;
    /// assert_eq!(second.inherited().await?.as_deref(), Some(&b"next = 17"[..]));
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn leave_behind(self, bytes: impl AsRef<[u8]>) -> Result<(), NameError> {
        let value = Value::empty()
            .with_index([(TERM, self.number().to_string())])
            .and_then(|value| value.with_data(bytes.as_ref()))
            .map_err(crate::Error::from)?;
        self.write_legacy(value).await?;
        Ok(self.give_up(None).await?)
    }

    /// What the leader directly before this term left behind, if it did. Whatever an older
    /// term left is not given: the term in between may have made it wrong.
    pub async fn inherited(&self) -> Result<Option<Vec<u8>>> {
        let name = self.legacy_name()?;
        let Some(before) = self.number().get().checked_sub(1) else { return Ok(None) };
        let found = self.names().read(WhichNames::Named(vec![name])).await?;
        let of_it = |value: &Value| value.has(TERM, &before.to_string());
        let left = found.bindings.into_iter().find(|b| b.owner.is_none() && of_it(&b.value));
        Ok(left.map(|binding| binding.value.data().to_vec()))
    }

    async fn write_legacy(&self, value: Value) -> Result<(), NameError> {
        let name = self.legacy_name()?;
        let names = self.names();
        let term = self.term();
        let fence = TermRef::new(term.election.clone(), term.number);
        let view = names.read(WhichNames::Named(vec![name.clone()])).await?;
        let mut there = view.bindings.into_iter().next();
        for _ in 0..TRIES {
            let value = value.clone();
            let wish = match &there {
                None => NameWish::Post { value },
                Some(old) => NameWish::Repost { token: old.token, expect: old.rev, value },
            };
            match names.write_fenced(name.clone(), wish, fence.clone()).await? {
                NameAnswer::Bound { .. } => return Ok(()),
                NameAnswer::Taken(binding) if binding.owner.is_none() => there = Some(binding),
                // Another task of this leader was first, or an operator dropped it.
                NameAnswer::Gone(other) if self.is_current() => there = other,
                answer => return Err(refused(answer)),
            }
        }
        Err(NameError::Taken(Box::new(there.ok_or(crate::Error::ShutDown)?)))
    }

    fn legacy_name(&self) -> Result<Name> {
        let capabilities = self.shared().client.first_capabilities();
        if !capabilities.keeps_names()?.fenced {
            return Err(capabilities.without_fence().into());
        }
        let election = &self.term().election;
        Name::left_in(election).ok_or_else(|| {
            let what = format!(
                "the name of election {election} is {} bytes long: something can be left to a \
                 successor if it has {MAX_LEAVING} at most",
                election.as_str().len()
            );
            let error = StoreError::new(ErrorKind::Invalid, what);
            error.remedy("give the election a shorter name").into()
        })
    }

    fn names(&self) -> Names {
        Names::of(self.shared().clone())
    }
}
