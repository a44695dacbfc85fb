//! Why a name could not be registered.

use std::time::Duration;

use tenure::naming::{Binding, Name, NameError};

/// Why a name could not be registered, changed, given back or read.
///
/// ```
/// # use tenure::Tenure;
/// # use tenure::naming::Value;
/// # use tenure_registry::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tenure = Tenure::connect("memory:").await?;
/// # let names = Registry::open(&tenure, "orders")?;
/// let mine = names.register("user/42", Value::empty()).await?;
/// let refused = names.register("user/42", Value::empty()).await.unwrap_err();
/// assert!(matches!(refused, RegisterError::Taken(_)));
/// assert!(refused.to_string().contains("user/42"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// A member owns it: which one, where and under which token is in the binding. It may be
    /// this very process, by an earlier call.
    #[error("{}", NameError::Taken(.0.clone()))]
    Taken(Box<Binding>),
    /// The store has not answered in time: another answer than *taken*. If it did what was
    /// asked, that is undone.
    #[error("{}", unknown(.name, *.waited, .because.as_deref()))]
    Unknown {
        /// The name, with its scope.
        name: Name,
        /// How long an answer was waited for.
        waited: Duration,
        /// The store's last error, if there was one.
        because: Option<String>,
    },
    /// The registration is over. What there is instead, if anything.
    #[error("{}", NameError::Gone(.0.clone()))]
    Gone(Option<Box<Binding>>),
    /// The name has another revision than the one expected. Nothing was changed.
    #[error("{}", NameError::Changed(.0.clone()))]
    Changed(Box<Binding>),
    /// The scope cannot be used.
    #[error(
        "the scope {0:?} cannot be used: give it a name that is not empty, has no ':' and is not \
         \"tenure-left\""
    )]
    Scope(String),
    /// The name was registered under the fence of a term that is over. Nothing was changed.
    #[error("{}", NameError::Fenced { newest: *.newest })]
    Fenced {
        /// The newest term of its election.
        newest: u64,
    },
    /// The work of a singleton panicked. The name and the term were given back.
    #[error("the work panicked: {0}")]
    Panicked(String),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] tenure::Error),
}

fn unknown(name: &Name, waited: Duration, because: Option<&str>) -> NameError {
    NameError::Unknown { name: name.clone(), waited, because: because.map(String::from) }
}

impl RegisterError {
    /// Whether the same call may succeed later, without any change of its arguments.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            RegisterError::Other(error) => error.may_pass(),
            RegisterError::Scope(_) | RegisterError::Panicked(_) => false,
            _ => true,
        }
    }
}

impl From<NameError> for RegisterError {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Taken(binding) => RegisterError::Taken(binding),
            NameError::Unknown { name, waited, because } => {
                RegisterError::Unknown { name, waited, because }
            }
            NameError::Gone(there) => RegisterError::Gone(there),
            NameError::Changed(there) => RegisterError::Changed(there),
            NameError::Fenced { newest } => RegisterError::Fenced { newest },
            NameError::Other(error) => RegisterError::Other(error),
            // There is no other.
            _ => RegisterError::Gone(None),
        }
    }
}
