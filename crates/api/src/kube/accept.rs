//! Which form of an answer a client wants.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::error::Error;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Media {
    #[default]
    Json,
    Yaml,
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects as they are.
    #[default]
    Whole,
    /// Rows for people.
    Table,
    /// Only the metadata.
    Partial,
    /// All groups with their resources.
    Aggregated,
}

/// What an endpoint can answer with, besides the plain form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Plain,
    Object,
    List,
    Discovery,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) media: Media,
    pub(crate) form: Form,
}

const OFFERED: &[&str] = &["application/json", "application/yaml"];

/// The first form that the client takes and `offer` has, by the weight that the client gives it.
pub(crate) fn negotiate(headers: &HeaderMap, offer: Offer) -> Result<Accepted, Error> {
    let mut best: Option<(u16, Accepted)> = None;
    let mut is_silent = true;
    for header in headers.get_all(ACCEPT) {
        let Ok(header) = header.to_str() else { continue };
        for clause in header.split(',').map(str::trim).filter(|clause| !clause.is_empty()) {
            is_silent = false;
            let Some((weight, accepted)) = read(clause, offer) else { continue };
            if best.is_none_or(|(highest, _)| weight > highest) {
                best = Some((weight, accepted));
            }
        }
    }
    match best {
        Some((_, accepted)) => Ok(accepted),
        None if is_silent => Ok(Accepted::default()),
        None => Err(Error::not_acceptable(OFFERED)),
    }
}

/// One clause of the header, with its weight in thousandths; none if it cannot be served.
fn read(clause: &str, offer: Offer) -> Option<(u16, Accepted)> {
    let mut parts = clause.split(';').map(str::trim);
    let media = match parts.next()? {
        "application/json" | "application/*" | "*/*" => Media::Json,
        "application/yaml" | "application/x-yaml" | "text/yaml" => Media::Yaml,
        _ => return None,
    };
    let (mut weight, mut kind, mut group, mut version) = (1000, "", "", "");
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => kind = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            "q" => weight = thousandths(value.trim())?,
            _ => {}
        }
    }
    let form = match (kind, group, version, offer) {
        ("", ..) => Form::Whole,
        ("Table", "meta.k8s.io", "v1", Offer::Object | Offer::List) => Form::Table,
        ("PartialObjectMetadata", "meta.k8s.io", "v1", Offer::Object) => Form::Partial,
        ("PartialObjectMetadataList", "meta.k8s.io", "v1", Offer::List) => Form::Partial,
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2", Offer::Discovery) => Form::Aggregated,
        _ => return None,
    };
    (weight > 0).then_some((weight, Accepted { media, form }))
}

/// `0.5` as 500. Not a float: they are not ordered.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.get(..3).unwrap_or(fraction);
    let scale = [1000, 100, 10, 1][fraction.len()];
    let fraction: u16 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.parse::<u16>().ok()?.checked_mul(1000)?.checked_add(fraction * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(header: &str, offer: Offer) -> Option<(Media, Form)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, header.parse().unwrap());
        negotiate(&headers, offer).ok().map(|accepted| (accepted.media, accepted.form))
    }

    #[test]
    fn kubectl_gets_its_table() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(header, Offer::List), Some((Media::Json, Form::Table)));
        assert_eq!(accept(header, Offer::Plain), Some((Media::Json, Form::Whole)));
    }

    #[test]
    fn protobuf_falls_back_where_the_client_lets_it() {
        assert_eq!(accept("application/vnd.kubernetes.protobuf", Offer::List), None);
        let header = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accept(header, Offer::List), Some((Media::Json, Form::Whole)));
        let header = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(accept(header, Offer::List), Some((Media::Json, Form::Partial)));
    }

    #[test]
    fn discovery_is_aggregated_if_asked_for() {
        let header = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(accept(header, Offer::Discovery), Some((Media::Json, Form::Aggregated)));
        let header =
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(accept(header, Offer::Discovery), Some((Media::Json, Form::Whole)));
    }

    #[test]
    fn weights_decide_and_silence_means_json() {
        let header = "application/json;q=0.5, application/yaml;q=0.9, text/html";
        assert_eq!(accept(header, Offer::Object), Some((Media::Yaml, Form::Whole)));
        assert_eq!(accept("*/*", Offer::Object), Some((Media::Json, Form::Whole)));
        assert_eq!(accept("application/json;q=0", Offer::Object), None);
        assert_eq!(accept("application/json;q=x", Offer::Object), None);
        assert_eq!(negotiate(&HeaderMap::new(), Offer::Object).unwrap(), Accepted::default());
    }
}
