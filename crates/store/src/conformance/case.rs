//! Cases as tests.

use std::pin::Pin;
use std::time::Duration;

/// Longest a case may take: a guard against hanging, far above what any needs.
const CASE_SECONDS_MAX: u64 = 120;

/// Runs one case to its end, or fails it for hanging.
pub async fn bounded(name: &str, case: Pin<Box<dyn Future<Output = ()> + '_>>) {
    let limit = Duration::from_secs(CASE_SECONDS_MAX);
    tokio::time::timeout(limit, case).await.unwrap_or_else(|_| panic!("{name} hangs"));
}

/// One test for each case of a theme; what the suite macros are made of. A subject that is made with
/// `async` may be missing where there is no such server: then there is nothing to test.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_theme {
    ($subject:ident, $part:ident, $theme:ident, [$($case:ident),* $(,)?]) => {
        mod $theme {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let subject = super::super::$subject();
                    let case = $crate::conformance::$part::$theme::$case(subject.as_ref());
                    $crate::conformance::bounded(stringify!($case), Box::pin(case)).await;
                }
            )*
        }
    };
    (async $subject:ident, $part:ident, $theme:ident, [$($case:ident),* $(,)?]) => {
        mod $theme {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let Some(subject) = super::super::$subject().await else { return };
                    let case = $crate::conformance::$part::$theme::$case(subject.as_ref());
                    $crate::conformance::bounded(stringify!($case), Box::pin(case)).await;
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The names of the cases in the source of a theme.
    fn written(source: &str) -> BTreeSet<String> {
        let cases = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
        cases.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name.to_owned()).collect()
    }

    /// The names in the table of a suite, however it is broken into lines.
    fn listed(table: &str, theme: &str) -> BTreeSet<String> {
        let table: String = table.split_whitespace().collect();
        let start = format!(",{theme},[");
        let (_, rest) = table.split_once(&start).unwrap_or_else(|| panic!("{theme} is not in the table"));
        let (names, _) = rest.split_once(']').unwrap();
        names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    macro_rules! themes {
        ($part:literal: $($theme:literal),*) => {{
            let table = include_str!(concat!($part, "/mod.rs"));
            $(
                let source = include_str!(concat!($part, "/", $theme, ".rs"));
                assert_eq!(written(source), listed(table, $theme), "{} {}", $part, $theme);
            )*
        }};
    }

    #[test]
    fn every_case_is_in_the_table_of_its_suite() {
        themes!("core": "create", "update", "status", "patch", "delete", "generation", "list", "selectors", "watch",
            "concurrency", "definitions", "schemas", "refusals", "content", "builtin", "rules", "unknown");
        themes!("own": "revisions", "history", "work", "fences", "expiry", "retention", "keys", "kinds", "bookmarks",
            "refusals", "concurrency", "apply", "cards");
    }
}
