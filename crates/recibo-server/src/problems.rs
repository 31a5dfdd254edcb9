//! The problem codes of an operation, for the OpenAPI document. Declared beside each handler.

use std::collections::BTreeMap;

use recibo_api::{Code, Problem};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Response, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

/// What every operation with an API key can answer.
pub(crate) const KEYED: &[Code] =
    &[Code::InvalidQuery, Code::Unauthenticated, Code::Forbidden, Code::Internal];

/// What every operation with ids in its path can answer.
pub(crate) const IDS: &[Code] = &[Code::InvalidId];

/// What every operation with a body can answer.
pub(crate) const BODY: &[Code] = &[
    Code::InvalidJson,
    Code::DuplicateMember,
    Code::NumberOutOfRange,
    Code::InvalidRequest,
    Code::InvalidId,
    Code::BodyTimeout,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::Overloaded,
];

/// What every write can answer.
pub(crate) const WRITE: &[Code] = &[Code::Overloaded, Code::LedgerStopped, Code::ReadOnly];

/// Names the problems of an operation: groups, then its own codes.
macro_rules! problems {
    ($name:ident: $($group:ident),* $(; $($code:ident),+)?) => {
        struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::Response>,
            > {
                crate::problems::responses(&[
                    $(crate::problems::$group,)*
                    $(&[$(recibo_api::Code::$code),+],)?
                ])
            }
        }
    };
}
pub(crate) use problems;

/// One response per status, with the codes that it can have.
pub(crate) fn responses(groups: &[&[Code]]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in groups.iter().copied().flatten() {
        let codes = by_status.entry(code.status()).or_default();
        if !codes.contains(code) {
            codes.push(*code);
        }
    }
    let responses = by_status.into_iter().map(|(status, codes)| (status.to_string(), of(&codes)));
    responses.collect()
}

fn of(codes: &[Code]) -> RefOr<Response> {
    let lines: Vec<_> = codes.iter().map(|code| format!("`{code}`: {}.", code.title())).collect();
    let words = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(codes.iter().map(|code| code.as_str())));
    let schema = AllOfBuilder::new()
        .item(Ref::from_schema_name(Problem::name()))
        .item(ObjectBuilder::new().property("code", words));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(lines.join("\n"))
        .content("application/problem+json", content)
        .build()
        .into()
}

/// The schema that the responses refer to.
pub(crate) fn schema() -> (String, RefOr<utoipa::openapi::Schema>) {
    (Problem::name().into_owned(), Problem::schema())
}
