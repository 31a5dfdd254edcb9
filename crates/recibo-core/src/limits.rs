//! Every limit of the ledger in one place, each with its arithmetic or its reason.

/// Bytes of an id (run, call, claim, operation key, message, provider reference).
pub const ID_LEN_MAX: usize = 256;
/// Bytes of a namespace.
pub const NAMESPACE_LEN_MAX: usize = 64;
/// Bytes of a tool name.
pub const TOOL_LEN_MAX: usize = 256;
/// Characters of an `error_class`.
pub const ERROR_CLASS_LEN_MAX: usize = 64;
/// Labels of one call.
pub const LABELS_MAX: usize = 16;
/// Bytes of all label names and values of one call together.
pub const LABELS_BYTES_MAX: usize = 2048;
/// Bytes of an `output_summary` in canonical form.
pub const SUMMARY_BYTES_MAX: usize = 2048;
/// Bytes of a reason or a source of a status check: a sentence or two.
pub const REASON_BYTES_MAX: usize = 1024;
/// Characters of a scope's label.
pub const SCOPE_LABEL_BYTES_MAX: usize = 256;

/// Shortest lease.
pub const LEASE_MS_MIN: u64 = 1_000;
/// Longest lease: a day.
pub const LEASE_MS_MAX: u64 = 86_400_000;
/// Lease when a claim names none.
pub const LEASE_MS_DEFAULT: u64 = 60_000;

/// How long a twin of unknown outcome holds a claim back when none is named: an hour, which is
/// longer than a model tries the same thing again.
pub const TWIN_WINDOW_MS_DEFAULT: u64 = 3_600_000;
/// Late successes that a claim can say it knows of.
pub const KNOWS_MAX: usize = 64;
/// Names in a policy rule's `twin_by`.
pub const TWIN_BY_MAX: usize = 16;
/// Bytes of a name in `twin_by`: a member of a tool's arguments.
pub const TWIN_BY_NAME_LEN_MAX: usize = 128;

/// Scopes of one namespace that live at the same time. About 500 bytes each, so a namespace
/// takes 5 MB of memory at most; a run needs one.
pub const SCOPES_LIVE_MAX: usize = 10_000;

/// Shortest life of a scope key.
pub const SCOPE_TTL_MS_MIN: u64 = 1_000;
/// Longest life of a scope key: 30 days. "Short-lived" is what makes a leaked memory image age.
pub const SCOPE_TTL_MS_MAX: u64 = 30 * 86_400_000;
/// Life of a scope key when none is named: a day.
pub const SCOPE_TTL_MS_DEFAULT: u64 = 86_400_000;

/// Largest duration, age or policy number: what a double holds exactly, since JSON
/// readers in other languages use doubles.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Rules of one effect policy.
pub const POLICY_RULES_MAX: usize = 256;
/// Bytes of an effect policy in canonical form: with the other members of its event it
/// must fit into one line of 16 KiB.
pub const POLICY_BYTES_MAX: usize = 14 * 1024;

/// Bytes of one event line. The largest event is a one-shot with every member full:
/// labels 2 * 2048 (each byte may need a backslash), 7 ids of 256 and a tool of 256 at up
/// to two bytes each, a summary of 2048, three hashes and about 800 bytes of names: 11 KiB.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a request body that holds no result.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the body of an outcome, a one-shot or a batch: they hold results.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// One-shot receipts in a batch.
pub const BATCH_LEN_MAX: usize = 1000;

/// Rows of a page when none is named.
pub const PAGE_SIZE_DEFAULT: usize = 50;
/// Rows of a page.
pub const PAGE_SIZE_MAX: usize = 500;

/// Status checks of one attempt, and resolutions of one call, that an answer shows: the newest.
/// Each is an event of up to 1.5 KiB, so an answer grows by 100 KiB at most.
pub const CHECKS_SHOWN_MAX: usize = 64;

/// Longest wait of a decision request.
pub const WAIT_MS_MAX: u64 = 30_000;
