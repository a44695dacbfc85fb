//! The check of a token in the caller's own transaction.

use tenure_core::Term;

/// What a transaction of your own must compare, so that no deposed leader writes: the cell
/// `key` must hold `value`.
///
/// Put it among the conditions of the transaction that does your write, in whatever client you
/// use. If it does not hold, a newer term was won, and nothing is written.
///
/// ```
/// # use tenure_etcd::EtcdOptions;
/// # use tenure_core::{ElectionName, Incarnation, MemberId, MemberRef, Namespace, Term, TermNumber, Timestamp};
/// # let term = Term {
/// #     election: ElectionName::new("nightly").unwrap(),
/// #     number: TermNumber::new(7),
/// #     member: MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(1)),
/// #     elected_at: Timestamp::default(),
/// # };
/// let options = EtcdOptions::from_url("etcd://10.0.0.1/tenure")?;
/// let fence = options.fence(&Namespace::default(), &term);
/// assert_eq!((fence.key.as_str(), fence.value.as_str()), ("tenure/default/terms/nightly", "7"));
/// # Ok::<(), tenure_store::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The key of the cell.
    pub key: String,
    /// What it must hold: the number of the term.
    pub value: String,
}

impl Fence {
    pub(crate) fn new(prefix: &str, namespace: &tenure_core::Namespace, term: &Term) -> Self {
        let key = tenure_cas::term_key(prefix, namespace, &term.election);
        Self { key, value: term.number.get().to_string() }
    }
}
