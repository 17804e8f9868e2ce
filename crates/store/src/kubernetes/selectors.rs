//! Selectors in the text form that the API server takes.

use concert_model::selector::FieldRequirement;
use concert_model::{Address, FieldSelector};

use crate::contract::Query;

/// `address` with the selectors of `query`.
pub(super) fn select(mut address: Address, query: &Query) -> Address {
    if !query.labels.is_everything() {
        address = address.with("labelSelector", &query.labels.to_string());
    }
    if !query.fields.is_everything() {
        address = address.with("fieldSelector", &fields(&query.fields));
    }
    address
}

fn fields(selector: &FieldSelector) -> String {
    let text = |value: &str| value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    let requirement = |r: &FieldRequirement| {
        format!("{}{}{}", r.field, if r.is_equal { "=" } else { "!=" }, text(&r.value))
    };
    selector.requirements().iter().map(requirement).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_fields_are_escaped() {
        let selector = FieldSelector::field("spec.text", "a=b,c");
        assert_eq!(fields(&selector), "spec.text=a\\=b\\,c");
    }
}
