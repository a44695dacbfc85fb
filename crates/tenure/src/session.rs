//! What a process in another language may trust that leads by way of a server: the server's
//! half and the client's, without a clock or a network (rules W1 to W5).

pub use tenure_core::{Grants, Next, Session, SessionTrust};
