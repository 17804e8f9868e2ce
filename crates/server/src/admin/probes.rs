//! `/healthz` and `/readyz`.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

/// Whether a process does what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// Somebody else does, and it would take over.
    StandingBy {
        /// Who.
        leader: Arc<str>,
    },
    /// It does not, or not everything: one line each.
    NotReady(Vec<String>),
}

/// Where the answers come from. Asked on every request, so both must be quick.
#[derive(Clone)]
pub struct Probes {
    /// Whether the process can go on; false has it restarted.
    pub is_alive: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Whether it does what it is for.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
}

/// The routes.
pub fn probes(probes: Probes) -> Router {
    let Probes { is_alive, readiness } = probes;
    Router::new()
        .route("/healthz", get(move || async move { alive(is_alive()) }))
        .route("/readyz", get(move || async move { ready(readiness()) }))
}

fn alive(is_alive: bool) -> (StatusCode, &'static str) {
    if is_alive { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "stopping\n") }
}

fn ready(readiness: Readiness) -> (StatusCode, String) {
    match readiness {
        Readiness::Ready => (StatusCode::OK, "ok\n".to_owned()),
        Readiness::StandingBy { leader } => (StatusCode::OK, format!("standing by: {leader} leads\n")),
        Readiness::NotReady(problems) => {
            let lines: String = problems.iter().map(|it| one_line(it) + "\n").collect();
            (StatusCode::SERVICE_UNAVAILABLE, lines)
        }
    }
}

/// Reasons come from providers and servers, and are read in terminals.
fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_one_line_whatever_is_in_it() {
        let problems =
            vec!["provider a: no\nway".to_owned(), "A.g.io: there is no definition of it".to_owned()];
        let (status, text) = ready(Readiness::NotReady(problems));
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "provider a: no way\nA.g.io: there is no definition of it\n");
    }
}
