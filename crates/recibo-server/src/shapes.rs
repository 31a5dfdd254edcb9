//! Which texts and numbers the parameters of paths and queries are, in the document. One table,
//! since each name means the same wherever it stands. What enforces it is `path` and `query`.

use recibo_core::status::CallState;
use utoipa::openapi::path::{Operation, Parameter, PathItem};
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{OpenApi, RefOr, Required};

/// 1 to 256 bytes of 0x21 to 0x7E without `/`, not `.` and not `..`. Without look-ahead, which
/// not every reader of the document has.
const ID: &str = r"^([!-.0-~]{3,256}|[!-\-0-~][!-.0-~]?|\.[!-\-0-~])$";
const TOKEN: &str = r"^zc-receipt-(0|[1-9][0-9]{0,19})-[A-Za-z0-9_-]{43}$";

/// Completes every parameter, and says where a body may be left out.
pub(crate) fn complete(document: &mut OpenApi) {
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter {
                complete_parameter(parameter);
            }
        }
        if operation.operation_id.as_deref() == Some("open_scope") {
            // Left out is not null: null is refused like any other value that is no object.
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                body.required = Some(Required::False);
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}

fn complete_parameter(parameter: &mut Parameter) {
    let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { return };
    match parameter.name.as_str() {
        "run_id" | "tool_call_id" | "scope_id" | "key" => text(schema, ID),
        "token" => text(schema, TOKEN),
        "n" => {
            schema.minimum = Some(1_i64.into());
            schema.maximum = Some(i64::from(u32::MAX).into());
            // The next smaller format of numbers has a sign.
            schema.format = None;
        }
        "state" => {
            let states = CallState::ALL.iter().filter(|state| **state != CallState::Absent);
            schema.enum_values = Some(states.map(|state| state.as_str().into()).collect());
        }
        "order" => schema.enum_values = Some(vec!["asc".into()]),
        _ => {}
    }
}

fn text(schema: &mut Object, pattern: &str) {
    schema.pattern = Some(pattern.to_owned());
}
