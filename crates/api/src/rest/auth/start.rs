//! What a server does before it opens: the first administrator, and roles as they are now.

use concert_store::{By, Error as StoreError, Store};
use serde_json::json;

use super::Accounts;
use crate::auth::{PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN};
use crate::rest::users;

/// Who is to be the first administrator of a store without users.
#[derive(Clone)]
pub struct FirstAdmin {
    /// As in `INITIAL_ADMIN_USERNAME`.
    pub username: String,
    /// As in `INITIAL_ADMIN_PASSWORD`.
    pub password: String,
}

impl std::fmt::Debug for FirstAdmin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FirstAdmin({:?})", self.username)
    }
}

/// Why there is no first administrator.
#[derive(Debug, thiserror::Error)]
pub enum BadAdmin {
    /// The name can be nobody's.
    #[error("the first administrator's name: {0}")]
    Name(String),
    /// The password is too short or too long.
    #[error(
        "the first administrator's password must have {PASSWORD_CHARACTERS_MIN} characters or more, and at most {PASSWORD_BYTES_MAX} bytes"
    )]
    Password,
    /// The store cannot take them.
    #[error("cannot store the first administrator")]
    Store(#[source] StoreError),
}

impl Accounts {
    /// Brings the roles up to date, and makes the first administrator if one is wanted and there are no
    /// users at all. Says whether one was made. May be run at every start.
    ///
    /// # Errors
    /// [`BadAdmin`].
    pub async fn start(&self, first: Option<&FirstAdmin>) -> Result<bool, BadAdmin> {
        self.0.roles.sync().await.map_err(BadAdmin::Store)?;
        let Some(first) = first else { return Ok(false) };
        users::check_username(&first.username).map_err(|rule| BadAdmin::Name(rule.to_owned()))?;
        let is_short = first.password.chars().count() < PASSWORD_CHARACTERS_MIN;
        if is_short || first.password.len() > PASSWORD_BYTES_MAX {
            return Err(BadAdmin::Password);
        }
        let sort = users::sort();
        if !sort.all(&self.0.store).await.map_err(BadAdmin::Store)?.is_empty() {
            return Ok(false);
        }
        let hash = self.0.passwords.hash(first.password.clone()).await.map_err(|_| BadAdmin::Password)?;
        let spec = json!({"source": "manual", "isAdmin": true, "status": "active", "passwordHash": hash});
        let mut object = sort.object(&first.username, spec);
        let id = self.0.ids.draw(users::COUNTER).await.map_err(BadAdmin::Store)?;
        object.set_label(concert_model::no8s::names::ID, &id.to_string());
        let by = By::actor("concert").because("bootstrap");
        match self.0.store.create(object, &by).await {
            Ok(_) => Ok(true),
            // Another replica on the same store started at the same moment, and was first.
            Err(StoreError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(BadAdmin::Store(error)),
        }
    }
}
