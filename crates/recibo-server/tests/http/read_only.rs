//! A ledger that is open for reading only.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use recibo_core::id::Namespace;
use recibo_server::{App, Settings, router};
use recibo_store::{Config, ManualClock, ReadOnlyCause, Store, api_key};
use serde_json::Value;
use tower::ServiceExt;

use crate::harness::{START_MS, entropy};

#[tokio::test]
async fn a_ledger_that_is_only_read_answers_reads_and_says_why_it_takes_no_writes() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(START_MS));
    let config = Config { cache_bytes: 1 << 20, ..Config::default() };
    let store = Store::open(folder.path(), config, clock.clone(), entropy(1)).unwrap();
    let name = Namespace::parse("default").unwrap();
    let (key, draft) = api_key::make(&[7; 48], "admin", name, None);
    store.create_api_key(draft).await.unwrap();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();

    let cause = ReadOnlyCause::Full;
    let store = Store::open_read_only(folder.path(), config, clock, entropy(2), cause).unwrap();
    let router = router(App::new(store, Settings::default(), entropy(3)));
    for (method, path, status) in [
        ("GET", "/livez", 200),
        ("GET", "/v1/calls", 200),
        ("GET", "/v1/api-keys", 200),
        ("GET", "/v1/effects/policy", 200),
        ("GET", "/readyz", 503),
        ("POST", "/v1/scopes", 503),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("authorization", format!("Bearer {key}"));
        let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        if status == 503 {
            assert_eq!(body["code"], "read_only", "{body}");
            let detail =
                "the ledger is open for reading only: its disk is full; nothing was stored";
            assert_eq!(body["detail"], detail);
        }
    }
}
