//! Passwords: argon2id, off the threads that answer requests, a few at a time.

use std::sync::{Arc, OnceLock};

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use concert_store::Chance;
use tokio::sync::Semaphore;

/// Hashes at one time. Each takes 19 MiB and one core for some ten milliseconds.
const HASHES_MAX: usize = 2;
/// Hashes that may wait: about a second's worth. Who comes later is told to come again.
const WAITING_MAX: usize = 64;
/// Shortest password.
pub const CHARACTERS_MIN: usize = 8;
/// Longest password; a bound on what is hashed, not a rule for people.
pub const BYTES_MAX: usize = 1024;

/// Too many passwords wait to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many passwords are being checked right now")]
pub struct Busy;

/// Makes hashes and compares passwords with them. Cheap to clone.
#[derive(Clone)]
pub struct Passwords(Arc<Inner>);

struct Inner {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    chance: Chance,
    /// A hash of nothing anybody knows, to be compared with where there is no user.
    nobody: OnceLock<String>,
}

impl Passwords {
    /// With salts drawn from `chance`.
    pub fn new(chance: Chance) -> Self {
        Self(Arc::new(Inner {
            running: Arc::new(Semaphore::new(HASHES_MAX)),
            waiting: Semaphore::new(WAITING_MAX),
            chance,
            nobody: OnceLock::new(),
        }))
    }

    /// The hash of `password`, with its salt and costs, as text (PHC).
    ///
    /// # Errors
    /// [`Busy`].
    pub async fn hash(&self, password: String) -> Result<String, Busy> {
        let inner = self.0.clone();
        self.run(move || inner.hash(&password)).await
    }

    /// Whether `password` is the one of `hash`. Without a hash the answer is no, after the same work: how
    /// long it takes does not tell who exists.
    ///
    /// # Errors
    /// [`Busy`].
    pub async fn is_right(&self, password: String, hash: Option<String>) -> Result<bool, Busy> {
        let inner = self.0.clone();
        self.run(move || {
            let is_known = hash.is_some();
            let hash = hash.unwrap_or_else(|| inner.nobody().to_owned());
            let is_same = PasswordHash::new(&hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
            is_same && is_known && password.len() <= BYTES_MAX
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Busy> {
        let _place = self.0.waiting.try_acquire().map_err(|_| Busy)?;
        let turn = self.0.running.clone().acquire_owned().await.map_err(|_| Busy)?;
        let done = tokio::task::spawn_blocking(move || {
            // Given back when the work ends, which may be after nobody waits for it any more.
            let _turn = turn;
            work()
        });
        done.await.map_err(|_| Busy)
    }
}

impl Inner {
    fn hash(&self, password: &str) -> String {
        let mut salt = [0; 16];
        self.chance.fill(&mut salt);
        let salt = SaltString::encode_b64(&salt).expect("16 bytes are a salt");
        let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
        hash.expect("the default costs are in range and a password is short enough").to_string()
    }

    fn nobody(&self) -> &str {
        self.nobody.get_or_init(|| {
            let mut secret = [0; 16];
            self.chance.fill(&mut secret);
            self.hash(&format!("{secret:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_is_right() {
        let passwords = Passwords::new(Chance::from_system());
        let hash = passwords.hash("correct horse".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let is_right = async |password: &str, hash: Option<&str>| {
            passwords.is_right(password.into(), hash.map(str::to_owned)).await.unwrap()
        };
        assert!(is_right("correct horse", Some(&hash)).await);
        assert!(!is_right("Correct horse", Some(&hash)).await);
        assert!(!is_right("", Some(&hash)).await);
        assert!(!is_right("correct horse", None).await);
        assert!(!is_right("correct horse", Some("garbage")).await);
        assert_ne!(passwords.hash("correct horse".into()).await.unwrap(), hash);
    }

    #[tokio::test]
    async fn who_comes_when_many_wait_is_told_to_come_again() {
        let passwords = Passwords::new(Chance::from_system());
        let full = passwords.0.waiting.try_acquire_many(u32::try_from(WAITING_MAX).unwrap()).unwrap();
        assert_eq!(passwords.hash("correct horse".into()).await, Err(Busy));
        drop(full);
        assert!(passwords.hash("correct horse".into()).await.is_ok());
    }
}
