//! Names that a member owns, under tokens: [`Tenure::names`](crate::Tenure::names). The crate
//! `tenure-registry` builds a registry with local lookups on them.

pub use tenure_core::{Binding, Name, NamesView, Rev, Token, Value, WhichNames};

pub use crate::member::{NameError, NameHints, Names, Registration};
