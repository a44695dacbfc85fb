//! The verbs, each one step of a [`Txn`](crate::txn::Txn). What they do is
//! specified by the memory store; what differs here is who is judged how.

mod amend;
mod claim;
mod life;
mod read;
mod release;
