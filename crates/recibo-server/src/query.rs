//! Query parameters: only those that a route has, each at most once.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use recibo_api::Code;

use crate::failure::Failure;
use crate::path::is_percent_encoded;

/// The parameters of a request, decoded.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// The values of the parameters that the route has.
    ///
    /// # Errors
    /// `invalid_query` for a parameter that it has not, and for one given twice.
    pub(crate) fn take<const N: usize>(
        self,
        names: [&'static str; N],
    ) -> Result<[Option<String>; N], Failure> {
        let mut values = [const { None }; N];
        for (name, value) in self.0 {
            let Some(i) = names.iter().position(|known| *known == name) else {
                return Err(refused(if N == 0 {
                    "there are no query parameters here".to_owned()
                } else {
                    format!("unknown query parameter; there are: {}", names.join(", "))
                }));
            };
            if values[i].replace(value).is_some() {
                return Err(refused(format!("{} is given twice", names[i])));
            }
        }
        Ok(values)
    }
}

/// For routes without parameters.
pub(crate) struct NoQuery;

pub(crate) fn refused(detail: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidQuery, detail)
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        read(parts.uri.query().unwrap_or_default())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        match parts.uri.query() {
            None | Some("") => Ok(Self),
            Some(query) => read(query)?.take([]).map(|[]| Self),
        }
    }
}

fn read(query: &str) -> Result<Query, Failure> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    });
    let pairs: Option<Vec<_>> = pairs.collect();
    pairs.map(Query).ok_or_else(|| refused("the query must be percent-encoded UTF-8"))
}

/// As forms are encoded: a plus sign is a space.
fn decode(text: &str) -> Option<String> {
    let text = if text.contains('+') { text.replace('+', " ").into() } else { Cow::Borrowed(text) };
    if !is_percent_encoded(&text) {
        return None;
    }
    percent_decode_str(&text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_once_and_each_is_taken_once() {
        let taken = |query: &str| read(query).and_then(|q| q.take(["a", "b"])).ok();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(taken(""), Some([None, None]));
        assert_eq!(taken("b=%2525&&a=x+y"), Some([some("x y"), some("%25")]));
        assert_eq!(taken("a"), Some([some(""), None]));
        for bad in ["c=1", "a=1&a=1", "a=%zz", "a=%ff", "%61=1&a=2", "A=1"] {
            assert_eq!(taken(bad), None, "{bad}");
        }
    }
}
