//! Who asks: the API key in the `Authorization` header. The first thing that is judged.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use recibo_api::{Action, Code, Roles};
use recibo_core::id::Namespace;

use crate::app::App;
use crate::failure::Failure;

/// A caller with a valid API key.
pub(crate) struct Caller {
    roles: Roles,
    /// What the key is bound to: nothing else is ever looked at.
    pub(crate) namespace: Namespace,
    /// Names the API key.
    pub(crate) api_key_id: String,
}

impl Caller {
    /// Whether one of the key's roles permits an action. For after the shape of the request.
    pub(crate) fn may(&self, action: Action) -> Result<(), Failure> {
        Ok(self.roles.permit(action)?)
    }

    /// Ends once the key is revoked or its time is over, with what to answer then.
    pub(crate) async fn ended(&self, app: &App) -> Failure {
        app.store().api_key_ended(&self.api_key_id).await;
        refused("the API key is not valid any more")
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Some(api_key) = bearer(&parts.headers) else {
            return Err(refused("an API key is needed: Authorization: Bearer <API key>"));
        };
        // Unknown, expired and revoked keys look the same.
        let known = app.store().authenticate(api_key);
        let Some(info) = known else { return Err(refused("the API key is not valid")) };
        match Roles::parse(&info.roles) {
            Some(roles) => {
                Ok(Self { roles, namespace: info.namespace.clone(), api_key_id: info.id.clone() })
            }
            None => {
                tracing::error!(id = info.id, "an API key has a role that this version has not");
                Err(refused("the API key is not valid"))
            }
        }
    }
}

fn refused(detail: &str) -> Failure {
    Failure::new(Code::Unauthenticated, detail)
}

/// The one bearer credential. Two headers may mean two things to two readers.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, api_key) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(api_key.trim())
}
