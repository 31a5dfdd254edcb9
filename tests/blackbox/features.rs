//! What of the contract the binary is known to have. The model is written from the whole
//! contract; a part that is not built yet is switched off here, and then the model neither asks
//! for it nor expects it.

/// One switch per part.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Claims take `twins`, `twin_window_ms` and `knows`, and are held back by their twins.
    pub twins: bool,
    /// `twin` names the twin that matters most, with its run; not just the newest.
    pub twin_rank: bool,
    /// Rules have `twin_by` and `twin_scope`; claims and one-shots bring `twin_hash`.
    pub twin_by: bool,
    /// Outcomes say whether the caller saw an answer.
    pub answered: bool,
    /// A resolution may name the one that it corrects.
    pub corrects: bool,
    /// `POST .../lease`.
    pub renewal: bool,
    /// Claims bring `key_window_ms` and `settle_ms` where no rule matches.
    pub claim_terms: bool,
    /// Grants and calls show `effect` and `terms`.
    pub answer_terms: bool,
    /// `input_mismatch` says what differs.
    pub differs: bool,
    /// Calls list their resolutions, records their status checks.
    pub shows_words: bool,
    /// Two `ok` attempts of a queryable or opaque call conflict whenever they come.
    pub two_ok: bool,
    /// An answer without a token says why.
    pub no_token_reason: bool,
    /// Ledger time goes on over restarts on the same boot, and leases end as section 7 says.
    pub restarted: bool,
    /// `retry_after_ms` of `check_status` is about the attempts that nobody knows the outcome of,
    /// not about a newer one that is settled.
    pub retry_of_unsettled: bool,
    /// A `keyed` rule without a window is refused.
    pub policy_invalid: bool,
}

impl Features {
    /// The whole contract.
    pub const ALL: Self = Self {
        twins: true,
        twin_rank: true,
        twin_by: true,
        answered: true,
        corrects: true,
        renewal: true,
        claim_terms: true,
        answer_terms: true,
        differs: true,
        shows_words: true,
        two_ok: true,
        no_token_reason: true,
        restarted: true,
        retry_of_unsettled: true,
        policy_invalid: true,
    };

    /// What the binary has today.
    pub const BUILT: Self = Self::ALL;
}
