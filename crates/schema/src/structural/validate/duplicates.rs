//! Lists whose elements are unique: `x-kubernetes-list-type` set and map.
//!
//! Elements are sorted by reference and neighbours compared, so a long list costs n log n and no copy.
//! Of an element that comes again and again the second appearance is reported, once.

use std::cmp::Ordering;

use serde_json::Value;

use super::report::Report;
use super::words;
use crate::structural::order::{compare, compare_fields};
use crate::structural::path::Path;

pub(super) fn check_set(list: &[Value], path: &Path<'_>, report: &mut Report) {
    for index in repeated(list, compare) {
        report.add(|| words::duplicate(&path.index(index), &list[index]));
    }
}

/// Elements that are no objects are left to the type check.
pub(super) fn check_map(keys: &[String], list: &[Value], path: &Path<'_>, report: &mut Report) {
    if !list.iter().all(Value::is_object) {
        return;
    }
    let by_keys = |a: &Value, b: &Value| {
        keys.iter()
            .map(|key| compare_fields(a.get(key), b.get(key)))
            .find(|o| o.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    for index in repeated(list, by_keys) {
        report.add(|| {
            let found = keys.iter().filter_map(|key| Some((key.clone(), list[index].get(key)?.clone())));
            words::duplicate(&path.index(index), &Value::Object(found.collect()))
        });
    }
}

/// The second appearance of every element that comes more than once, in the order of the list.
fn repeated(list: &[Value], compare: impl Fn(&Value, &Value) -> Ordering) -> Vec<usize> {
    if list.len() < 2 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..list.len()).collect();
    // A stable sort keeps equal elements in the order of the list.
    order.sort_by(|&a, &b| compare(&list[a], &list[b]));
    let mut seconds: Vec<usize> = order
        .chunk_by(|&a, &b| compare(&list[a], &list[b]).is_eq())
        .filter_map(|equal| equal.get(1).copied())
        .collect();
    seconds.sort_unstable();
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_appearance_is_found_once() {
        let list: Vec<Value> = ["a", "b", "a", "a", "c", "b"].map(Value::from).to_vec();
        assert_eq!(repeated(&list, compare), [2, 5]);
    }
}
