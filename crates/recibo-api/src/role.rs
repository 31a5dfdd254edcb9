//! Who may do what. One table.

use crate::word::words;

/// A role that an API key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Wraps tools: claims, outcomes, one-shots.
    Adapter,
    /// Reads and verifies.
    Reader,
    /// A reader that also reports what outside services say.
    Reconciler,
    /// A reconciler that also resolves calls and sets policies.
    Operator,
    /// A reader that also takes exports and reads the log.
    Auditor,
    /// Everything in its namespace, and the API keys of all.
    Admin,
}

impl Role {
    /// All roles, in the order of the contract.
    pub const ALL: &'static [Self] = &[
        Self::Adapter,
        Self::Reader,
        Self::Reconciler,
        Self::Operator,
        Self::Auditor,
        Self::Admin,
    ];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adapter => "adapter",
            Self::Reader => "reader",
            Self::Reconciler => "reconciler",
            Self::Operator => "operator",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }

    /// Reads the word of the contract.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.as_str() == text)
    }

    /// Whether the role permits an action.
    pub fn may(self, action: Action) -> bool {
        let row = TABLE.iter().find(|(listed, _)| *listed == action);
        row.is_some_and(|(_, roles)| roles.as_bytes()[self as usize] == b'x')
    }
}

words! {
    Role, RoleWord = Role::ALL;
}

/// What an API key is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Make a signing key.
    OpenScope,
    /// Wipe a signing key.
    CloseScope,
    /// Ask for permission to run a call.
    Claim,
    /// Report how an attempt ended.
    ReportOutcome,
    /// Record a finished call in one write.
    Record,
    /// Read calls, runs, decisions, receipts, limits, policies.
    Read,
    /// Verify receipts and transcripts.
    Verify,
    /// Report what an outside service says of an attempt.
    CheckStatus,
    /// Say what became of a call.
    Resolve,
    /// Replace policies.
    WritePolicy,
    /// Sweep.
    Retention,
    /// Set, lift and list holds.
    Hold,
    /// Take exports.
    Export,
    /// Read checkpoints, proofs and the event stream.
    ReadLog,
    /// Create, list and revoke API keys.
    ManageApiKeys,
}

/// One column per role, in the order of [`Role::ALL`]:
/// adapter, reader, reconciler, operator, auditor, admin.
const TABLE: &[(Action, &str)] = &[
    (Action::OpenScope, "x....x"),
    (Action::CloseScope, "x....x"),
    (Action::Claim, "x....x"),
    (Action::ReportOutcome, "x....x"),
    (Action::Record, "x....x"),
    (Action::Read, "xxxxxx"),
    (Action::Verify, "xxxxxx"),
    (Action::CheckStatus, "..xx.x"),
    (Action::Resolve, "...x.x"),
    (Action::WritePolicy, "...x.x"),
    (Action::Retention, "...x.x"),
    (Action::Hold, "...x.x"),
    (Action::Export, "....xx"),
    (Action::ReadLog, "....xx"),
    (Action::ManageApiKeys, ".....x"),
];

impl Action {
    /// All actions, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(action, _)| *action)
    }

    /// The roles that permit the action.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL.iter().copied().filter(move |role| role.may(self))
    }
}

#[cfg(test)]
mod tests {
    use super::Action::*;
    use super::*;

    #[test]
    fn the_table_says_what_the_contract_says() {
        let reader = vec![Read, Verify];
        let with = |base: &[Action], more: &[Action]| [base, more].concat();
        let adapter = with(&reader, &[OpenScope, CloseScope, Claim, ReportOutcome, Record]);
        let reconciler = with(&reader, &[CheckStatus]);
        let operator = with(&reconciler, &[Resolve, WritePolicy, Retention, Hold]);
        let auditor = with(&reader, &[Export, ReadLog]);
        let admin: Vec<_> = Action::all().collect();
        assert_eq!(admin.len(), 15);
        let contract = [
            (Role::Adapter, adapter),
            (Role::Reader, reader),
            (Role::Reconciler, reconciler),
            (Role::Operator, operator),
            (Role::Auditor, auditor),
            (Role::Admin, admin),
        ];
        for (role, permitted) in contract {
            for action in Action::all() {
                assert_eq!(role.may(action), permitted.contains(&action), "{role:?} {action:?}");
            }
        }
    }

    #[test]
    fn every_row_has_a_cell_for_every_role_and_roles_have_words() {
        assert!(TABLE.iter().all(|(_, row)| row.len() == Role::ALL.len()));
        for (column, role) in Role::ALL.iter().enumerate() {
            assert_eq!(*role as usize, column);
            assert_eq!(Role::parse(role.as_str()), Some(*role));
        }
        assert_eq!(Role::parse("Admin"), None);
    }
}
