//! Members that do not do what they should.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stlf_method::expectation::Tried;
use stlf_planning::plan::Way;
use stlf_protocol::Place;
use stlf_protocol::shared::Fingerprint;
use stlf_protocol::wire::{
    Denial, Envelope, EpochId, Link, MeansSignature, Message, Offer, Plan, SignedOffer, SignedPlan,
};

use super::devices::identity;
use super::faults::Fault;
use super::random::Random;
use super::{LIE, News, Simulation, ms};

/// A liar lets so much time pass before it says that one percent more has come: a little less than patience.
pub(super) const SLOWLY: Duration = Duration::from_millis(7_500);

/// A member that lies in one way, and is honest otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Lie {
    kind: Kind,
    said: BTreeMap<Place, Vec<Arc<[u8]>>>,
    /// When it first sent a plan that it should not.
    since: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It measures, and then says the same again and again.
    Repeats,
    /// It begins epochs, with all or with those that stand behind it.
    Begins,
    /// It keeps its means from one device, and complains about everybody.
    Frames,
    /// It knows of epochs far ahead, and says that it takes part in them.
    IsFarAhead,
    /// It says that it takes part in the next epoch already.
    IsElsewhere,
    /// It starts anew all the time.
    Restarts,
    /// It says nothing after its greeting.
    IsSilent,
    /// It is never done.
    IsNeverDone,
    /// As the planner, it says that all others are to send it their models.
    TakesModels,
    /// It says that it has other data again and again.
    Renews,
    /// As the planner, it sends plans that are none. It also sends some where it does not plan.
    GarblesPlans,
    /// As the planner, it says that there is no plan.
    DeniesPlans,
    /// As the planner, it passes on its own means as those of all others.
    InventsMeans,
    /// As the planner, it says that all others are to send it their models, and then connects anew again and again.
    ComesBack,
    /// As the planner, it begins an epoch, says at once that it is over, and does nothing else.
    EndsEpochs,
    /// It says that no model that it gets is of any use, and connects anew all the time.
    FailsModels,
    /// It is never done, and starts anew again and again, but with pauses.
    RestartsSlowly,
    /// It takes no probes, so that no link to it can be measured.
    TakesNoProbes,
    /// It reports nothing, and says at once that it is done.
    IsDoneAtOnce,
    /// It is never done, and says that it waits for one that is.
    WaitsForNothing,
    /// It is never done, and starts anew whenever it has been left out for that.
    RestartsWhenOut,
    /// It does not report, complains about everybody, and offers models that nobody needs.
    FramesBeforePlan,
    /// It is never done, and does the same otherwise.
    FramesUnderPlan,
    /// It is never done, and says again and again that a little more of its models has come.
    SaysModelsCome,
}

impl Lie {
    /// Those that random schedules have: all whose liars are found out within twenty times the patience.
    pub(crate) const ALL: [Kind; 23] = [
        Kind::Repeats,
        Kind::Begins,
        Kind::Frames,
        Kind::IsFarAhead,
        Kind::IsElsewhere,
        Kind::Restarts,
        Kind::IsSilent,
        Kind::IsNeverDone,
        Kind::TakesModels,
        Kind::Renews,
        Kind::GarblesPlans,
        Kind::DeniesPlans,
        Kind::InventsMeans,
        Kind::ComesBack,
        Kind::EndsEpochs,
        Kind::FailsModels,
        Kind::RestartsSlowly,
        Kind::TakesNoProbes,
        Kind::IsDoneAtOnce,
        Kind::WaitsForNothing,
        Kind::RestartsWhenOut,
        Kind::FramesBeforePlan,
        Kind::FramesUnderPlan,
    ];

    pub(crate) fn new(kind: Kind) -> Lie {
        Lie { kind, said: BTreeMap::new(), since: None }
    }

    /// Whether it begins epochs.
    pub(crate) fn begins(&self) -> bool {
        self.kind == Kind::Begins
    }

    /// Whether links to it cannot be measured.
    pub(super) fn takes_no_probes(&self) -> bool {
        self.kind == Kind::TakesNoProbes
    }

    pub(crate) fn random(random: &mut Random) -> Lie {
        Lie::new(Lie::ALL[random.below(Lie::ALL.len() as u64) as usize])
    }
}

/// Whom a liar holds its means back from.
fn victim(liar: Place) -> Place {
    Place::new(if liar.index() == 1 { 2 } else { 1 })
}

/// A plan in which the planner is a target of all other sources, or as it was where there is none.
fn taking_all(signed: SignedPlan, planner: Place) -> SignedPlan {
    let SignedPlan { mut plan, reports, .. } = signed;
    let others: Vec<Place> = plan.sources.iter().copied().filter(|&s| s != planner).collect();
    if !others.is_empty() {
        plan.targets.extend(plan.sources.contains(&planner).then_some(planner));
        plan.targets.sort_unstable();
        let links = plan.targets.iter().flat_map(|&to| {
            let from = if to == planner { &others[..] } else { &others[..1] };
            let weight = 1.0 / from.len() as f64;
            from.iter().map(move |&from| Link { from, to, weight })
        });
        plan.links = links.collect();
        // Otherwise it would be no plan at all.
        let senders: BTreeSet<Place> = plan.links.iter().map(|link| link.from).collect();
        plan.examinations.retain(|one| senders.contains(&one.from));
        (plan.sources, plan.handovers) = (others, Vec::new());
    }
    SignedPlan::sign(plan, reports, &identity(planner))
}

/// A plan for nobody.
fn nothing() -> SignedPlan {
    let plan = Plan {
        epoch: 0,
        sources: Vec::new(),
        targets: Vec::new(),
        links: Vec::new(),
        handovers: Vec::new(),
        witnesses: Vec::new(),
        examinations: Vec::new(),
        forbidden: Vec::new(),
        objective: 0.0,
        optimal: false,
    };
    SignedPlan { plan, reports: Vec::new(), signature: vec![0; 64] }
}

/// A plan that is none: cut off, with a weight that none can have, or with another signature.
fn garbled(signed: SignedPlan, planner: Place, epoch: EpochId, how: usize) -> Arc<[u8]> {
    let SignedPlan { mut plan, reports, mut signature } = signed;
    if how == 1 {
        plan.links.iter_mut().for_each(|link| link.weight = 7.0);
        return garbled(SignedPlan::sign(plan, reports, &identity(planner)), planner, epoch, 3);
    }
    signature[9] ^= u8::from(how == 2);
    let said = SignedPlan { plan, reports, signature };
    let mut bytes = Envelope::new(epoch, Message::Plan(said)).to_bytes();
    bytes.truncate(bytes.len() - usize::from(how == 0));
    bytes.into()
}

/// The same before the epoch begins: cut off, or of another epoch.
fn garbled_early(planner: Place, epoch: EpochId, is_cut: bool) -> Arc<[u8]> {
    let signed = SignedPlan::sign(nothing().plan, Vec::new(), &identity(planner));
    garbled(signed, planner, epoch, if is_cut { 0 } else { 3 })
}

impl Simulation {
    /// Whether a device sends what it has to say.
    pub(super) fn may_say(&mut self, at: Place, to: Place, bytes: &Arc<[u8]>) -> bool {
        let Some(lie) = self.hosts[at.index()].lie.as_mut() else { return true };
        let Envelope { epoch, message, .. } = Envelope::read(bytes).unwrap();
        let measures =
            matches!(message, Message::Means(..) | Message::Unchanged(..) | Message::AskForMeans);
        let greets = matches!(message, Message::Hello(_));
        let begins = matches!(message, Message::Begin(_));
        match lie.kind {
            Kind::Repeats => {
                if measures {
                    lie.said.entry(to).or_default().push(bytes.clone());
                }
                greets || measures
            }
            Kind::Frames => !measures || to != victim(at),
            Kind::IsSilent => greets,
            Kind::IsNeverDone
            | Kind::RestartsSlowly
            | Kind::RestartsWhenOut
            | Kind::FramesUnderPlan
            | Kind::SaysModelsCome
            | Kind::WaitsForNothing => message != Message::Done,
            Kind::IsDoneAtOnce | Kind::FramesBeforePlan => !matches!(message, Message::Report(_)),
            Kind::GarblesPlans => match (message, to.index()) {
                (Message::Begin(_), 2 | 3) => {
                    self.transmit(at, to, garbled_early(at, epoch, to.index() == 3));
                    true
                }
                (Message::Plan(_), 2 | 3) => false,
                (Message::Plan(signed), _) => {
                    self.transmit(at, to, garbled(signed, at, epoch, to.index() % 3));
                    false
                }
                _ => true,
            },
            Kind::DeniesPlans => {
                let Message::Plan(SignedPlan { reports, .. }) = message else { return true };
                let denial = Denial::new("no device has labels".to_owned(), reports);
                let said = Message::NoPlan(denial);
                self.transmit(at, to, Envelope::new(epoch, said).to_bytes().into());
                false
            }
            Kind::InventsMeans => {
                let Message::Means(means, _) = message else { return true };
                let process = self.hosts[at.index()].process.as_ref();
                if process.and_then(|process| process.membership().planner()) == Some(at) {
                    let (settings, own) = (Fingerprint::default(), identity(at));
                    let signature = MeansSignature::sign(means.digest(), epoch, settings, &own);
                    for of in self.places().filter(|of| ![at, to].contains(of)) {
                        let said = Message::PassedOn(of, means.clone(), signature.clone());
                        self.transmit(at, to, Envelope::new(epoch, said).to_bytes().into());
                    }
                }
                true
            }
            Kind::TakesModels | Kind::ComesBack => {
                let Message::Plan(signed) = message else { return true };
                lie.since.get_or_insert(self.now);
                let said = Message::Plan(taking_all(signed, at));
                self.transmit(at, to, Envelope::new(epoch, said).to_bytes().into());
                false
            }
            Kind::EndsEpochs => {
                let plans = self.plans(at);
                if begins {
                    let complete = Envelope::new(epoch, Message::Complete);
                    self.transmit(at, to, complete.to_bytes().into());
                }
                greets || begins || !plans
            }
            Kind::FailsModels => {
                let senders = self.senders_to(at);
                if message != Message::Done || senders.is_empty() {
                    return true;
                }
                for from in senders {
                    let failed = Envelope::new(epoch, Message::Failed(from));
                    self.transmit(at, to, failed.to_bytes().into());
                }
                false
            }
            Kind::Begins
            | Kind::IsFarAhead
            | Kind::IsElsewhere
            | Kind::Restarts
            | Kind::Renews
            | Kind::TakesNoProbes => true,
        }
    }

    /// Whether a device plans the epoch that it takes part in.
    fn plans(&self, at: Place) -> bool {
        let process = self.hosts[at.index()].process.as_ref();
        process.is_some_and(|process| process.membership().planner() == Some(at))
    }

    /// Who sends models to a device.
    fn senders_to(&self, at: Place) -> Vec<Place> {
        let process = self.hosts[at.index()].process.as_ref();
        let plan = process.and_then(|process| process.device().plan());
        plan.map(|plan| plan.senders(at).collect()).unwrap_or_default()
    }

    /// What a liar says of its own accord.
    pub(super) fn lie(&mut self, at: Place) {
        self.post(LIE, at, News::Lie);
        let (now, all) = (self.now, self.places().collect::<Vec<_>>());
        let host = &mut self.hosts[at.index()];
        let (Some(lie), Some(process)) = (&mut host.lie, &host.process) else { return };
        let running = process.membership().running_id().unwrap_or_default();
        let planner = process.membership().planner();
        let peers: Vec<Place> = host.connections.keys().copied().collect();
        let mut say: Vec<(Place, Arc<[u8]>)> = Vec::new();
        let bytes = |epoch: EpochId, message: Message| -> Arc<[u8]> {
            Envelope::new(epoch, message).to_bytes().into()
        };
        match lie.kind {
            Kind::Repeats => {
                let said = lie.said.iter().flat_map(|(to, said)| {
                    said.iter().rev().take(3).map(move |bytes| (*to, bytes.clone()))
                });
                say.extend(said);
            }
            Kind::Begins => {
                let begun =
                    EpochId { number: running.number + 1 + self.now.as_secs() % 3, begun: 9 };
                let behind = if self.now.as_secs().is_multiple_of(2) { at.index() } else { 0 };
                let members = all[behind..].to_vec();
                say.extend(
                    peers.iter().map(|&to| (to, bytes(begun, Message::Begin(members.clone())))),
                );
            }
            Kind::Frames => {
                let others = all.into_iter().filter(|&place| place != at && Some(place) != planner);
                let missing = bytes(running, Message::Missing(others.collect()));
                say.extend(planner.filter(|p| peers.contains(p)).map(|to| (to, missing)));
            }
            Kind::IsDoneAtOnce | Kind::WaitsForNothing => {
                let message = match lie.kind {
                    Kind::IsDoneAtOnce => Message::Done,
                    _ => Message::Missing(vec![victim(at)]),
                };
                let said = bytes(running, message);
                say.extend(planner.filter(|p| peers.contains(p)).map(|to| (to, said)));
            }
            Kind::FramesBeforePlan | Kind::FramesUnderPlan => {
                let missing = bytes(running, Message::Missing(all));
                say.extend(planner.filter(|p| peers.contains(p)).map(|to| (to, missing)));
                let offers = Way::ALL.map(|way| {
                    let offer = Offer { way, hash: [0; 32], bytes: 4 };
                    let signed = SignedOffer::sign(offer, running, &identity(at));
                    bytes(running, Message::Offer(signed, Tried::default()))
                });
                let to_each = |to| offers.iter().map(move |offer| (to, offer.clone()));
                say.extend(peers.into_iter().flat_map(to_each));
            }
            Kind::IsFarAhead => {
                for to in peers {
                    let far = |by: u64| EpochId { number: running.number + by, begun: 9 };
                    say.push((to, bytes(far(1 << 33), Message::Known)));
                    say.push((to, bytes(far(1 << 19), Message::Known)));
                    say.push((to, bytes(far(1 << 33), Message::TakesPart(far(1 << 33)))));
                }
            }
            Kind::IsElsewhere => {
                let next = EpochId { number: running.number + 1, begun: 9 };
                say.extend(peers.into_iter().map(|to| (to, bytes(next, Message::TakesPart(next)))));
            }
            Kind::Restarts => {
                self.apply(Fault::End { place: at, says_so: false });
                self.at(self.now + ms(100), Fault::Start(at));
            }
            // Slower than what counts as in a row whatever comes between, and faster than patience.
            Kind::RestartsSlowly if now - host.began >= ms(2_400) => {
                self.apply(Fault::End { place: at, says_so: false });
                self.at(self.now + ms(100), Fault::Start(at));
            }
            // Those that plan have lost patience by then.
            Kind::RestartsWhenOut if now - host.began >= ms(18_000) => {
                self.apply(Fault::End { place: at, says_so: false });
                self.at(self.now + ms(100), Fault::Start(at));
            }
            Kind::FailsModels => {
                if let Some(to) = planner.filter(|planner| *planner < at) {
                    // The new connection takes the place of the one that is there.
                    self.hosts[at.index()].connections.remove(&to);
                    self.call(at, to);
                }
            }
            Kind::Renews => {
                let renewed = bytes(running, Message::Renewed);
                say.extend(peers.into_iter().map(|to| (to, renewed.clone())));
            }
            Kind::GarblesPlans => {
                // Of a kind that has a list, and nothing after that.
                let plan = bytes(running, Message::Plan(nothing()));
                let cut: Arc<[u8]> = plan[..plan.len() - 1].into();
                say.extend(peers.into_iter().map(|to| (to, cut.clone())));
            }
            Kind::ComesBack => {
                // Whoever connects anew more often has every epoch begun anew, which is another lie.
                let since = lie.since.filter(|&since| self.now > since + 4 * LIE);
                if since.is_some() && self.now.as_secs().is_multiple_of(12) {
                    peers.into_iter().for_each(|peer| self.sever(at, peer, true));
                }
            }
            Kind::SaysModelsCome if process.device().plan().is_some() => {
                // It itself does not lose patience.
                host.jobs = host.jobs.max(1);
                let since = *lie.since.get_or_insert(now);
                let percent = ((now - since).as_millis() / SLOWLY.as_millis()).min(100) as u8;
                let arrived = bytes(running, Message::Arrived(percent));
                say.extend(peers.into_iter().map(|to| (to, arrived.clone())));
            }
            Kind::EndsEpochs if planner == Some(at) => {
                let complete = bytes(running, Message::Complete);
                say.extend(peers.into_iter().map(|to| (to, complete.clone())));
            }
            Kind::IsSilent
            | Kind::IsNeverDone
            | Kind::TakesModels
            | Kind::DeniesPlans
            | Kind::InventsMeans
            | Kind::EndsEpochs
            | Kind::RestartsSlowly
            | Kind::RestartsWhenOut
            | Kind::SaysModelsCome
            | Kind::TakesNoProbes => {}
        }
        say.into_iter().for_each(|(to, bytes)| self.transmit(at, to, bytes));
    }
}
