//! Who asks: the API key in the `Authorization` header or, without one, whoever may open the socket
//! in the data folder. The first thing that is judged.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use recibo_api::{Action, Code, Role, Roles};
use recibo_core::id::Namespace;

use crate::app::App;
use crate::connection::Peer;
use crate::failure::Failure;

/// What the socket of the data folder permits without an API key.
const LOCAL_ROLES: [Role; 2] = [Role::Adapter, Role::Reader];

/// A caller with a valid API key, or with none on the socket of the data folder.
pub(crate) struct Caller {
    roles: Roles,
    /// What the caller is bound to: nothing else is ever looked at.
    pub(crate) namespace: Namespace,
    /// Names the API key.
    api_key_id: Option<String>,
}

impl Caller {
    /// Whether one of the roles permits an action. For after the shape of the request.
    pub(crate) fn may(&self, action: Action) -> Result<(), Failure> {
        let whose = match &self.api_key_id {
            Some(_) => "the API key's",
            None => "without an API key the",
        };
        Ok(self.roles.permit_as(whose, action)?)
    }

    /// Who that is, as events name it.
    pub(crate) fn by(&self) -> String {
        self.api_key_id.clone().unwrap_or_else(|| "local".to_owned())
    }

    /// Ends once the key is revoked or its time is over, with what to answer then.
    pub(crate) async fn ended(&self, app: &App) -> Failure {
        match &self.api_key_id {
            Some(id) => app.store().api_key_ended(id).await,
            None => std::future::pending().await,
        }
        refused("the API key is not valid any more")
    }

    fn local() -> Self {
        Self {
            roles: Roles::new(LOCAL_ROLES).expect("two roles are some"),
            namespace: Namespace::parse("default").expect("a good name"),
            api_key_id: None,
        }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let is_local = matches!(parts.extensions.get(), Some(Peer::Process(_)));
        if is_local && !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(Self::local());
        }
        let Some(api_key) = bearer(&parts.headers) else {
            return Err(refused("an API key is needed: Authorization: Bearer <API key>"));
        };
        // Unknown, expired and revoked keys look the same.
        let known = app.store().authenticate(api_key);
        let Some(info) = known else { return Err(refused("the API key is not valid")) };
        match Roles::parse(&info.roles) {
            Some(roles) => Ok(Self {
                roles,
                namespace: info.namespace.clone(),
                api_key_id: Some(info.id.clone()),
            }),
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
