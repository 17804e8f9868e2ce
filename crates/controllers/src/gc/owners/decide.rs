//! What to do about one object, given its finalizers and what became of its owners. Touches nothing:
//! `run.rs` has the hands.

use concert_model::Uid;
use concert_store::Propagation;

use super::super::vocabulary::finalizer::{FOREGROUND, ORPHAN};

/// What became of an owner that an object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Solid,
    /// It is there, but only until its dependents are gone.
    Waiting,
    /// It was read for, and is not there.
    Absent,
    /// Nobody can tell, or it is none of this object's business: an owner in another namespace, of a
    /// kind that is not served, or one in a namespace of an object outside. Never a reason to delete.
    Unresolvable,
}

/// All that is known of an object.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Whether its deletion was asked for.
    pub is_deleting: bool,
    /// What keeps it then.
    pub finalizers: Vec<String>,
    /// Its owners; of no interest once it is being deleted.
    pub owners: Vec<(Uid, Verdict)>,
    /// Whether anything names it as an owner.
    pub has_dependents: bool,
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Have its dependents forget it, then let it go.
    Orphan,
    /// See its dependents off, then let it go.
    Foreground,
    /// Drop the references to these owners; others keep it.
    Untie(Vec<Uid>),
    /// Nobody keeps it: delete it.
    Delete(Propagation),
}

/// What to do next about an object.
pub fn decide(facts: &Facts) -> Step {
    if facts.is_deleting {
        let has = |finalizer: &str| facts.finalizers.iter().any(|it| it == finalizer);
        return match (has(ORPHAN), has(FOREGROUND)) {
            (true, _) => Step::Orphan,
            (false, true) => Step::Foreground,
            (false, false) => Step::Rest,
        };
    }
    let is_kept = |verdict: Verdict| matches!(verdict, Verdict::Solid | Verdict::Unresolvable);
    if facts.owners.is_empty() {
        return Step::Rest;
    }
    if facts.owners.iter().any(|(_, verdict)| is_kept(*verdict)) {
        let loose = facts.owners.iter().filter(|(_, verdict)| !is_kept(*verdict));
        let loose: Vec<Uid> = loose.map(|(uid, _)| uid.clone()).collect();
        return if loose.is_empty() { Step::Rest } else { Step::Untie(loose) };
    }
    // An owner that waits for this object wants what hangs on it gone as well.
    let is_awaited = facts.owners.iter().any(|(_, verdict)| *verdict == Verdict::Waiting);
    Step::Delete(if is_awaited && facts.has_dependents {
        Propagation::Foreground
    } else {
        Propagation::Unsaid
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(name: &str) -> Uid {
        Uid(name.into())
    }

    fn owned(verdicts: &[Verdict]) -> Facts {
        let owners = verdicts.iter().enumerate().map(|(i, verdict)| (uid(&i.to_string()), *verdict));
        Facts { owners: owners.collect(), ..Facts::default() }
    }

    fn deleting(finalizers: &[&str]) -> Facts {
        let finalizers = finalizers.iter().map(|it| (*it).to_owned()).collect();
        Facts { is_deleting: true, finalizers, ..owned(&[Verdict::Absent]) }
    }

    #[test]
    fn what_has_no_owners_or_a_solid_one_rests() {
        assert_eq!(decide(&owned(&[])), Step::Rest);
        assert_eq!(decide(&owned(&[Verdict::Solid])), Step::Rest);
        assert_eq!(decide(&owned(&[Verdict::Unresolvable])), Step::Rest);
    }

    #[test]
    fn what_lost_all_owners_is_deleted() {
        assert_eq!(decide(&owned(&[Verdict::Absent])), Step::Delete(Propagation::Unsaid));
        assert_eq!(decide(&owned(&[Verdict::Absent; 3])), Step::Delete(Propagation::Unsaid));
    }

    #[test]
    fn one_owner_that_is_there_is_enough_and_the_others_are_forgotten() {
        use Verdict::{Absent, Solid, Unresolvable, Waiting};
        assert_eq!(decide(&owned(&[Absent, Solid, Waiting])), Step::Untie(vec![uid("0"), uid("2")]));
        assert_eq!(decide(&owned(&[Unresolvable, Absent])), Step::Untie(vec![uid("1")]));
    }

    #[test]
    fn an_owner_that_waits_takes_whole_trees() {
        let leaf = owned(&[Verdict::Waiting]);
        assert_eq!(decide(&leaf), Step::Delete(Propagation::Unsaid));
        let branch = Facts { has_dependents: true, ..leaf };
        assert_eq!(decide(&branch), Step::Delete(Propagation::Foreground));
        let absent = Facts { has_dependents: true, ..owned(&[Verdict::Absent]) };
        assert_eq!(decide(&absent), Step::Delete(Propagation::Unsaid));
    }

    #[test]
    fn what_is_being_deleted_is_only_asked_for_its_finalizers() {
        assert_eq!(decide(&deleting(&[])), Step::Rest);
        assert_eq!(decide(&deleting(&["example.com/other"])), Step::Rest);
        assert_eq!(decide(&deleting(&[FOREGROUND])), Step::Foreground);
        assert_eq!(decide(&deleting(&["example.com/other", ORPHAN])), Step::Orphan);
        assert_eq!(decide(&deleting(&[FOREGROUND, ORPHAN])), Step::Orphan);
    }
}
