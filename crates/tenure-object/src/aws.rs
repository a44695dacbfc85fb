//! S3 and what speaks its language.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderValue, Method, Request, header::IF_MATCH};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::client::HttpRequestBody;
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use tenure_cas::Version;
use tenure_store::Result;

use crate::cloud::Cloud;
use crate::http::{Wire, chain};
use crate::objects::{Eraser, Objects};
use crate::options::{BucketOptions, refuse};
use crate::store::{never_again, unbuilt};

/// How long the signature of a removal holds; it is used at once.
const SIGNED_FOR: Duration = Duration::from_secs(300);

/// The bucket that the options name, with credentials from code, the
/// environment, a web identity, a container's or an instance's role.
pub(crate) fn bucket(options: &BucketOptions, wire: &Wire) -> Result<Objects> {
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(&options.bucket)
        .with_http_connector(wire.clone())
        .with_retry(never_again())
        .with_allow_http(true)
        .with_conditional_put(S3ConditionalPut::ETagMatch);
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if options.virtual_hosted {
        builder = builder.with_virtual_hosted_style_request(true);
    }
    for (key, value) in &options.given {
        let known: AmazonS3ConfigKey =
            key.parse().map_err(|_| refuse(format!("S3 has no setting called {key:?}")))?;
        builder = builder.with_config(known, value);
    }
    let s3 = Arc::new(builder.build().map_err(|error| unbuilt(Cloud::S3, &error))?);
    Ok(Objects {
        cloud: Cloud::S3,
        bucket: options.bucket.clone(),
        store: s3.clone(),
        pages: s3.clone(),
        eraser: Box::new(Signed(s3)),
        wire: wire.clone(),
    })
}

/// Removes by a signed URL; the condition is part of what is signed.
#[derive(Debug)]
struct Signed(Arc<AmazonS3>);

#[async_trait]
impl Eraser for Signed {
    async fn request(
        &self,
        key: &Path,
        version: &Version,
    ) -> Result<Request<HttpRequestBody>, String> {
        let condition = HeaderValue::from_str(version.as_str()).map_err(|e| e.to_string())?;
        let signed = SignedUrlOptions::new().with_signed_header(IF_MATCH, condition.clone());
        let url = self.0.signed_url_opts(Method::DELETE, key, SIGNED_FOR, &signed).await;
        let url = url.map_err(|error| chain(&error))?;
        Request::builder()
            .method(Method::DELETE)
            .uri(url.as_str())
            .header(IF_MATCH, condition)
            .body(HttpRequestBody::empty())
            .map_err(|error| error.to_string())
    }
}
