//! How people log in: what their tokens are signed with, and who is there first.

use std::time::Duration;

use concert_api::auth::Keys;
use concert_api::rest::auth::FirstAdmin;
use concert_store::Chance;

use super::data::DataFolder;
use super::error::Error;

/// How long a login lasts unless told otherwise.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const LIFETIME_HOURS_MAX: u32 = 24 * 365;

/// What only variables may say, since it is secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// What tokens are signed with, instead of a key in the data directory.
    pub jwt_secret_key: Option<String>,
    /// Who is the first administrator where there are no users.
    pub initial_admin_username: Option<String>,
    /// With which password.
    pub initial_admin_password: Option<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// What the variables of no8s say.
    pub(super) fn from_variables(text: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            jwt_secret_key: text("JWT_SECRET_KEY"),
            initial_admin_username: text("INITIAL_ADMIN_USERNAME"),
            initial_admin_password: text("INITIAL_ADMIN_PASSWORD"),
        }
    }

    /// These, and where they say nothing those `below`.
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            jwt_secret_key: self.jwt_secret_key.or(below.jwt_secret_key),
            initial_admin_username: self.initial_admin_username.or(below.initial_admin_username),
            initial_admin_password: self.initial_admin_password.or(below.initial_admin_password),
        }
    }
}

/// How people log in.
#[derive(Clone, Debug, Default)]
pub struct Logins {
    secret: Secrets,
    lifetime: Option<Duration>,
    /// Made where there are no users.
    pub first_admin: Option<FirstAdmin>,
}

impl Logins {
    /// Checks every rule; what is wrong goes to `findings`.
    pub(super) fn resolve(secret: Secrets, hours: Option<&str>, findings: &mut Vec<String>) -> Self {
        let lifetime = hours.and_then(|text| match text.parse::<u32>() {
            Ok(hours @ 1..=LIFETIME_HOURS_MAX) => Some(Duration::from_secs(u64::from(hours) * 60 * 60)),
            _ => {
                let rule = format!("must be a whole number of hours from 1 to {LIFETIME_HOURS_MAX}");
                findings.push(format!("jwtExpiryHours: {rule}"));
                None
            }
        });
        let first_admin = match (&secret.initial_admin_username, &secret.initial_admin_password) {
            (Some(username), Some(password)) => {
                Some(FirstAdmin { username: username.clone(), password: password.clone() })
            }
            (None, None) => None,
            _ => {
                let rule = "must be set together with INITIAL_ADMIN_PASSWORD, or neither";
                findings.push(format!("INITIAL_ADMIN_USERNAME: {rule}"));
                None
            }
        };
        Self { secret, lifetime, first_admin }
    }

    /// What tokens are signed with: what was configured, or a key of the folder's own.
    pub(super) fn keys(&self, folder: &DataFolder, chance: &Chance) -> Result<Keys, Error> {
        let lifetime = self.lifetime.unwrap_or(LIFETIME);
        match &self.secret.jwt_secret_key {
            Some(secret) => Ok(Keys::new(secret.as_bytes(), lifetime)),
            None => {
                let path = folder.login_key();
                Keys::from_file(&path, chance, lifetime).map_err(|error| Error::Data { path, error })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(secret: Secrets, hours: Option<&str>) -> (Logins, Vec<String>) {
        let mut findings = Vec::new();
        (Logins::resolve(secret, hours, &mut findings), findings)
    }

    #[test]
    fn a_first_administrator_has_a_name_and_a_password() {
        let named = Secrets { initial_admin_username: Some("root".into()), ..Secrets::default() };
        let (logins, findings) = resolved(named.clone(), None);
        assert!(logins.first_admin.is_none());
        assert_eq!(
            findings,
            ["INITIAL_ADMIN_USERNAME: must be set together with INITIAL_ADMIN_PASSWORD, or neither"]
        );
        let both = Secrets { initial_admin_password: Some("12345678".into()), ..named };
        let (logins, findings) = resolved(both, Some("8"));
        assert_eq!((logins.first_admin.unwrap().username, findings.len()), ("root".to_owned(), 0));
        assert_eq!(logins.lifetime, Some(Duration::from_secs(8 * 60 * 60)));
    }

    #[test]
    fn a_login_lasts_a_year_at_most() {
        for hours in ["0", "-1", "8761", "forever", ""] {
            let (_, findings) = resolved(Secrets::default(), Some(hours));
            let wanted = ["jwtExpiryHours: must be a whole number of hours from 1 to 8760"];
            assert_eq!(findings, wanted, "{hours}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let secret = Secrets { jwt_secret_key: Some("canary".into()), ..Secrets::default() };
        assert!(!format!("{:?}", resolved(secret, None).0).contains("canary"));
    }
}
