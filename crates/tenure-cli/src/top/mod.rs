//! stub
use crate::args::TopArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
pub(crate) async fn run(_c: &Context, _a: &TopArgs) -> Outcome {
    Ok(Exit::Ok)
}
