//! What a member does next, given who is there and who has what. Touches nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::roll::Roll;
use super::share::{Member, Share, owner};

/// How keys are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Manner {
    /// Everybody has a part.
    #[default]
    Shared,
    /// One has all, the others stand by. Holds for all as soon as one of them says so.
    Leader,
}

/// What this member has of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mine {
    pub fence: u64,
    pub is_asked_back: bool,
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Claim it, on the ground of the claim that was seen.
    Take { share: Share, seen: u64 },
    /// Let what runs in it end, then give it back.
    AskBack(Share),
    /// Give back a claim of one's own that nothing runs under: one from before a membership that was lost,
    /// or one whose answer was. Nobody else would take it while its holder lives.
    Disown { share: Share, seen: u64 },
    /// It is to stay after all.
    Keep(Share),
    /// Somebody else has claimed it.
    Lost,
}

/// What `me` does, with `live` being those who live.
pub(super) fn plan(me: &Member, roll: &Roll, live: &[Member], mine: &BTreeMap<Share, Mine>) -> Vec<Step> {
    let seen = |member: &Member| roll.members.get(member);
    let present: Vec<&Member> = live.iter().filter(|it| seen(it).is_some_and(|it| !it.is_leaving)).collect();
    let leader = is_one_enough(roll, live).then(|| owner(present.iter().copied(), "leader"));
    let step = |share: Share| {
        let whose = leader.unwrap_or_else(|| owner(present.iter().copied(), &share.to_string()));
        let claimed = roll.shares.get(&share);
        match mine.get(&share) {
            Some(it) if claimed.is_none_or(|claimed| claimed.fence != it.fence) => Some(Step::Lost),
            Some(it) if whose == Some(me) => it.is_asked_back.then_some(Step::Keep(share)),
            Some(it) => (!it.is_asked_back).then_some(Step::AskBack(share)),
            None => {
                let holder = claimed.and_then(|it| it.holder.as_ref());
                let seen = claimed.map_or(0, |it| it.fence);
                let (is_ours, is_free) = (holder == Some(me), holder.is_none_or(|it| !live.contains(it)));
                match whose == Some(me) {
                    true => (is_ours || is_free).then_some(Step::Take { share, seen }),
                    false => is_ours.then_some(Step::Disown { share, seen }),
                }
            }
        }
    };
    Share::all().filter_map(step).collect()
}

/// Among how many a limit that holds for all of them is divided: whoever may work now or after its next look.
/// One who leaves counts for as long as it has something, and one who stands by only if it still has.
pub(super) fn crowd(roll: &Roll, live: &[Member]) -> usize {
    let is_one_enough = is_one_enough(roll, live);
    let has_any = |member: &Member| roll.shares.values().any(|it| it.holder.as_ref() == Some(member));
    let counts = |member: &&Member| {
        let stays = roll.members.get(*member).is_some_and(|it| !it.is_leaving);
        (stays && !is_one_enough) || has_any(member)
    };
    live.iter().filter(counts).count().max(1)
}

fn is_one_enough(roll: &Roll, live: &[Member]) -> bool {
    live.iter().any(|it| roll.members.get(it).is_some_and(|it| it.profile.manner == Manner::Leader))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::roll::{Claimed, Profile, Seen};
    use super::*;

    fn member(name: &str) -> Member {
        Member(name.into())
    }

    fn roll(members: &[&str]) -> Roll {
        let seen = Seen {
            profile: Profile::default(),
            lease: Duration::from_secs(10),
            is_leaving: false,
            token: (1, 0),
        };
        let members = members.iter().map(|it| (member(it), seen.clone())).collect();
        Roll { members, ..Roll::default() }
    }

    /// All shares, claimed by `holder` with the number 7.
    fn claimed(mut roll: Roll, holder: &str) -> Roll {
        let holder = Some(holder).filter(|it| !it.is_empty()).map(member);
        roll.shares = Share::all().map(|it| (it, Claimed { holder: holder.clone(), fence: 7 })).collect();
        roll
    }

    fn all(is_asked_back: bool) -> BTreeMap<Share, Mine> {
        Share::all().map(|it| (it, Mine { fence: 7, is_asked_back })).collect()
    }

    fn live(names: &[&str]) -> Vec<Member> {
        names.iter().map(|it| member(it)).collect()
    }

    #[test]
    fn who_is_alone_takes_everything() {
        let steps = plan(&member("a"), &roll(&["a"]), &live(&["a"]), &BTreeMap::new());
        let all: Vec<Step> = Share::all().map(|share| Step::Take { share, seen: 0 }).collect();
        assert_eq!(steps, all);
    }

    #[test]
    fn nobody_takes_what_one_who_lives_has() {
        let roll = claimed(roll(&["a", "b"]), "a");
        assert_eq!(plan(&member("b"), &roll, &live(&["a", "b"]), &BTreeMap::new()), []);
        let asked = plan(&member("a"), &roll, &live(&["a", "b"]), &all(false));
        let given = asked.iter().filter(|it| matches!(it, Step::AskBack(_))).count();
        assert!(given == asked.len() && (40..90).contains(&given), "{given}");
        // Once it is given back it is taken, on the ground of the claim that was seen.
        let free = claimed(roll, "");
        let taken = plan(&member("b"), &free, &live(&["a", "b"]), &BTreeMap::new());
        assert_eq!(taken.len(), given);
        assert!(taken.iter().all(|it| matches!(it, Step::Take { seen: 7, .. })));
    }

    #[test]
    fn what_the_dead_had_is_taken_and_what_is_no_longer_asked_for_is_kept() {
        let roll = claimed(roll(&["a", "b"]), "a");
        let taken = plan(&member("b"), &roll, &live(&["b"]), &BTreeMap::new());
        assert_eq!(taken.len(), Share::all().count());
        let kept = plan(&member("a"), &roll, &live(&["a"]), &all(true));
        assert!(kept.iter().all(|it| matches!(it, Step::Keep(_))) && !kept.is_empty());
    }

    #[test]
    fn who_leaves_gives_everything_back_and_gets_nothing() {
        let mut roll = claimed(roll(&["a", "b"]), "a");
        roll.members.get_mut(&member("a")).unwrap().is_leaving = true;
        let given = plan(&member("a"), &roll, &live(&["a", "b"]), &all(false));
        assert_eq!(given.len(), Share::all().count());
        assert_eq!(plan(&member("a"), &claimed(roll, ""), &live(&["a", "b"]), &BTreeMap::new()), []);
    }

    #[test]
    fn a_claim_by_somebody_else_is_a_loss() {
        let mut roll = claimed(roll(&["a"]), "b");
        let share = Share::of("x");
        roll.shares.insert(share, Claimed { holder: Some(member("b")), fence: 8 });
        let steps = plan(&member("a"), &roll, &live(&["a"]), &all(false));
        assert_eq!(steps, [Step::Lost]);
    }

    #[test]
    fn a_claim_of_ours_that_we_do_not_know_of_is_taken_again_or_given_back() {
        let (me, roll) = (member("a"), claimed(roll(&["a", "b"]), "a"));
        let steps = plan(&me, &roll, &live(&["a", "b"]), &BTreeMap::new());
        assert_eq!(steps.len(), Share::all().count(), "nobody else touches them while we live");
        let members = live(&["a", "b"]);
        for step in steps {
            let (share, is_taken) = match step {
                Step::Take { share, seen: 7 } => (share, true),
                Step::Disown { share, seen: 7 } => (share, false),
                other => panic!("{other:?}"),
            };
            assert_eq!(is_taken, owner(&members, &share.to_string()) == Some(&me));
        }
    }

    #[test]
    fn one_has_all_as_soon_as_one_says_so() {
        let mut roll = roll(&["a", "b", "c"]);
        roll.members.get_mut(&member("b")).unwrap().profile.manner = Manner::Leader;
        let names = ["a", "b", "c"];
        let counts: Vec<usize> =
            names.iter().map(|it| plan(&member(it), &roll, &live(&names), &BTreeMap::new()).len()).collect();
        assert_eq!(counts.iter().sum::<usize>(), Share::all().count());
        assert_eq!(counts.iter().filter(|it| **it > 0).count(), 1);
    }

    #[test]
    fn a_limit_is_divided_among_those_who_may_work() {
        let names = ["a", "b", "c"];
        let shared = claimed(roll(&names), "a");
        assert_eq!(crowd(&shared, &live(&names)), 3, "whoever has come may have something at any moment");
        assert_eq!(crowd(&shared, &live(&["a", "b"])), 2, "the dead do not work");
        assert_eq!(crowd(&roll(&[]), &live(&[])), 1);

        let mut leaving = shared.clone();
        leaving.members.get_mut(&member("a")).unwrap().is_leaving = true;
        assert_eq!(crowd(&leaving, &live(&names)), 3, "it still has everything");
        assert_eq!(crowd(&claimed(leaving, "b"), &live(&names)), 2);
    }

    #[test]
    fn one_who_has_all_has_the_whole_limit() {
        let names = ["a", "b", "c"];
        let mut led = claimed(roll(&names), "a");
        led.members.get_mut(&member("b")).unwrap().profile.manner = Manner::Leader;
        assert_eq!(crowd(&led, &live(&names)), 1);
        // While it moves from one to the other, both work.
        led.shares.insert(Share::of("x"), Claimed { holder: Some(member("c")), fence: 8 });
        assert_eq!(crowd(&led, &live(&names)), 2);
        assert_eq!(crowd(&claimed(led, ""), &live(&names)), 1, "nobody has anything yet");
    }
}
