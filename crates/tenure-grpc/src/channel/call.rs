//! One call, from the choice of the route to the answer.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response};
use tenure::store::BootClock;
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tower_service::Service;

use crate::body::{KEPT, Kept, Taken};
use crate::connection::causes;
use crate::fault::{Fate, fate};
use crate::follow::{Present, Shared};
use crate::header::{Hint, REFUSED, Refusal, TERM, VACANT};
use crate::repeat::{Verdict, judge};
use crate::route::{Pass, Route};

/// The longest pause between two attempts to connect.
const LONGEST: Duration = Duration::from_millis(500);
/// A leader that has said nothing for so long has not refused.
const TAKEN_ON: Duration = Duration::from_millis(100);
/// How many hints of one call are followed.
const REDIRECTS: u32 = 3;
/// How a deadline travels.
const GRPC_TIMEOUT: &str = "grpc-timeout";

pub(super) async fn run(
    shared: &Shared,
    wait: Duration,
    request: Request<Body>,
) -> Result<Response<Body>, Status> {
    let (parts, body) = request.into_parts();
    let method = shared.config.load().method(parts.uri.path());
    let asked = parts.headers.get(GRPC_TIMEOUT).and_then(timeout);
    let limit = match (asked, method.timeout) {
        (Some(asked), Some(set)) => Some(asked.min(set)),
        (asked, set) => asked.or(set),
    };
    let start = Instant::now();
    let deadline = limit.and_then(|limit| start.checked_add(limit));
    let wait = match method.wait_for_ready {
        Some(false) => Duration::ZERO,
        // Until its deadline, if it has one.
        Some(true) if deadline.is_some() => Duration::MAX,
        _ => wait,
    };
    let mut call = Call {
        shared,
        headers: parts,
        body: Kept::new(body),
        patience: Patience { limit: wait, deadline, since: None, why: String::new() },
        set: limit != asked,
        redirects: 0,
        tries: 0,
    };
    call.run().await
}

/// How long a call may wait, and for what.
struct Patience {
    limit: Duration,
    deadline: Option<Instant>,
    /// When it had to wait first.
    since: Option<Instant>,
    /// What it last waited for, beyond a leader.
    why: String,
}

impl Patience {
    /// Until when it waits, counted from when it first had to.
    fn until(&mut self) -> Instant {
        let since = *self.since.get_or_insert_with(Instant::now);
        // Without a limit there is a deadline; and a century is as good as for ever.
        let century = Duration::from_secs(3_000_000_000);
        let until = since + self.limit.min(century);
        self.deadline.map_or(until, |deadline| until.min(deadline))
    }
}

struct Call<'c> {
    shared: &'c Shared,
    headers: http::request::Parts,
    body: Kept,
    patience: Patience,
    /// The deadline is another than the caller's own: the server is to know it.
    set: bool,
    redirects: u32,
    tries: u32,
}

/// Whether a call may go.
enum Gated<'r> {
    /// The route is to be chosen anew.
    Again,
    /// It may; with a pass, if it is the one that asks a leader that refuses.
    Go(Option<Pass<'r>>),
}

/// How an attempt came out.
enum Tried {
    Answered(Response<Body>),
    Refused(HeaderMap),
    /// The endpoint of this index could not be reached, or does not take it.
    Failed(Fate, tonic::transport::Error),
    /// The route was over before it was sent.
    Stale,
}

impl Call<'_> {
    async fn run(&mut self) -> Result<Response<Body>, Status> {
        loop {
            let route = self.route().await?;
            let Gated::Go(pass) = self.pass(&route).await? else { continue };
            let (index, channel) = match route.channel() {
                Some(picked) => picked,
                None => match self.connect(&route).await? {
                    Some(made) => made,
                    None => continue,
                },
            };
            let tried = self.asked(&route, channel, pass.is_some()).await?;
            match tried {
                Tried::Stale => {}
                Tried::Answered(response) => {
                    route.gate.open();
                    self.learn(&route, response.headers());
                    return Ok(response);
                }
                Tried::Refused(headers) => self.refused(&route, index, &headers)?,
                Tried::Failed(fate, error) => {
                    drop(pass);
                    if fate == Fate::NotConnected {
                        route.broke(index);
                    }
                    self.failed(&route, fate, error)?;
                    self.pause().await?;
                }
            }
        }
    }

    /// The route of the moment, waited for.
    async fn route(&mut self) -> Result<Arc<Route>, Status> {
        loop {
            let shared = self.shared;
            if let Some(route) = now_led(shared)? {
                return usable(shared, route);
            }
            // Enabled before the second look, so that no change falls between.
            let changed = shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(route) = now_led(shared)? {
                return usable(shared, route);
            }
            shared.look.notify_one();
            if timeout_at(self.patience.until(), changed).await.is_err() {
                return Err(self.gave_up());
            }
        }
    }

    /// Waits while the leader refuses calls.
    async fn pass<'r>(&mut self, route: &'r Arc<Route>) -> Result<Gated<'r>, Status> {
        if !route.gate.is_shut() {
            return Ok(Gated::Go(None));
        }
        let until = self.patience.until();
        let shared = self.shared;
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if !is_present(shared, route) {
            return Ok(Gated::Again);
        }
        tokio::select! {
            biased;
            () = changed => Ok(Gated::Again),
            pass = route.gate.pass() => Ok(Gated::Go(pass)),
            () = tokio::time::sleep_until(until) => Err(self.gave_up()),
        }
    }

    /// Connects to the leader; `None` if the route is to be chosen anew.
    async fn connect(&mut self, route: &Route) -> Result<Option<(usize, Channel)>, Status> {
        let until = self.patience.until();
        let said = match timeout_at(until, route.connect()).await {
            Ok(Ok(made)) => return Ok(Some(made)),
            Ok(Err(said)) => said,
            Err(_) => "the connection was not there in time".to_owned(),
        };
        self.patience.why = format!(
            "its leader {} of term {} cannot be reached: {said}",
            route.leader, route.number
        );
        self.shared.look.notify_one();
        self.tries += 1;
        self.pause().await.map(|()| None)
    }

    /// Waits before the next attempt: not at all before the second, then longer each time.
    async fn pause(&mut self) -> Result<(), Status> {
        let pause = match self.tries {
            0 => Duration::ZERO,
            tries => Duration::from_millis(5 << tries.min(7)).min(LONGEST),
        };
        self.tries += 1;
        let until = self.patience.until();
        let resume = Instant::now() + pause;
        if resume >= until {
            tokio::time::sleep_until(until).await;
            return Err(self.gave_up());
        }
        if !pause.is_zero() {
            tokio::time::sleep_until(resume).await;
        }
        Ok(())
    }

    /// Sends the call once. A refusal comes at once: where none comes to the call that asks, its
    /// handler runs, for as long as it likes, and the others may go.
    async fn asked(
        &mut self,
        route: &Arc<Route>,
        channel: Channel,
        asks: bool,
    ) -> Result<Tried, Status> {
        let mut sent = std::pin::pin!(self.attempt(route, channel));
        if asks {
            match tokio::time::timeout(TAKEN_ON, sent.as_mut()).await {
                Ok(tried) => return tried,
                Err(_) => route.gate.open(),
            }
        }
        sent.await
    }

    /// Sends the call once.
    async fn attempt(&mut self, route: &Arc<Route>, mut channel: Channel) -> Result<Tried, Status> {
        let sent = async {
            if let Err(error) = std::future::poll_fn(|cx| channel.poll_ready(cx)).await {
                // What carries its calls has ended: it is connected anew.
                return Tried::Failed(Fate::NotConnected, error);
            }
            // G1: the last thing before it is sent.
            if !is_present(self.shared, route) {
                return Tried::Stale;
            }
            match channel.call(self.request(route)).await {
                Ok(response) if response.headers().contains_key(REFUSED) => {
                    Tried::Refused(response.into_parts().0.headers)
                }
                Ok(response) => Tried::Answered(response),
                Err(error) => Tried::Failed(fate(&error), error),
            }
        };
        let Some(deadline) = self.patience.deadline else { return Ok(sent.await) };
        timeout_at(deadline, sent).await.map_err(|_| {
            Status::deadline_exceeded(format!(
                "the leader {} of term {} of election {} did not answer in time: the call may \
                 have been handled",
                route.leader, route.number, self.shared.election
            ))
        })
    }

    fn request(&self, route: &Route) -> Request<Body> {
        let mut request = Request::new(self.body.lend());
        *request.method_mut() = self.headers.method.clone();
        *request.uri_mut() = self.headers.uri.clone();
        *request.version_mut() = self.headers.version;
        *request.headers_mut() = self.headers.headers.clone();
        *request.extensions_mut() = self.headers.extensions.clone();
        request.headers_mut().insert(TERM, route.header.clone());
        // What is left of the deadline, if that is no longer what the caller said.
        if let Some(deadline) =
            self.patience.deadline.filter(|_| self.set || self.patience.since.is_some())
        {
            let left = deadline.saturating_duration_since(Instant::now());
            request.headers_mut().insert(GRPC_TIMEOUT, in_micros(left));
        }
        request
    }

    /// A server refused the call: its handler did not run.
    fn refused(&mut self, route: &Route, index: usize, headers: &HeaderMap) -> Result<(), Status> {
        route.gate.shut();
        route.pass_over(index);
        self.patience.why = format!(
            "its leader {} of term {} refused the call: it has not begun to lead, or leads no more",
            route.leader, route.number
        );
        let hint = Hint::of(headers).filter(|hint| hint.number > route.number);
        let hint = hint.filter(|_| self.redirects < REDIRECTS);
        self.redirects += u32::from(hint.is_some());
        // A full queue has enough of them.
        drop(self.shared.refusals.try_send(Refusal { to: route.number, hint }));
        let taken = self.body.taken();
        match judge(Fate::NotHandled, taken) {
            Verdict::Repeat => Ok(()),
            _ => Err(self.gone(route, taken)),
        }
    }

    /// The transport failed.
    fn failed(
        &mut self,
        route: &Route,
        fate: Fate,
        error: tonic::transport::Error,
    ) -> Result<(), Status> {
        self.shared.look.notify_one();
        let taken = self.body.taken();
        match judge(fate, taken) {
            Verdict::Repeat => {
                self.patience.why = format!(
                    "its leader {} of term {} cannot be reached: {}",
                    route.leader,
                    route.number,
                    causes(&error)
                );
                Ok(())
            }
            Verdict::Gone => Err(self.gone(route, taken)),
            Verdict::MayHaveRun => Err(may_have_run(self.shared, route, error)),
        }
    }

    /// An answer of a newer term than is known causes a look.
    fn learn(&self, route: &Route, headers: &HeaderMap) {
        if crate::header::number(headers, TERM).is_some_and(|number| number > route.number) {
            self.shared.look.notify_one();
        }
    }

    /// It was not handled, and cannot be sent again.
    fn gone(&self, route: &Route, taken: Taken) -> Status {
        let what = match taken {
            Taken::TooMuch => format!("its body is longer than the {KEPT} bytes that are kept"),
            _ => "the first message of its stream was taken".to_owned(),
        };
        Status::unavailable(format!(
            "the leader {} of term {} of election {} did not handle the call, and it cannot be \
             sent again by itself, since {what}: call again",
            route.leader, route.number, self.shared.election
        ))
    }

    /// It waited as long as it may. It was never handled.
    fn gave_up(&self) -> Status {
        let waited = self.patience.since.map_or(Duration::ZERO, |since| since.elapsed());
        let election = &self.shared.election;
        let (number, led) = match &**self.shared.present.load() {
            Present::Led(route) => (route.number, route.lives(BootClock::read())),
            Present::Vacant(number) => (*number, false),
            Present::Closed => (0, false),
        };
        if led && !self.patience.why.is_empty() {
            let why = &self.patience.why;
            return Status::unavailable(format!(
                "election {election}: {why}; waited {waited:.3?}, and the call was not handled"
            ));
        }
        let mut status = Status::unavailable(format!(
            "election {election} has no leader that is known to live (the last term is {number}); \
             waited {waited:.3?}, and the call was not handled"
        ));
        status.metadata_mut().insert(VACANT, tonic::metadata::MetadataValue::from_static("1"));
        status
    }
}

/// The route of this instant, if there is one whose leader's ttl has not run out.
fn now_led(shared: &Shared) -> Result<Option<Arc<Route>>, Status> {
    match &**shared.present.load() {
        Present::Led(route) if route.lives(BootClock::read()) => Ok(Some(route.clone())),
        Present::Led(_) | Present::Vacant(_) => Ok(None),
        Present::Closed => Err(Status::unavailable(format!(
            "election {} is not followed any more, since the member that observes it was shut \
             down: build a channel from one that is connected. The call was not handled",
            shared.election
        ))),
    }
}

/// Refuses a route by which no call can go, at once: a profile stays as it is for a term.
fn usable(shared: &Shared, route: Arc<Route>) -> Result<Arc<Route>, Status> {
    match &route.unusable {
        None => Ok(route),
        Some(why) => Err(Status::unavailable(format!(
            "the leader {} of term {} of election {} cannot be called: {why}. The call was not \
             handled; let the leader connect with Builder::endpoint",
            route.leader, route.number, shared.election
        ))),
    }
}

fn is_present(shared: &Shared, route: &Arc<Route>) -> bool {
    let present = shared.present.load();
    let same = matches!(&**present, Present::Led(now) if Arc::ptr_eq(now, route));
    same && route.lives(BootClock::read())
}

/// The transport's own status, with what it means for the call.
fn may_have_run(shared: &Shared, route: &Route, error: tonic::transport::Error) -> Status {
    let text = format!(
        "the call to the leader {} of term {} of election {} may have been handled, and is not \
         repeated: {}",
        route.leader,
        route.number,
        shared.election,
        causes(&error)
    );
    let late = is_late(&error);
    let status = Status::from_error(Box::new(error));
    // A connection that ends is no fault of the call's.
    let code = match status.code() {
        _ if late => Code::DeadlineExceeded,
        Code::Unknown | Code::Internal | Code::Cancelled => Code::Unavailable,
        code => code,
    };
    let mut said = Status::with_metadata(code, text, status.metadata().clone());
    said.set_source(Arc::new(status));
    said
}

/// Whether the transport's own timer for the deadline was the quicker.
fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<tonic::TimeoutExpired>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// A timeout as gRPC writes it: at most eight digits and a unit.
fn timeout(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

fn in_micros(left: Duration) -> HeaderValue {
    let most = 99_999_999;
    let micros = left.as_micros();
    let (count, unit) = match u64::try_from(micros) {
        Ok(micros) if micros <= most => (micros, 'u'),
        _ if left.as_millis() <= u128::from(most) => (left.as_millis() as u64, 'm'),
        _ => (left.as_secs().min(most), 'S'),
    };
    HeaderValue::try_from(format!("{count}{unit}")).unwrap_or(HeaderValue::from_static("0n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was read is written, and what is no timeout is none.
    #[test]
    fn timeouts_are_read_and_written() {
        let read = |text: &'static str| timeout(&HeaderValue::from_static(text));
        assert_eq!(read("100m"), Some(Duration::from_millis(100)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for no in ["", "m", "1", "1x", "-1m", "999999999m", "1.5S", "+1m"] {
            assert_eq!(read(no), None, "{no}");
        }
        for left in [0, 1, 99_999_999, 100_000_000, 1 << 40] {
            let left = Duration::from_micros(left);
            let back = timeout(&in_micros(left)).unwrap();
            assert!(back <= left && left - back <= left / 1000, "{left:?} {back:?}");
        }
    }
}
