//! A service in memory, its callers, and what they get.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use recibo_api::Role;
use recibo_core::id::Namespace;
use recibo_server::{App, Settings, router};
use recibo_store::{Config, Entropy, ManualClock, Store, api_key};
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) const START_MS: u64 = 1_789_264_800_000;

const SMALL: Config = Config { cache_bytes: 1 << 20, queue_len_max: 64 };

/// Bytes that differ from draw to draw, the same in every run.
pub(crate) fn entropy(mut state: u64) -> Entropy {
    Box::new(move |bytes| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            *byte = (state >> 56) as u8;
        }
    })
}

/// A disk in memory that can be told to fail or to hang.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// What a restart finds.
    bytes: Arc<redb::backends::InMemoryBackend>,
    pub(crate) faults: Arc<Faults>,
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) fails: AtomicBool,
    /// While it is held, nothing gets durable.
    pub(crate) gate: std::sync::Mutex<()>,
    /// Set once somebody has come to the gate while it was held.
    pub(crate) hangs: AtomicBool,
}

impl Faults {
    fn check(&self) -> Result<(), std::io::Error> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("DISKTEXT is not for clients"));
        }
        Ok(())
    }
}

impl redb::StorageBackend for Disk {
    fn len(&self) -> Result<u64, std::io::Error> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), std::io::Error> {
        self.faults.check()?;
        self.bytes.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), std::io::Error> {
        self.bytes.set_len(len)
    }

    fn sync_data(&self) -> Result<(), std::io::Error> {
        if self.faults.gate.try_lock().is_err() {
            self.faults.hangs.store(true, Ordering::SeqCst);
            drop(self.faults.gate.lock());
        }
        self.faults.check()?;
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), std::io::Error> {
        self.bytes.write(offset, data)
    }
}

pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) faults: Arc<Faults>,
    bytes: Arc<redb::backends::InMemoryBackend>,
    keys: BTreeMap<(Role, &'static str), String>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default(), SMALL).await
    }

    pub(crate) async fn with(settings: Settings, config: Config) -> Self {
        Self::on(Arc::default(), START_MS, settings, config).await
    }

    /// Stops the ledger and starts it again when the wall clock stands there.
    pub(crate) async fn again_at(self, wall_ms: u64) -> Self {
        self.stop_ledger().await;
        let Self { bytes, app, router, .. } = self;
        let settings = *app.settings();
        drop((app, router));
        Self::on(bytes, wall_ms, settings, SMALL).await
    }

    async fn on(
        bytes: Arc<redb::backends::InMemoryBackend>,
        wall_ms: u64,
        settings: Settings,
        config: Config,
    ) -> Self {
        let disk = Disk { bytes: bytes.clone(), ..Disk::default() };
        let faults = disk.faults.clone();
        let clock = Arc::new(ManualClock::at(wall_ms));
        // Each start is on another boot: only then does the wall clock count.
        clock.boot(wall_ms);
        let store = Store::on_disk(disk, config, clock.clone(), entropy(1), [7; 32]).unwrap();
        let mut keys = BTreeMap::new();
        let mut draw = entropy(2);
        for namespace in ["blue", "green"] {
            for role in Role::ALL {
                let mut random = [0; 48];
                draw(&mut random);
                let name = Namespace::parse(namespace).unwrap();
                let (text, draft) = api_key::make(&random, role.as_str(), name, None);
                store.create_api_key(draft).await.unwrap();
                keys.insert((*role, namespace), text);
            }
        }
        let app = App::new(store, settings, entropy(3));
        Self { router: router(app.clone()), app, clock, faults, bytes, keys }
    }

    pub(crate) fn key(&self, role: Role) -> &str {
        &self.keys[&(role, "blue")]
    }

    pub(crate) fn foreign_key(&self, role: Role) -> &str {
        &self.keys[&(role, "green")]
    }

    /// A request of a caller of the usual namespace.
    pub(crate) fn ask(&self, role: Role, method: &str, path: &str) -> Ask<'_> {
        self.ask_with(self.key(role), method, path)
    }

    pub(crate) fn ask_with(&self, api_key: &str, method: &str, path: &str) -> Ask<'_> {
        self.anonymous(method, path).header("authorization", &format!("Bearer {api_key}"))
    }

    pub(crate) fn anonymous(&self, method: &str, path: &str) -> Ask<'_> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
        *request.uri_mut() = path.parse().unwrap();
        Ask { service: self, request }
    }

    /// Opens a scope.
    pub(crate) async fn scope(&self) -> String {
        let reply = self.ask(Role::Adapter, "POST", "/v1/scopes").send().await;
        reply.expect(201).text("scope_id")
    }

    /// Claims attempt 1 of a call of run `r`; answers its lease token.
    pub(crate) async fn claim(&self, scope_id: &str, call: &str, effect: &str) -> String {
        let path = format!("/v1/runs/r/calls/{call}/attempts");
        let body = claim_body(scope_id, &format!("c-{call}"), effect);
        let reply = self.ask(Role::Adapter, "POST", &path).json(body).send().await;
        reply.expect(201).body()["lease"]["token"].as_str().unwrap().to_owned()
    }

    /// Reports attempt 1 of a call of run `r`.
    pub(crate) async fn report(&self, call: &str, body: Value) -> Reply {
        let path = format!("/v1/runs/r/calls/{call}/attempts/1/outcome");
        self.ask(Role::Adapter, "POST", &path).json(body).send().await
    }

    /// A call of run `r` that is done; answers its record.
    pub(crate) async fn done(&self, scope_id: &str, call: &str) -> Value {
        let lease_token = self.claim(scope_id, call, "read_only").await;
        self.report(call, ok_body(&lease_token)).await.expect(200).body()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Role::Reader, "GET", path).send().await
    }

    /// Stops the ledger.
    pub(crate) async fn stop_ledger(&self) {
        let store = self.app.store().clone();
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    }
}

pub(crate) fn claim_body(scope_id: &str, claim_id: &str, effect: &str) -> Value {
    json!({
        "scope_id": scope_id, "claim_id": claim_id, "tool": "crm/lookup", "effect": effect,
        "input": {"customer": 17}, "lease_ms": 30_000,
    })
}

pub(crate) fn ok_body(lease_token: &str) -> Value {
    json!({"lease_token": lease_token, "status": "ok", "duration_ms": 12, "output": "done"})
}

pub(crate) fn one_shot_body(scope_id: &str, call: &str) -> Value {
    json!({
        "run_id": "r", "tool_call_id": call, "scope_id": scope_id, "tool": "mail/send",
        "status": "ok", "started_at": "2026-09-13T02:00:00.000Z", "duration_ms": 3,
        "input": {"to": "x"}, "output": "sent",
    })
}

/// A request under construction.
pub(crate) struct Ask<'s> {
    service: &'s Service,
    request: Request<Body>,
}

impl Ask<'_> {
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.request.headers_mut().insert(name, value.parse().unwrap());
        self
    }

    pub(crate) fn json(self, body: Value) -> Self {
        self.raw(body.to_string()).header("content-type", "application/json")
    }

    pub(crate) fn raw(mut self, body: impl Into<Body>) -> Self {
        *self.request.body_mut() = body.into();
        self
    }

    /// The answer as soon as its head is there; its body is not read.
    pub(crate) async fn begin(self) -> Response {
        self.service.router.clone().oneshot(self.request).await.unwrap()
    }

    pub(crate) async fn send(self) -> Reply {
        let (parts, body) = self.begin().await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        Reply { status: parts.status, headers: parts.headers, bytes }
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn expect(self, status: u16) -> Self {
        let text = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status.as_u16(), status, "{text}");
        self
    }

    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.body()[name].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}
