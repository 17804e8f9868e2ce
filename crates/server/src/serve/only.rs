//! Which part of a control plane runs in this process.

use std::path::PathBuf;

/// What runs here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    /// All of it.
    #[default]
    Everything,
    /// The inventory: store, API and garbage collection; nobody reconciles.
    Inventory,
    /// The mothership: workers and what they are lent; the inventory is elsewhere.
    Mothership,
}

/// An inventory in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Where, as in `https://host:port`.
    pub url: String,
    /// A file with the token to get in with, read again when it changes.
    pub token_file: Option<PathBuf>,
    /// A file with the certificates to verify it with, as PEM; the well-known ones if none.
    pub ca_file: Option<PathBuf>,
}

/// What was said of it all.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub only: Option<String>,
    pub inventory: Option<String>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

impl Only {
    /// Whether managed resources and claims are reconciled.
    pub fn has_managed(self) -> bool {
        self == Only::Everything
    }

    /// Whether workers are lent work.
    pub fn has_workers(self) -> bool {
        self != Only::Inventory
    }

    /// Whether the inventory is here.
    pub fn has_inventory(self) -> bool {
        self != Only::Mothership
    }
}

impl Said {
    /// Checks every rule; what is wrong goes to `findings`.
    pub fn resolve(self, findings: &mut Vec<String>) -> (Only, Option<Elsewhere>) {
        let only = match self.only.as_deref() {
            None | Some("") => Only::Everything,
            Some("inventory") => Only::Inventory,
            Some("mothership") => Only::Mothership,
            Some(other) => {
                findings.push(format!("only: {other:?} must be inventory or mothership"));
                Only::Everything
            }
        };
        let beside = [("inventoryTokenFile", &self.token_file), ("inventoryCa", &self.ca_file)];
        for (field, _) in beside.iter().filter(|(_, path)| path.is_some() && self.inventory.is_none()) {
            findings.push(format!("{field}: means nothing without inventory"));
        }
        let elsewhere = self.inventory.map(|url| Elsewhere {
            url: url.trim_end_matches('/').to_owned(),
            token_file: self.token_file,
            ca_file: self.ca_file,
        });
        match &elsewhere {
            None if only == Only::Mothership => {
                findings.push("inventory: must be set, for with only: mothership it is elsewhere".to_owned());
            }
            Some(_) if only != Only::Mothership => {
                findings.push("inventory: means nothing without only: mothership".to_owned());
            }
            Some(it) if !is_address(&it.url) => {
                findings
                    .push(format!("inventory: {:?} must be http://HOST:PORT or https://HOST:PORT", it.url));
            }
            _ => {}
        }
        (only, elsewhere)
    }
}

fn is_address(url: &str) -> bool {
    let parsed = url.parse::<http::Uri>().ok();
    parsed.is_some_and(|it| {
        matches!(it.scheme_str(), Some("http" | "https")) && it.host().is_some() && it.path() == "/"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(only: &str, inventory: Option<&str>) -> (Only, Option<Elsewhere>, Vec<String>) {
        let mut findings = Vec::new();
        let inventory = inventory.map(str::to_owned);
        let said = Said { only: Some(only.into()), inventory, ..Said::default() };
        let (only, elsewhere) = said.resolve(&mut findings);
        (only, elsewhere, findings)
    }

    #[test]
    fn a_mothership_alone_needs_an_inventory_elsewhere() {
        let (only, elsewhere, findings) = resolved("mothership", Some("https://inventory:8000/"));
        assert_eq!((only, findings.len()), (Only::Mothership, 0));
        assert_eq!(elsewhere.unwrap().url, "https://inventory:8000");
        assert!(resolved("mothership", None).2[0].starts_with("inventory: must be set"));
        assert!(resolved("inventory", Some("https://a:1")).2[0].starts_with("inventory: means nothing"));
        assert!(resolved("", Some("https://a:1")).2[0].starts_with("inventory: means nothing"));
        assert!(resolved("everything", None).2[0].starts_with("only: "));
        for bad in ["a:1", "ftp://a:1", "https://a:1/path", ""] {
            assert_eq!(resolved("mothership", Some(bad)).2.len(), 1, "{bad}");
        }
    }

    #[test]
    fn what_is_not_said_means_everything() {
        let mut findings = Vec::new();
        let (only, elsewhere) = Said::default().resolve(&mut findings);
        assert!(only.has_managed() && only.has_workers() && only.has_inventory());
        assert_eq!((elsewhere, findings.len()), (None, 0));
        let lonely = Said { token_file: Some("t".into()), ca_file: Some("c".into()), ..Said::default() };
        lonely.resolve(&mut findings);
        assert_eq!(findings.len(), 2, "{findings:?}");
    }
}
