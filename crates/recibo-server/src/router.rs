//! All routes, each with its part of the OpenAPI document, and what happens off them.

use std::sync::LazyLock;

use axum::Router;
use recibo_api::Code;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::failure::Failure;
use crate::problems;
use crate::routes as r;
use crate::shapes;
use crate::trace::Trace;

/// Name of the security scheme that keyed operations need.
pub(crate) const BEARER: &str = "api_key";

/// What concerns all operations, and what no operation can answer.
const DESCRIPTION: &str = "\
An append-only receipt ledger for the tool calls of LLM agents.

A process of the owner of the data folder may leave the API key out on the socket in that folder \
(`service.sock`): there its roles are `adapter` and `reader`, its namespace `default`.

Patterns and lengths are those of decoded ids. Unknown members of bodies and unknown query \
parameters are refused; `null` stands for an optional member that is left out.

Before any operation, a request line or header that is not well-formed HTTP/1.1 is answered 400 \
`malformed_request`, and more than 64 KiB or 100 headers 431 `head_too_large`; the connection is \
then closed. Closed without an answer is a connection whose head did not arrive in time, that \
was idle for too long, that took nothing of its answer, or that made room for another at the \
limit. A path that no operation has is \
answered 404 `not_found`, another method 405 `method_not_allowed`.";

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let document = openapi().to_pretty_json().expect("a document of names has a JSON form");
    document + "\n"
});

/// The service as a router, for a listener or for tests in process.
pub fn router(app: App) -> Router {
    let (router, _) = documented().split_for_parts();
    router
        .fallback(async || Failure::new(Code::NotFound, "no resource has this path"))
        .method_not_allowed_fallback(async || {
            Failure::new(Code::MethodNotAllowed, "the Allow header names what is")
        })
        .layer(Trace)
        .with_state(app)
}

/// The OpenAPI 3.1 document of the service.
pub fn openapi() -> OpenApi {
    let (_, mut document) = documented().split_for_parts();
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, with one or more roles and one namespace"));
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer.build()));
    let (name, schema) = problems::schema();
    components.schemas.insert(name, schema);
    shapes::complete(&mut document);
    document
}

/// The document as it is served, byte for byte.
pub fn openapi_text() -> &'static str {
    &TEXT
}

fn documented() -> OpenApiRouter<App> {
    let info = InfoBuilder::new()
        .title("recibo")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").build()));
    OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info.build()).build())
        .routes(routes!(r::scopes::open))
        .routes(routes!(r::scopes::get, r::scopes::close))
        .routes(routes!(r::claims::claim))
        .routes(routes!(r::outcomes::report))
        .routes(routes!(r::leases::renew))
        .routes(routes!(r::status_checks::check))
        .routes(routes!(r::resolutions::resolve))
        .routes(routes!(r::calls::get))
        .routes(routes!(r::attempts::get))
        .routes(routes!(r::decisions::get))
        .routes(routes!(r::runs::get))
        .routes(routes!(r::runs::calls))
        .routes(routes!(r::receipts_block::get))
        .routes(routes!(r::call_pages::list))
        .routes(routes!(r::idempotency::get))
        .routes(routes!(r::receipts::get))
        .routes(routes!(r::receipts::record))
        .routes(routes!(r::batches::record))
        .routes(routes!(r::verify::receipt))
        .routes(routes!(r::policy::get, r::policy::set))
        .routes(routes!(r::config::get))
        .routes(routes!(r::status::get))
        .routes(routes!(r::api_keys::create, r::api_keys::list))
        .routes(routes!(r::api_keys::revoke))
        .routes(routes!(r::probes::live))
        .routes(routes!(r::probes::ready))
        .routes(routes!(r::document::get))
}
