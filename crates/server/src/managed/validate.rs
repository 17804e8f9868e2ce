//! The rules of a configuration. Each finding names the field and the rule it breaks.

use std::collections::BTreeMap;

use concert_model::{GroupVersionKind, name};

use super::config::{ControllerConfig, ProviderConfig, ResourceType};

/// Everything that is wrong with a configuration.
pub(super) fn check(config: &ControllerConfig) -> Vec<String> {
    let mut findings = Vec::new();
    let mut names = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    for (index, provider) in config.providers.iter().enumerate() {
        let at = format!("providers[{index}]");
        findings.extend(provider_findings(&at, provider));
        if !provider.name.is_empty() && names.insert(&provider.name, index).is_some() {
            findings.push(format!("{at}.name: {:?} is used twice", provider.name));
        }
        for (place, kind) in provider.resource_types.iter().enumerate() {
            let at = format!("{at}.resourceTypes[{place}]");
            let Ok(gvk) = kind.gvk() else { continue };
            // Versions are views of the same objects, so two cannot be reconciled apart.
            match kinds.insert(gvk.group_kind.clone(), provider.name.as_str()) {
                None => {}
                Some(other) if other == provider.name => {
                    findings.push(format!("{at}: {} is listed twice", gvk.group_kind));
                }
                Some(other) => {
                    findings.push(format!("{at}: {} is listed by provider {other:?} too", gvk.group_kind));
                }
            }
        }
    }
    findings
}

/// What is wrong with one provider, wherever it was declared.
pub(super) fn provider_findings(at: &str, provider: &ProviderConfig) -> Vec<String> {
    let mut findings = Vec::new();
    if provider.name.is_empty() {
        findings.push(format!("{at}.name: must be set"));
    } else if let Err(rule) = name::check_subdomain(&provider.name) {
        findings.push(format!("{at}.name: {:?}: {rule}", provider.name));
    }
    findings.extend(endpoint_finding(&provider.endpoint).map(|rule| format!("{at}.endpoint: {rule}")));
    let limits = [("rateLimit", provider.rate_limit), ("accountRateLimit", provider.account_rate_limit)];
    for (field, limit) in limits.into_iter().filter_map(|(field, limit)| Some((field, limit?))) {
        if limit.calls_per_minute == 0 {
            findings.push(format!("{at}.{field}.callsPerMinute: must be above 0"));
        }
        if limit.burst == Some(0) {
            findings.push(format!("{at}.{field}.burst: must be above 0"));
        }
    }
    for (place, kind) in provider.resource_types.iter().enumerate() {
        let field = match (kind.api_version.is_empty(), kind.kind.is_empty()) {
            (true, _) => "apiVersion: must be set".to_owned(),
            (_, true) => "kind: must be set".to_owned(),
            _ => match kind.gvk() {
                Ok(_) => continue,
                Err(rule) => format!("apiVersion: {:?}: {rule}", kind.api_version),
            },
        };
        findings.push(format!("{at}.resourceTypes[{place}].{field}"));
    }
    findings
}

/// What is wrong with an endpoint, if anything.
pub(super) fn endpoint_finding(endpoint: &str) -> Option<String> {
    const FORMS: &str = "must be HOST:PORT, http://HOST:PORT, https://HOST[:PORT] or unix:PATH";
    if endpoint.is_empty() {
        return Some("must be set".to_owned());
    }
    let is_good = match endpoint.split_once(':') {
        Some(("unix", path)) => !path.trim_start_matches('/').is_empty(),
        _ => match endpoint.split_once("://") {
            Some(("https", rest)) => is_place(rest.trim_end_matches('/'), true),
            Some(("http", rest)) => is_place(rest.trim_end_matches('/'), false),
            Some(_) => false,
            None => is_place(endpoint, false),
        },
    };
    (!is_good).then(|| format!("{endpoint:?} {FORMS}"))
}

/// Whether `text` is `HOST:PORT`, or only `HOST` where the port can be left out.
fn is_place(text: &str, may_lack_port: bool) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let has_port = match port {
        Some(port) => port.parse::<u16>().is_ok_and(|it| it > 0),
        None => may_lack_port,
    };
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let is_host = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        // ":50051" is how servers write their own address: the same machine.
        None => host.chars().all(|it| it.is_alphanumeric() || ".-_".contains(it)),
    };
    has_port && is_host && !(host.is_empty() && port.is_none())
}

impl ResourceType {
    /// Group, version and kind.
    ///
    /// # Errors
    /// `apiVersion` is not `VERSION` or `GROUP/VERSION`.
    pub fn gvk(&self) -> Result<GroupVersionKind, name::SyntaxError> {
        GroupVersionKind::parse(&self.api_version, &self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, endpoint: &str, kinds: &[(&str, &str)]) -> ProviderConfig {
        let resource_types = kinds.iter().map(|(api_version, kind)| ResourceType {
            api_version: (*api_version).to_owned(),
            kind: (*kind).to_owned(),
            deterministic_names: None,
        });
        let resource_types = resource_types.collect();
        ProviderConfig {
            name: name.into(),
            endpoint: endpoint.into(),
            resource_types,
            ..ProviderConfig::default()
        }
    }

    #[test]
    fn each_finding_names_the_field_and_the_rule() {
        let a = || provider("a", "a:1", &[("g.io/v1", "A")]);
        for (providers, expected) in [
            (vec![provider("", "a:1", &[])], "providers[0].name: must be set"),
            (vec![a(), provider("a", "b:1", &[])], "providers[1].name: \"a\" is used twice"),
            (vec![provider("a", "", &[])], "providers[0].endpoint: must be set"),
            (
                vec![a(), provider("b", "b:1", &[("g.io/v2", "A")])],
                "providers[1].resourceTypes[0]: A.g.io is listed by provider \"a\" too",
            ),
            (
                vec![provider("a", "a:1", &[("g.io/v1", "A"), ("g.io/v1", "A")])],
                "providers[0].resourceTypes[1]: A.g.io is listed twice",
            ),
            (
                vec![provider("a", "a:1", &[("", "A")])],
                "providers[0].resourceTypes[0].apiVersion: must be set",
            ),
            (
                vec![provider("a", "a:1", &[("g.io/v1", "")])],
                "providers[0].resourceTypes[0].kind: must be set",
            ),
        ] {
            assert_eq!(check(&ControllerConfig { providers }), [expected]);
        }
        let text =
            check(&ControllerConfig { providers: vec![provider("A b", "nowhere", &[("a/b/c", "A")])] });
        assert_eq!(text.len(), 3, "{text:?}");
        assert!(text[0].starts_with("providers[0].name: \"A b\": "), "{text:?}");
        assert!(text[1].contains("must be HOST:PORT"), "{text:?}");
        assert!(text[2].starts_with("providers[0].resourceTypes[0].apiVersion: \"a/b/c\": "), "{text:?}");
    }

    #[test]
    fn endpoints_have_four_forms() {
        for good in [
            "provider:50051",
            "10.0.0.1:1",
            "[::1]:50051",
            ":50051",
            "http://a.b:80",
            "https://a",
            "https://a:8443/",
            "unix:/run/p.sock",
            "unix:///run/p.sock",
        ] {
            assert_eq!(endpoint_finding(good), None, "{good}");
        }
        for bad in [
            "provider",
            "provider:",
            "a:b",
            "a:0",
            "a:99999",
            "ftp://a:1",
            "http://a",
            "a b:1",
            "unix:",
            "a/b:1",
            "https://",
        ] {
            assert!(endpoint_finding(bad).is_some(), "{bad}");
        }
    }
}
