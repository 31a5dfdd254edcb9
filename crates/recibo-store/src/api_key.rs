//! API keys: `rcb_<id>_<secret>`. Only a digest of the secret is kept. The secret has 256
//! random bits, so a plain SHA-256 cannot be guessed back; it is compared in constant time.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use recibo_core::hash::sha256;
use recibo_core::id::Namespace;
use recibo_core::time::Time;
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::codec::ApiKeyRow;
use crate::store::Store;

/// A key without an end is looked at when keys change. Far away, since a timer needs some end.
const LOOK_AGAIN: Duration = Duration::from_secs(86_400);

/// A key to be created; the secret is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyDraft {
    /// Part of the key that names it.
    pub id: String,
    /// Digest of the secret part.
    pub digest: [u8; 32],
    /// Words of the API, joined by commas.
    pub roles: String,
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
    /// Words of the API, joined by commas.
    pub roles: String,
    /// The namespace that the key is bound to.
    pub namespace: Namespace,
    /// When it was created.
    pub created_at: Time,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}

/// What became of a request to revoke a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// It is not valid any more, since now or since long.
    Yes,
    /// There is no key of this id.
    NotKnown,
    /// It is the last key of the role that was to be kept, and stays.
    LastOfRole,
}

/// A new key: the text for its owner, shown once, and what is kept.
pub fn make(
    random: &[u8; 48],
    roles: &str,
    namespace: Namespace,
    expires_ms: Option<u64>,
) -> (String, ApiKeyDraft) {
    let id = data_encoding::BASE32HEX_NOPAD.encode(&random[..10]).to_lowercase();
    let secret = data_encoding::BASE64URL_NOPAD.encode(&random[16..]);
    let draft = ApiKeyDraft {
        id: id.clone(),
        digest: sha256(&[secret.as_bytes()]),
        roles: roles.to_owned(),
        namespace,
        expires_ms,
    };
    (format!("rcb_{id}_{secret}"), draft)
}

/// All keys, in memory. The writer changes them, every request reads them.
#[derive(Clone)]
pub(crate) struct ApiKeys {
    keys: Arc<RwLock<HashMap<String, Known>>>,
    /// Wakes those who serve a key for longer than a moment.
    changed: watch::Sender<()>,
}

impl Default for ApiKeys {
    fn default() -> Self {
        Self { keys: Arc::default(), changed: watch::channel(()).0 }
    }
}

struct Known {
    row: ApiKeyRow,
    /// `None` if its namespace is not well formed: such a key is good for nothing.
    info: Option<Arc<ApiKeyInfo>>,
}

impl Known {
    /// Whether it is good at a time.
    fn is_good(&self, now: Time) -> bool {
        self.row.revoked_ms.is_none() && self.row.expires_ms.is_none_or(|end| now.ms() < end)
    }

    /// Whether it is good for ever, in a role.
    fn is_lasting(&self, role: &str) -> bool {
        let has_role = self.row.roles.split(',').any(|word| word == role);
        let is_lasting = self.row.revoked_ms.is_none() && self.row.expires_ms.is_none();
        has_role && is_lasting && self.info.is_some()
    }
}

impl ApiKeys {
    pub(crate) fn put(&self, id: String, row: ApiKeyRow) {
        let known = Known { info: info(&id, &row).map(Arc::new), row };
        self.keys.write().expect("no holder panics").insert(id, known);
        self.changed.send_replace(());
    }

    /// Whether a key is the only one that is good for ever in a role.
    pub(crate) fn is_last(&self, id: &str, role: &str) -> bool {
        let keys = self.keys.read().expect("no holder panics");
        let mut lasting = keys.iter().filter(|(_, known)| known.is_lasting(role));
        lasting.next().is_some_and(|(only, _)| only == id) && lasting.next().is_none()
    }

    /// How long a key is good from a time on: `None` for ever, zero if it is not.
    fn time_left(&self, id: &str, now: Time) -> Option<Duration> {
        let keys = self.keys.read().expect("no holder panics");
        match keys.get(id).filter(|known| known.is_good(now)) {
            None => Some(Duration::ZERO),
            Some(known) => {
                known.row.expires_ms.map(|end| Duration::from_millis(end.saturating_sub(now.ms())))
            }
        }
    }

    pub(crate) fn row(&self, id: &str) -> Option<ApiKeyRow> {
        self.keys.read().expect("no holder panics").get(id).map(|known| known.row.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.read().expect("no holder panics").is_empty()
    }

    /// The key that this text is, if it is good now.
    pub(crate) fn authenticate(&self, text: &str, now: Time) -> Option<Arc<ApiKeyInfo>> {
        let (id, secret) = text.strip_prefix("rcb_")?.split_once('_')?;
        let digest = sha256(&[secret.as_bytes()]);
        let keys = self.keys.read().expect("no holder panics");
        let known = keys.get(id)?;
        let is_right: bool = known.row.digest.ct_eq(&digest).into();
        if is_right && known.is_good(now) { known.info.clone() } else { None }
    }

    /// All keys, oldest first.
    pub(crate) fn list(&self) -> Vec<ApiKeyInfo> {
        let keys = self.keys.read().expect("no holder panics");
        let mut list: Vec<ApiKeyInfo> =
            keys.values().filter_map(|known| known.info.as_deref().cloned()).collect();
        list.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        list
    }
}

impl Store {
    /// Ends once an API key is not good any more: revoked, or its time is over. Needs a runtime
    /// with time.
    pub async fn api_key_ended(&self, id: &str) {
        let keys = self.api_keys_in_memory();
        let mut changed = keys.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let left = keys.time_left(id, self.now());
            if left == Some(Duration::ZERO) {
                return;
            }
            tokio::select! {
                // The sender lives in the store.
                _ = changed.changed() => {}
                () = sleep(left.unwrap_or(LOOK_AGAIN)) => {}
            }
        }
    }
}

fn info(id: &str, row: &ApiKeyRow) -> Option<ApiKeyInfo> {
    Some(ApiKeyInfo {
        id: id.to_owned(),
        roles: row.roles.clone(),
        namespace: Namespace::parse(&row.namespace).ok()?,
        created_at: Time::from_ms(row.created_ms),
        expires_at: row.expires_ms.map(Time::from_ms),
        revoked_at: row.revoked_ms.map(Time::from_ms),
    })
}
