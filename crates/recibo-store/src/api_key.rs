//! API keys: `rcb_<id>_<secret>`. Only a digest of the secret is kept. The secret has 256
//! random bits, so a plain SHA-256 cannot be guessed back; it is compared in constant time.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use recibo_core::hash::sha256;
use recibo_core::id::Namespace;
use recibo_core::time::Time;
use subtle::ConstantTimeEq;

use crate::codec::ApiKeyRow;

/// A key to be created; the secret is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyDraft {
    /// Part of the key that names it.
    pub id: String,
    /// Digest of the secret part.
    pub digest: [u8; 32],
    /// A word of the API; the store does not read it.
    pub role: String,
    /// The namespace that the key is bound to.
    pub namespace: Namespace,
    /// How long it is good, in milliseconds; `None` for ever.
    pub expires_ms: Option<u64>,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyInfo {
    /// Part of the key that names it.
    pub id: String,
    /// A word of the API.
    pub role: String,
    /// The namespace that the key is bound to.
    pub namespace: Namespace,
    /// When it was created.
    pub created_at: Time,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}

/// A new key: the text for its owner, shown once, and what is kept.
pub fn make(
    random: &[u8; 48],
    role: &str,
    namespace: Namespace,
    expires_ms: Option<u64>,
) -> (String, ApiKeyDraft) {
    let id = data_encoding::BASE32HEX_NOPAD.encode(&random[..10]).to_lowercase();
    let secret = data_encoding::BASE64URL_NOPAD.encode(&random[16..]);
    let draft = ApiKeyDraft {
        id: id.clone(),
        digest: sha256(&[secret.as_bytes()]),
        role: role.to_owned(),
        namespace,
        expires_ms,
    };
    (format!("rcb_{id}_{secret}"), draft)
}

/// All keys, in memory. The writer changes them, every request reads them.
#[derive(Clone, Default)]
pub(crate) struct ApiKeys(Arc<RwLock<HashMap<String, Known>>>);

struct Known {
    row: ApiKeyRow,
    /// `None` if its namespace is none: such a key is good for nothing.
    info: Option<Arc<ApiKeyInfo>>,
}

impl ApiKeys {
    pub(crate) fn put(&self, id: String, row: ApiKeyRow) {
        self.0
            .write()
            .expect("no holder panics")
            .insert(id.clone(), Known { info: info(&id, &row).map(Arc::new), row });
    }

    pub(crate) fn row(&self, id: &str) -> Option<ApiKeyRow> {
        self.0.read().expect("no holder panics").get(id).map(|known| known.row.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().expect("no holder panics").is_empty()
    }

    /// The key that this text is, if it is good now.
    pub(crate) fn authenticate(&self, text: &str, now: Time) -> Option<Arc<ApiKeyInfo>> {
        let (id, secret) = text.strip_prefix("rcb_")?.split_once('_')?;
        let digest = sha256(&[secret.as_bytes()]);
        let keys = self.0.read().expect("no holder panics");
        let Known { row, info } = keys.get(id)?;
        let is_right: bool = row.digest.ct_eq(&digest).into();
        let is_good = row.revoked_ms.is_none() && row.expires_ms.is_none_or(|end| now.ms() < end);
        if is_right && is_good { info.clone() } else { None }
    }

    /// All keys, oldest first.
    pub(crate) fn list(&self) -> Vec<ApiKeyInfo> {
        let keys = self.0.read().expect("no holder panics");
        let mut list: Vec<ApiKeyInfo> =
            keys.values().filter_map(|known| known.info.as_deref().cloned()).collect();
        list.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        list
    }
}

fn info(id: &str, row: &ApiKeyRow) -> Option<ApiKeyInfo> {
    Some(ApiKeyInfo {
        id: id.to_owned(),
        role: row.role.clone(),
        namespace: Namespace::parse(&row.namespace).ok()?,
        created_at: Time::from_ms(row.created_ms),
        expires_at: row.expires_ms.map(Time::from_ms),
        revoked_at: row.revoked_ms.map(Time::from_ms),
    })
}
