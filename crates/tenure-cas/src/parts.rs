//! What the verbs of the store share: the parts of one namespace that are borrowed together.

use tenure_core::Namespace;

use crate::candidates::Candidates;
use crate::cells::Cells;
use crate::judge::Judge;
use crate::members::Members;
use crate::reader::Reader;

/// The cells, a namespace in them, and what reads, judges and edits its records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) cells: &'a Cells,
    pub(crate) ns: &'a Namespace,
    pub(crate) judge: Judge<'a>,
    pub(crate) reader: Reader<'a>,
    pub(crate) candidates: Candidates<'a>,
    pub(crate) members: Members<'a>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self {
            cells,
            ns,
            judge: Judge::new(cells, ns),
            reader: Reader::new(cells, ns),
            candidates: Candidates::new(cells, ns),
            members: Members::new(cells, ns),
        }
    }
}
