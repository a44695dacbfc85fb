//! One test for each row of the table.

use super::*;

fn question(cloud: Cloud, asked: Asked) -> Question<'static> {
    Question { cloud, bucket: "b", asked, key: "tenure/k" }
}

fn judged(cloud: Cloud, asked: Asked, status: u16, code: &str) -> Verdict {
    let answer = Answer { code: code.into(), ..Answer::bare(status) };
    question(cloud, asked).judge(Some(Heard::Answer(answer)), "")
}

fn failed(cloud: Cloud, asked: Asked, status: u16, code: &str) -> Error {
    match judged(cloud, asked, status, code) {
        Verdict::Failed(error) => error,
        other => panic!("{cloud:?} {asked:?} {status} {code} is {other:?}"),
    }
}

const WRITES: [Asked; 3] = [Asked::Create, Asked::Update, Asked::Remove];
const ALL: [Asked; 5] = [Asked::Load, Asked::List, Asked::Create, Asked::Update, Asked::Remove];

/// The kind to every question, never "may have been applied".
fn fails_unapplied(cloud: Cloud, status: u16, code: &str, kind: ErrorKind) {
    for asked in ALL {
        let error = failed(cloud, asked, status, code);
        assert_eq!(error.kind(), kind, "{asked:?} {status} {code}: {error}");
        assert!(!error.may_have_applied(), "{asked:?} {status} {code}: {error}");
    }
}

/// The kind to every question; a write may have been applied, a look not.
fn fails_unclear(heard: &Heard, kind: ErrorKind) {
    for cloud in Cloud::ALL {
        for asked in ALL {
            let verdict = question(cloud, asked).judge(Some(heard.clone()), "");
            let Verdict::Failed(error) = verdict else { panic!("{heard:?} is {verdict:?}") };
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(error.may_have_applied(), WRITES.contains(&asked), "{asked:?}: {error}");
        }
    }
}

#[test]
fn not_modified_is_unchanged() {
    for cloud in Cloud::ALL {
        assert!(matches!(judged(cloud, Asked::Load, 304, ""), Verdict::Unchanged));
    }
}

/// 404 on a listing race: what was listed may be gone when it is read.
#[test]
fn a_missing_object_is_absent_to_a_look_and_a_conflict_to_a_swap() {
    for (cloud, code) in
        [(Cloud::S3, "NoSuchKey"), (Cloud::Azure, "BlobNotFound"), (Cloud::Gcs, "notFound")]
    {
        assert!(matches!(judged(cloud, Asked::Load, 404, code), Verdict::Absent));
        assert!(matches!(judged(cloud, Asked::Remove, 404, code), Verdict::Absent));
        assert!(matches!(judged(cloud, Asked::Update, 404, code), Verdict::Conflict));
        assert_eq!(failed(cloud, Asked::Create, 404, code).kind(), ErrorKind::Denied);
    }
}

/// A bucket that was deleted must not read as "no member leads".
#[test]
fn a_missing_bucket_is_an_error_and_never_an_absent_object() {
    fails_unapplied(Cloud::S3, 404, "NoSuchBucket", ErrorKind::Denied);
    fails_unapplied(Cloud::Azure, 404, "ContainerNotFound", ErrorKind::Denied);
    let body = r#"{"error":{"code":404,"message":"The specified bucket does not exist.",
                  "errors":[{"reason":"notFound"}]}}"#;
    for asked in ALL {
        let heard = Heard::Answer(Answer::read(404, body));
        let verdict = question(Cloud::Gcs, asked).judge(Some(heard), "");
        let Verdict::Failed(error) = verdict else { panic!("{asked:?} is {verdict:?}") };
        assert!(error.to_string().contains("create the bucket \"b\""), "{error}");
        assert!(!error.may_have_applied());
    }
}

#[test]
fn a_failed_precondition_is_a_conflict() {
    for cloud in Cloud::ALL {
        for asked in WRITES {
            assert!(matches!(judged(cloud, asked, 412, "PreconditionFailed"), Verdict::Conflict));
        }
    }
}

#[test]
fn a_foreign_lease_on_a_blob_is_denied_and_not_a_conflict_forever() {
    for asked in WRITES {
        let error = failed(Cloud::Azure, asked, 412, "LeaseIdMissing");
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(error.to_string().contains("break it") && !error.may_have_applied());
    }
}

/// B24: S3 answers 409 to one of two conditional writes at the same moment.
#[test]
fn a_concurrent_conditional_write_on_s3_is_a_conflict() {
    for asked in WRITES {
        let verdict = judged(Cloud::S3, asked, 409, "ConditionalRequestConflict");
        assert!(matches!(verdict, Verdict::Conflict), "{verdict:?}");
    }
}

/// B24: the same code is a lost race or something else entirely.
#[test]
fn azure_says_409_of_a_blob_that_exists_and_of_much_else() {
    let verdict = judged(Cloud::Azure, Asked::Create, 409, "BlobAlreadyExists");
    assert!(matches!(verdict, Verdict::Conflict));
    for code in ["ContainerBeingDeleted", "BlobImmutableDueToPolicy", "SnapshotsPresent"] {
        fails_unapplied(Cloud::Azure, 409, code, ErrorKind::Busy);
    }
}

#[test]
fn throttling_is_busy_and_nothing_was_applied() {
    fails_unapplied(Cloud::S3, 503, "SlowDown", ErrorKind::Busy);
    fails_unapplied(Cloud::Gcs, 429, "rateLimitExceeded", ErrorKind::Busy);
    fails_unapplied(Cloud::Azure, 429, "TooManyRequests", ErrorKind::Busy);
}

#[test]
fn an_expired_or_refused_credential_is_denied() {
    fails_unapplied(Cloud::S3, 400, "ExpiredToken", ErrorKind::Denied);
    fails_unapplied(Cloud::S3, 403, "RequestTimeTooSkewed", ErrorKind::Denied);
    fails_unapplied(Cloud::S3, 403, "AccessDenied", ErrorKind::Denied);
    fails_unapplied(Cloud::Azure, 403, "AuthenticationFailed", ErrorKind::Denied);
    fails_unapplied(Cloud::Gcs, 401, "authError", ErrorKind::Denied);
    let skewed = failed(Cloud::S3, Asked::Load, 403, "RequestTimeTooSkewed").to_string();
    assert!(skewed.contains("wall clock is wrong"), "{skewed}");
}

#[test]
fn another_region_is_told_and_not_followed() {
    for status in [301, 302, 307, 308] {
        fails_unapplied(Cloud::S3, status, "PermanentRedirect", ErrorKind::Invalid);
    }
    assert!(failed(Cloud::S3, Asked::Load, 301, "").to_string().contains("region="));
}

#[test]
fn a_request_that_is_not_understood_is_invalid() {
    for status in [400, 405, 413, 501] {
        fails_unapplied(Cloud::S3, status, "NotImplemented", ErrorKind::Invalid);
    }
}

/// E2: whether it was applied is not known.
#[test]
fn a_failing_server_may_have_applied_the_write() {
    for status in [500, 502, 503, 504] {
        fails_unclear(&Heard::Answer(Answer::bare(status)), ErrorKind::Unreachable);
    }
    fails_unclear(&Heard::Answer(Answer::bare(408)), ErrorKind::Timeout);
}

#[test]
fn an_unknown_status_may_have_applied_the_write() {
    fails_unclear(&Heard::Answer(Answer::bare(418)), ErrorKind::Internal);
    // Success that object_store could not read.
    fails_unclear(&Heard::Answer(Answer::bare(200)), ErrorKind::Internal);
}

#[test]
fn a_timeout_or_a_cut_connection_may_have_applied_the_write() {
    let lost = |kind| Heard::Lost { kind, text: "it broke".into() };
    fails_unclear(&lost(HttpErrorKind::Timeout), ErrorKind::Timeout);
    for kind in [
        HttpErrorKind::Request,
        HttpErrorKind::Interrupted,
        HttpErrorKind::Decode,
        HttpErrorKind::Unknown,
    ] {
        fails_unclear(&lost(kind), ErrorKind::Unreachable);
    }
}

#[test]
fn a_connection_that_was_refused_carried_nothing() {
    for asked in ALL {
        let heard = Heard::Lost { kind: HttpErrorKind::Connect, text: "refused".into() };
        let verdict = question(Cloud::S3, asked).judge(Some(heard), "");
        let Verdict::Failed(error) = verdict else { panic!("{verdict:?}") };
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(!error.may_have_applied());
    }
}

#[test]
fn what_was_never_sent_names_the_credentials_of_its_cloud() {
    for (cloud, word) in [
        (Cloud::S3, "AWS_ACCESS_KEY_ID"),
        (Cloud::Gcs, "GOOGLE_APPLICATION_CREDENTIALS"),
        (Cloud::Azure, "AZURE_STORAGE_ACCOUNT_KEY"),
    ] {
        let verdict = question(cloud, Asked::Update).judge(None, "no role");
        let Verdict::Failed(error) = verdict else { panic!("{verdict:?}") };
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(!error.may_have_applied());
    }
}

#[test]
fn error_texts_of_the_three_are_read() {
    let s3 = "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>The specified key \
              does not exist.</Message></Error>";
    let read = Answer::read(404, s3);
    assert_eq!(read.code, "NoSuchKey");
    assert_eq!(read.message, "The specified key does not exist.");
    let google = r#"{"error":{"code":412,"message":"Precondition Failed",
                    "errors":[{"reason":"conditionNotMet"}]}}"#;
    assert_eq!(Answer::read(412, google).code, "conditionNotMet");
    for odd in ["", "<Code>", "</Code><Code>", "{}", "null", "<html>no</html>", "{\"error\":7}"] {
        assert_eq!(Answer::read(500, odd).code, "", "{odd}");
    }
    let long = format!("<Message>{}</Message>", "x".repeat(9_999));
    assert_eq!(Answer::read(500, &long).message.len(), 300);
}
