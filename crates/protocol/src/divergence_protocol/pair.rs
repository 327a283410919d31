//! This device's side of a pair that trains a classifier, turn by turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use stlf_learn::{Params, Spec};
use stlf_method::divergence::classifier::{self, OwnNetwork, Party, Reply, Side};

use crate::device::Refusal;
use crate::roster::Place;
use crate::wire::{Count, Said, Turn};

type OwnParty = Party<OwnNetwork<Arc<[f32]>>>;

/// One side, and what has come of the other.
#[derive(Debug)]
pub(super) struct Pair {
    spec: Spec,
    settings: classifier::Settings,
    side: Side,
    /// `None` while a turn of this device's is computed.
    party: Option<Box<OwnParty>>,
    /// How many of the peer's turns were taken up.
    taken: u64,
    /// Turns of the peer's that wait, by number: the next, while this device computes its own, and the one after, which may overtake it
    /// on the way. There is none after that, since the peer has to wait for this device's.
    kept: BTreeMap<u64, Said>,
    /// This device's own, in the end.
    errors: Option<Count>,
}

/// A turn of this device's that is to be computed.
#[derive(Debug)]
pub(super) enum Round {
    First { spec: Spec, settings: classifier::Settings, side: Side, inputs: Arc<[f32]>, seed: u64 },
    Next { number: u64, party: Box<OwnParty>, theirs: classifier::Message },
}

/// What it came to.
#[derive(Debug)]
pub(super) struct Played {
    party: Box<OwnParty>,
    reply: Result<Reply, stlf_planning::Error>,
}

impl Round {
    /// Returns how many turns this device has had before.
    pub(super) fn number(&self) -> u64 {
        match self {
            Round::First { .. } => 0,
            Round::Next { number, .. } => *number,
        }
    }

    /// Computes it.
    ///
    /// # Errors
    /// There is no first turn with these settings.
    pub(super) fn play(self) -> Result<Played, stlf_planning::Error> {
        match self {
            Round::First { spec, settings, side, inputs, seed } => {
                let mut party = Party::new(&spec, &settings, side, inputs, seed)?;
                let reply = Ok(Reply::Send(party.start()?));
                Ok(Played { party: Box::new(party), reply })
            }
            Round::Next { mut party, theirs, .. } => {
                let reply = party.receive(&theirs);
                Ok(Played { party, reply })
            }
        }
    }
}

impl Pair {
    /// With this device's first turn, which is to be computed.
    pub(super) fn begin(
        spec: &Spec,
        settings: &classifier::Settings,
        side: Side,
        inputs: Arc<[f32]>,
        seed: u64,
    ) -> (Pair, Round) {
        let (spec, settings, kept) = (spec.clone(), *settings, BTreeMap::new());
        let first = Round::First { spec: spec.clone(), settings, side, inputs, seed };
        (Pair { spec, settings, side, party: None, taken: 0, kept, errors: None }, first)
    }

    /// This device's errors, once all turns are taken.
    pub(super) fn errors(&self) -> Option<Count> {
        self.errors
    }

    /// Returns how much the peer has told; what comes again adds nothing.
    pub(super) fn known(&self) -> usize {
        2 * self.taken as usize + self.kept.len()
    }

    /// Takes a turn of the peer's. What is to be computed upon it, if it can be now.
    pub(super) fn receive(&mut self, from: Place, turn: &Turn) -> Result<Option<Round>, Refusal> {
        self.check(turn)?;
        match turn.number.checked_sub(self.taken) {
            // It was taken before, and is said again on a new connection.
            None => Ok(None),
            Some(0 | 1) => {
                let known = self.kept.entry(turn.number).or_insert_with(|| turn.said.clone());
                if *known != turn.said {
                    return Err(Refusal::Twice(from));
                }
                Ok(self.next())
            }
            Some(_) => Err(Refusal::Unfit("a turn of another round")),
        }
    }

    /// Takes what came of a turn of this device's: that turn, unless there is none any more, and what is to be computed next.
    pub(super) fn played(
        &mut self,
        played: Played,
    ) -> Result<(Option<Turn>, Option<Round>), Refusal> {
        let Played { party, reply } = played;
        self.party = Some(party);
        let own = match reply {
            Ok(Reply::Send(message)) => Some(Turn { number: self.taken, said: said(message) }),
            Ok(Reply::Done(counts)) => {
                self.errors = Some(counts[self.side as usize].into());
                None
            }
            Err(_) => {
                self.taken -= 1;
                return Err(Refusal::Unfit("a turn that cannot be taken"));
            }
        };
        Ok((own, self.next()))
    }

    /// The peer's next turn is taken up, where it is here and this device's last one is done.
    fn next(&mut self) -> Option<Round> {
        if self.party.is_none() || !self.kept.contains_key(&self.taken) {
            return None;
        }
        let theirs = match self.kept.remove(&self.taken)? {
            Said::Params(numbers) => {
                let mut params = Params::zeros(&self.spec);
                params.copy_from_slice(&numbers);
                classifier::Message::Params(params)
            }
            Said::Errors(count) => classifier::Message::Error(count.into()),
        };
        self.taken += 1;
        Some(Round::Next { number: self.taken, party: self.party.take()?, theirs })
    }

    /// That this is what a turn of this number says: every repeat ends with errors, after its rounds.
    fn check(&self, turn: &Turn) -> Result<(), Refusal> {
        let in_repeat = self.settings.rounds as u64 + 1;
        if turn.number / in_repeat >= self.settings.repeats as u64 {
            return Err(Refusal::Unfit("a turn after the last"));
        }
        let is_last = turn.number % in_repeat == in_repeat - 1;
        let fits = match &turn.said {
            Said::Params(params) => !is_last && params.len() == self.spec.parameters(),
            Said::Errors(_) => is_last,
        };
        match fits && turn.said.check().is_ok() {
            true => Ok(()),
            false => Err(Refusal::Unfit("a turn that says something else than it must")),
        }
    }
}

/// As it is sent.
fn said(message: classifier::Message) -> Said {
    match message {
        classifier::Message::Params(params) => Said::Params(params.to_vec()),
        classifier::Message::Error(count) => Said::Errors(count.into()),
    }
}
