//! The roles of one API key: what any of them permits, the key may do.

use std::fmt;

use crate::problem::{Code, Problem};
use crate::role::{Action, Role};

/// One or more roles, without order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Roles(u8);

impl Roles {
    /// A set of roles; `None` if it would be empty.
    pub fn new(roles: impl IntoIterator<Item = Role>) -> Option<Self> {
        let bits = roles.into_iter().fold(0, |bits, role| bits | bit(role));
        (bits != 0).then_some(Self(bits))
    }

    /// Reads words joined by commas, as [`Display`](fmt::Display) writes them. A role alone is
    /// such a list, so the keys of earlier versions read as well.
    pub fn parse(text: &str) -> Option<Self> {
        let roles: Option<Vec<_>> = text.split(',').map(Role::parse).collect();
        Self::new(roles?)
    }

    /// The roles, in the order of the contract.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.iter().copied().filter(move |role| self.0 & bit(*role) != 0)
    }

    /// Whether one of the roles permits an action.
    pub fn may(self, action: Action) -> bool {
        self.iter().any(|role| role.may(action))
    }

    /// Refuses what no role permits.
    ///
    /// # Errors
    /// `forbidden`, naming the roles that would do.
    pub fn permit(self, action: Action) -> Result<(), Problem> {
        self.permit_as("the API key's", action)
    }

    /// The same for roles that are somebody else's than an API key's.
    ///
    /// # Errors
    /// `forbidden`, saying whose the roles are.
    pub fn permit_as(self, whose: &str, action: Action) -> Result<(), Problem> {
        if self.may(action) {
            return Ok(());
        }
        let needed: Vec<_> = action.roles().map(Role::as_str).collect();
        let has = match self.iter().count() {
            1 => "role is",
            _ => "roles are",
        };
        let own: Vec<_> = self.iter().map(Role::as_str).collect();
        let detail =
            format!("{whose} {has} {}; this needs one of: {}", own.join(", "), needed.join(", "));
        Err(Problem::new(Code::Forbidden, detail))
    }
}

impl From<Role> for Roles {
    fn from(role: Role) -> Self {
        Self(bit(role))
    }
}

/// The canonical form: words in the order of the contract, joined by commas.
impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, role) in self.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "," })?;
            f.write_str(role.as_str())?;
        }
        Ok(())
    }
}

fn bit(role: Role) -> u8 {
    1 << role as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_one_form_and_a_single_role_is_a_list() {
        let text = |text: &str| Roles::parse(text).map(|roles| roles.to_string());
        for (given, canonical) in [
            ("adapter", Some("adapter")),
            ("reconciler,adapter", Some("adapter,reconciler")),
            ("admin,admin", Some("admin")),
            ("", None),
            ("adapter,", None),
            ("adapter, reader", None),
            ("adapter,king", None),
        ] {
            assert_eq!(text(given).as_deref(), canonical, "{given}");
        }
        assert_eq!(Roles::new([]), None);
    }

    #[test]
    fn a_key_may_do_what_any_of_its_roles_may() {
        for bits in 1..64 {
            let roles = Roles(bits);
            for action in Action::all() {
                assert_eq!(roles.may(action), roles.iter().any(|role| role.may(action)));
                assert_eq!(roles.permit(action).is_ok(), roles.may(action));
            }
            assert_eq!(Roles::parse(&roles.to_string()), Some(roles));
        }
        let refused = Roles::parse("adapter,auditor").unwrap().permit(Action::Resolve).unwrap_err();
        assert_eq!(
            refused.detail,
            "the API key's roles are adapter, auditor; this needs one of: operator, admin"
        );
    }
}
