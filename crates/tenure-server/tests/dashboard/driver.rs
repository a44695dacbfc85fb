//! A real Chromium, driven over WebDriver: JSON over plain HTTP.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_testkit::until;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Where ChromeDriver is.
const VARIABLE: &str = "TENURE_TEST_CHROMEDRIVER_URL";

/// Less than the limit of every wait: what the page shows tells why it is in vain.
const PATIENCE: Duration = Duration::from_secs(30);

/// Keys that are no letters, as WebDriver has them.
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ESCAPE: &str = "\u{e00c}";
pub(crate) const DOWN: &str = "\u{e015}";

/// How the protocol marks an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with a new profile. It is closed when it is dropped, however the test ends.
pub(crate) struct Browser {
    /// Host and port of the driver.
    at: String,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts one; `None` where there is no driver.
    pub(crate) async fn start() -> Option<Self> {
        let at = std::env::var(VARIABLE).ok()?.trim_start_matches("http://").to_owned();
        let profile = tempfile::tempdir().unwrap();
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            // A stranger's name that leads here: what DNS rebinding does.
            "--host-resolver-rules=MAP rebound.example 127.0.0.1",
            "--window-size=1280,800",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": args },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let said = ask(&at, "POST", "/session", Some(&wanted)).await;
        let session = said["sessionId"].as_str().unwrap_or_else(|| panic!("no browser: {said}"));
        Some(Self { session: session.to_owned(), at, _profile: profile })
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        ask(&self.at, "POST", &format!("/session/{}{path}", self.session), Some(body)).await
    }

    async fn get(&self, path: &str) -> Value {
        ask(&self.at, "GET", &format!("/session/{}{path}", self.session), None).await
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) async fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url })).await;
    }

    pub(crate) async fn url(&self) -> String {
        self.get("/url").await.as_str().unwrap_or_default().to_owned()
    }

    /// Runs the body of a function in the page; promises are waited for.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] })).await
    }

    /// Runs a script with one argument.
    pub(crate) async fn run_with(&self, script: &str, arg: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [arg] })).await
    }

    /// A verb of Chromium's own protocol.
    pub(crate) async fn chromium(&self, verb: &str, params: Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": verb, "params": params })).await
    }

    /// Runs a script in each page before the page's own.
    pub(crate) async fn before_each_page(&self, script: &str) {
        self.chromium("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await;
    }

    /// Light or dark.
    pub(crate) async fn scheme(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.chromium("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// Presses keys, as a person does: on what has the focus.
    pub(crate) async fn keys(&self, keys: &str) {
        let presses = keys.chars().flat_map(|key| {
            let key = key.to_string();
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        });
        let presses: Vec<_> = presses.collect();
        let actions = json!([{ "type": "key", "id": "keyboard", "actions": presses }]);
        self.post("/actions", &json!({ "actions": actions })).await;
    }

    /// Clicks on the first element that fits.
    pub(crate) async fn click(&self, css: &str) {
        let wanted = json!({ "using": "css selector", "value": css });
        let found = self.post("/element", &wanted).await;
        let id = found[ELEMENT].as_str().unwrap_or_else(|| panic!("{css}: {found}"));
        self.post(&format!("/element/{id}/click"), &json!({})).await;
    }

    /// What the page shows as text.
    pub(crate) async fn text(&self, css: &str) -> String {
        let script = "const found = document.querySelector(arguments[0]); \
                      return found ? found.innerText : null;";
        self.run_with(script, css).await.as_str().unwrap_or_default().to_owned()
    }

    /// How many elements fit.
    pub(crate) async fn count(&self, css: &str) -> u64 {
        let script = "return document.querySelectorAll(arguments[0]).length;";
        self.run_with(script, css).await.as_u64().unwrap_or_default()
    }

    /// Waits until a script says something else than nothing, no or zero.
    pub(crate) async fn until(&self, what: &str, script: &str) -> Value {
        let mut said = Value::Null;
        let began = Instant::now();
        until(what, async || {
            said = self.run(script).await;
            if began.elapsed() > PATIENCE {
                panic!("{what} did not come; the page shows:\n{}", self.text("body").await);
            }
            !matches!(said, Value::Null | Value::Bool(false)) && said != json!(0)
        })
        .await;
        said
    }

    /// What the browser complained of since it was asked last: scripts that failed, and what
    /// the policy kept out.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({ "type": "browser" })).await;
        let entries = entries.as_array().cloned().unwrap_or_default();
        let said = entries.iter().filter_map(|entry| entry["message"].as_str());
        said.map(str::to_owned).collect()
    }

    /// The picture of what is in sight, as a PNG file.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        let text = self.get("/screenshot").await;
        from_base64(text.as_str().unwrap_or_default())
    }

    /// The size of what is in sight.
    pub(crate) async fn size(&self, width: u32, height: u32, scale: f64) {
        let params = json!({
            "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false,
        });
        self.chromium("Emulation.setDeviceMetricsOverride", params).await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let Ok(mut stream) = std::net::TcpStream::connect(&self.at) else { return };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        let line = request(&self.at, "DELETE", &format!("/session/{}", self.session), None);
        let _ = stream.write_all(line.as_bytes());
        // The answer comes when the browser has ended.
        let _ = stream.read(&mut [0; 64]);
    }
}

fn request(at: &str, method: &str, path: &str, body: Option<&Value>) -> String {
    let body = body.map(Value::to_string).unwrap_or_default();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Asks the driver; what it answers. An error of it ends the test.
async fn ask(at: &str, method: &str, path: &str, body: Option<&Value>) -> Value {
    let stream = TcpStream::connect(at).await.expect("the driver listens");
    let mut stream = BufReader::new(stream);
    stream.write_all(request(at, method, path, body).as_bytes()).await.unwrap();
    // It leaves the connection open, whatever it is told.
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let head = line.trim().to_ascii_lowercase();
        if let Some(given) = head.strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
        if head.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let said: Value = serde_json::from_slice(&body).unwrap();
    let value = said["value"].clone();
    assert!(value.get("error").is_none(), "{method} {path}: {value}");
    value
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(value).collect();
    let whole = |group: &[u8]| {
        let bits = group.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(whole).collect()
}
