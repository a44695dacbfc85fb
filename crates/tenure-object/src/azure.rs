//! Azure Blob Storage.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderValue, Method, Request, header::IF_MATCH};
use object_store::azure::{AzureAuthorizer, AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::HttpRequestBody;
use object_store::path::Path;
use tenure_cas::Version;
use tenure_store::Result;

use crate::cloud::Cloud;
use crate::http::{Wire, chain};
use crate::objects::{Eraser, Objects};
use crate::options::{BucketOptions, refuse};
use crate::store::{never_again, unbuilt};

/// The container that the options name, with credentials from code, the
/// environment, a workload's or a machine's identity.
pub(crate) fn container(options: &BucketOptions, wire: &Wire) -> Result<Objects> {
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(&options.bucket)
        .with_http_connector(wire.clone())
        .with_retry(never_again())
        .with_allow_http(true);
    if let Some(account) = &options.account {
        builder = builder.with_account(account);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    for (key, value) in &options.given {
        let known: AzureConfigKey =
            key.parse().map_err(|_| refuse(format!("Azure has no setting called {key:?}")))?;
        builder = builder.with_config(known, value);
    }
    let Some(account) = builder.get_config_value(&AzureConfigKey::AccountName) else {
        return Err(refuse("no storage account is named")
            .remedy("set AZURE_STORAGE_ACCOUNT_NAME, or write az://container?account=name"));
    };
    let endpoint = builder
        .get_config_value(&AzureConfigKey::Endpoint)
        .unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
    let base = format!("{}/{}", endpoint.trim_end_matches('/'), options.bucket);
    let azure = Arc::new(builder.build().map_err(|error| unbuilt(Cloud::Azure, &error))?);
    Ok(Objects {
        cloud: Cloud::Azure,
        bucket: options.bucket.clone(),
        store: azure.clone(),
        pages: azure.clone(),
        eraser: Box::new(Authorized { azure, account, base }),
        wire: wire.clone(),
    })
}

/// Removes by a request with the same credentials as the rest.
#[derive(Debug)]
struct Authorized {
    azure: Arc<MicrosoftAzure>,
    account: String,
    base: String,
}

#[async_trait]
impl Eraser for Authorized {
    async fn request(
        &self,
        key: &Path,
        version: &Version,
    ) -> Result<Request<HttpRequestBody>, String> {
        let condition = HeaderValue::from_str(version.as_str()).map_err(|e| e.to_string())?;
        let credential = self.azure.credentials().get_credential().await;
        let credential = credential.map_err(|error| chain(&error))?;
        let mut request = Request::builder()
            .method(Method::DELETE)
            .uri(format!("{}/{key}", self.base))
            .header(IF_MATCH, condition)
            .body(HttpRequestBody::empty())
            .map_err(|error| error.to_string())?;
        let signer = AzureAuthorizer::new(&credential, &self.account);
        signer.try_authorize(&mut request).map_err(|error| chain(&error))?;
        Ok(request)
    }
}
