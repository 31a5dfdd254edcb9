//! Page sizes and page tokens. A token names a place in one listing with certain filters;
//! with others it is refused, since it would skip or repeat rows silently.

use data_encoding::BASE64URL_NOPAD;
use recibo_core::hash::sha256;
use recibo_core::limits;
use recibo_core::receipt::frame;

use crate::problem::{Code, Problem};

/// Form of the tokens: the version, the listing's digest, the position.
const VERSION: u8 = 1;
const DIGEST_LEN: usize = 8;
const TOKEN_LEN: usize = 1 + DIGEST_LEN + 8;

/// One listing with its filters. Not a secret and no authority: every page is looked up
/// within the namespace of the API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing([u8; DIGEST_LEN]);

impl Listing {
    /// Names a listing: its kind (`calls`, `run_calls`) and every filter in effect, in a fixed
    /// order, the sort order among them. The page size is no filter.
    pub fn new(kind: &str, filters: &[(&str, &str)]) -> Self {
        let mut fields: Vec<&[u8]> = vec![b"recibo-listing-v1", kind.as_bytes()];
        for (name, value) in filters {
            fields.extend([name.as_bytes(), value.as_bytes()]);
        }
        let digest = sha256(&[&frame(&fields)]);
        let mut short = [0; DIGEST_LEN];
        short.copy_from_slice(&digest[..DIGEST_LEN]);
        Self(short)
    }

    /// The token for the page that begins at a position.
    pub fn token(&self, position: u64) -> String {
        let mut bytes = [VERSION; TOKEN_LEN];
        bytes[1..=DIGEST_LEN].copy_from_slice(&self.0);
        bytes[1 + DIGEST_LEN..].copy_from_slice(&position.to_be_bytes());
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// The position that a token names.
    ///
    /// # Errors
    /// `invalid_page_token` for anything but a token of this listing.
    pub fn position(&self, token: &str) -> Result<u64, Problem> {
        let problem = || {
            Problem::new(
                Code::InvalidPageToken,
                "a page_token is valid only for the listing and the filters it was given for",
            )
        };
        let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).map_err(|_| problem())?;
        let bytes: [u8; TOKEN_LEN] = bytes.try_into().map_err(|_| problem())?;
        let mut position = [0; 8];
        position.copy_from_slice(&bytes[1 + DIGEST_LEN..]);
        if bytes[0] != VERSION || bytes[1..=DIGEST_LEN] != self.0 {
            return Err(problem());
        }
        Ok(u64::from_be_bytes(position))
    }
}

/// Rows of a page: 1 to 500, 50 when none is named.
///
/// # Errors
/// `invalid_query` for anything else.
pub fn page_size(text: Option<&str>) -> Result<usize, Problem> {
    let Some(text) = text else { return Ok(limits::PAGE_SIZE_DEFAULT) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let size = text.parse().ok().filter(|_| is_number);
    size.filter(|size| (1..=limits::PAGE_SIZE_MAX).contains(size)).ok_or_else(|| {
        Problem::new(
            Code::InvalidQuery,
            format!("page_size must be an integer from 1 to {}", limits::PAGE_SIZE_MAX),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_only_for_its_listing() {
        let listing = Listing::new("calls", &[("tool", "a"), ("order", "asc")]);
        for position in [0, 1, u64::MAX] {
            let token = listing.token(position);
            assert_eq!(listing.position(&token), Ok(position));
            for other in [
                Listing::new("run_calls", &[("tool", "a"), ("order", "asc")]),
                Listing::new("calls", &[("tool", "a"), ("order", "desc")]),
                Listing::new("calls", &[("tool", "ao"), ("rder", "asc")]),
                Listing::new("calls", &[]),
            ] {
                assert_eq!(other.position(&token).unwrap_err().code, Code::InvalidPageToken);
            }
        }
        let token = listing.token(7);
        for bad in ["", "é", "AAAA", &token[1..], &format!("{token}="), &format!("{token}AA")] {
            assert_eq!(listing.position(bad).unwrap_err().code, Code::InvalidPageToken, "{bad}");
        }
    }

    #[test]
    fn page_sizes_have_bounds() {
        assert_eq!(page_size(None), Ok(50));
        assert_eq!(page_size(Some("1")), Ok(1));
        assert_eq!(page_size(Some("500")), Ok(500));
        for bad in ["", "0", "501", "-1", "+5", "1.0", " 5", "99999999999999999999999"] {
            assert_eq!(page_size(Some(bad)).unwrap_err().code, Code::InvalidQuery, "{bad}");
        }
    }
}
