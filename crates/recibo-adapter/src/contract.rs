//! What a tool does, how long it may take, and what of its result may be seen.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use recibo_core::effect::Effect;
use recibo_core::limits;
use recibo_core::plan::OnTwin;
use recibo_core::status::CheckAnswer;

/// What a lease has beyond the timeout: for the claim, a slow start, and the report.
const LEASE_BEYOND_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one attempt may take when nothing else is said, and how long a tool of unknown length
/// waits for another attempt and for a status.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// What of a result the model may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    Everything,
    /// These members of the result, an object, or of each object in the result, an array.
    /// Nothing else gets through, and nothing of a result that is neither.
    Members(BTreeSet<String>),
}

impl Shown {
    /// These members only.
    pub fn members<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Members(names.into_iter().map(Into::into).collect())
    }
}

/// What a status hook is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusQuestion {
    /// The run.
    pub run_id: String,
    /// The call.
    pub tool_call_id: String,
    /// The attempt that nobody knows the outcome of.
    pub attempt: u32,
    /// What the outside service knows the effect by.
    pub idempotency_key: String,
    /// What the outside service called it, if it has said so.
    pub provider_ref: Option<String>,
}

pub(crate) type Asking = Pin<Box<dyn Future<Output = CheckAnswer> + Send>>;
pub(crate) type StatusHook = dyn Fn(StatusQuestion) -> Asking + Send + Sync;

/// The contract of one tool.
#[derive(Clone)]
pub struct ToolContract {
    pub(crate) tool: String,
    pub(crate) shown: Shown,
    pub(crate) masked: BTreeSet<String>,
    pub(crate) summarized: BTreeSet<String>,
    pub(crate) effect: Option<Effect>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) key_window: Option<Duration>,
    pub(crate) settle: Option<Duration>,
    pub(crate) on_twin: OnTwin,
    pub(crate) twin_window: Option<Duration>,
    lease: Option<Duration>,
    wait: Option<Duration>,
    pub(crate) attempts_max: u32,
    pub(crate) backoff: Duration,
    pub(crate) backoff_max: Duration,
    pub(crate) status_hook: Option<Arc<StatusHook>>,
    pub(crate) checks_max: u32,
    pub(crate) takes_late_answers: bool,
}

impl ToolContract {
    /// A tool by its name (1 to 256 bytes, `server/tool` for instance), and what of its results
    /// may be seen. It has 30 s, 3 attempts where the ledger permits them, and what effect the
    /// policy says, else `opaque`.
    pub fn new(tool: impl Into<String>, shown: Shown) -> Self {
        Self {
            tool: tool.into(),
            shown,
            masked: BTreeSet::new(),
            summarized: BTreeSet::new(),
            effect: None,
            timeout: Some(TIMEOUT_DEFAULT),
            key_window: None,
            settle: None,
            on_twin: OnTwin::Stop,
            twin_window: None,
            lease: None,
            wait: None,
            attempts_max: 3,
            backoff: Duration::from_millis(200),
            backoff_max: Duration::from_secs(5),
            status_hook: None,
            checks_max: 3,
            takes_late_answers: false,
        }
    }

    /// What it does to the world.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// How long the outside service honours an idempotency key; for keyed tools. Holds where the
    /// policy of the namespace has no rule for the tool.
    #[must_use]
    pub fn key_window(mut self, window: Duration) -> Self {
        self.key_window = Some(window);
        self
    }

    /// How long after an attempt's end the outside service's answer is final; for queryable
    /// tools. Holds where the policy of the namespace has no rule for the tool.
    #[must_use]
    pub fn settle(mut self, settle: Duration) -> Self {
        self.settle = Some(settle);
        self
    }

    /// What becomes of a call while another one that does the same may have taken effect, is
    /// under way, or has succeeded without the model having seen it: `stop` (the default) holds
    /// it back and tells the model, `advise` runs it.
    #[must_use]
    pub fn on_twin(mut self, on_twin: OnTwin) -> Self {
        self.on_twin = on_twin;
        self
    }

    /// How long such another call holds this one back; an hour when not given.
    #[must_use]
    pub fn twin_window(mut self, window: Duration) -> Self {
        self.twin_window = Some(window);
        self
    }

    /// How long one attempt may take; `None` for a tool of unknown length, which may take as
    /// long as its lease can be renewed: 24 h.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// How long the ledger keeps others away, 1 s to 24 h: the timeout and 15 s when not given,
    /// or a minute without a timeout. A tool that takes longer has its lease renewed while it
    /// runs; where that fails, it ends with the lease.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long to wait while another attempt is under way; the timeout when not given.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Attempts that one call makes at most, where the ledger permits them.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts.max(1);
        self
    }

    /// The pause before the second attempt; it doubles up to `max`.
    #[must_use]
    pub fn backoff(mut self, first: Duration, max: Duration) -> Self {
        (self.backoff, self.backoff_max) = (first, max);
        self
    }

    /// Members of the result that are seen to be there, without their values.
    #[must_use]
    pub fn masks<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.masked = names.into_iter().map(Into::into).collect();
        self
    }

    /// Members of the result that the ledger keeps as the summary, masked ones without their
    /// values; 2 KiB together, else none. Without any it keeps the shape of what is seen.
    #[must_use]
    pub fn summarizes<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.summarized = names.into_iter().map(Into::into).collect();
        self
    }

    /// After a timeout, waits on for the answer, as long as the lease permits, and records it as
    /// late. Without this the tool's future is dropped at its timeout.
    ///
    /// Only for a tool that sends nothing any more once its time is over: from the reported
    /// timeout on, a status check may find that nothing was executed and permit another attempt,
    /// and a request that leaves after that would be a second effect.
    #[must_use]
    pub fn takes_late_answers(mut self) -> Self {
        self.takes_late_answers = true;
        self
    }

    /// How to ask the outside service what became of an attempt; for queryable tools. An answer
    /// that takes longer than the timeout counts as `indeterminate`. Over HTTP the answer is reported with [`crate::Settings::reconciler`].
    #[must_use]
    pub fn asks_status<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(StatusQuestion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = CheckAnswer> + Send + 'static,
    {
        self.status_hook = Some(Arc::new(move |question| Box::pin(hook(question))));
        self
    }

    pub(crate) fn lease_asked(&self) -> Duration {
        let bounds = [limits::LEASE_MS_MIN, limits::LEASE_MS_MAX].map(Duration::from_millis);
        let of_timeout = self.timeout.map(|timeout| timeout.saturating_add(LEASE_BEYOND_TIMEOUT));
        let default = Duration::from_millis(limits::LEASE_MS_DEFAULT);
        let wanted = self.lease.or(of_timeout).unwrap_or(default);
        wanted.clamp(bounds[0], bounds[1])
    }

    pub(crate) fn wait_asked(&self) -> Duration {
        self.wait.unwrap_or(self.patience())
    }

    /// How long an answer of the outside service is waited for that is no result.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT_DEFAULT)
    }

    /// The pause before the next attempt, after so many.
    pub(crate) fn pause(&self, attempts: u32) -> Duration {
        let factor = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        self.backoff.saturating_mul(factor).min(self.backoff_max)
    }
}

impl fmt::Debug for ToolContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContract")
            .field("tool", &self.tool)
            .field("effect", &self.effect)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit_and_leases_stay_in_bounds() {
        let ms = Duration::from_millis;
        let contract = ToolContract::new("t", Shown::Everything).backoff(ms(10), ms(35));
        let pauses: Vec<_> = [1, 2, 3, 40].map(|n| contract.pause(n)).to_vec();
        assert_eq!(pauses, [ms(10), ms(20), ms(35), ms(35)]);
        assert_eq!(contract.lease_asked(), ms(45_000));
        assert_eq!(contract.clone().timeout(Duration::MAX).lease_asked(), ms(86_400_000));
        assert_eq!(contract.clone().timeout(None).lease_asked(), ms(60_000));
        assert_eq!(contract.lease(ms(1)).lease_asked(), ms(1_000));
    }
}
