//! What the owner of a fleet decides and keeps: who may join, under which settings, and the roster that lists them. Everything is on disk
//! before anybody is told, even if the power fails: of two rosters of one version, devices would keep whichever they got first for ever.

use std::path::Path;
use std::time::{Instant, SystemTime};

use stlf_config::Config;
use stlf_data::atomic_folder::Folder;
use stlf_protocol::identity::Identity;
use stlf_protocol::invitations::{Invitations, Standing};
use stlf_protocol::roster::Invalid;
use stlf_protocol::terms::{Brought, Terms};
use stlf_protocol::{PeerId, Roster, SignedRoster, Ticket, ticket};
use tokio::sync::mpsc::Sender;

use super::messages::{Answer, Asks, Knock, Refusal};
use super::{Error, Event, Observer, Options};
use crate::key_file;

const KEY: &str = "owner.key";
const ROSTER: &str = "roster.json";
const INVITATIONS: &str = "invitations.json";

/// A fleet's folder, and the devices that wait to be let in.
pub(super) struct Keeper {
    folder: Folder,
    owner: Identity,
    pub(super) roster: SignedRoster,
    pub(super) invitations: Invitations,
    terms: Terms,
    waiting: Vec<Asking>,
}

/// A device that asks to join.
pub(super) struct Asking {
    /// Its key, which its connection has proven.
    pub(super) device: PeerId,
    /// Its ticket.
    pub(super) knock: Knock,
    /// What it brings.
    pub(super) asks: Asks,
    /// Where answers go.
    pub(super) answers: Sender<Answer>,
    /// When it asked.
    pub(super) since: Instant,
}

impl Asking {
    fn answer(&self, answer: Answer) {
        // Whoever does not read has left, and is forgotten with the next look at who waits.
        let _ = self.answers.try_send(answer);
    }
}

impl Keeper {
    /// Opens a fleet's folder, and makes it where there is none.
    pub(super) fn open(options: &Options) -> Result<Keeper, Error> {
        let folder = Folder::open(&options.folder)?;
        let key = folder.file(KEY);
        let is_new = !key.exists();
        let owner = if is_new { key_file::create(&key)? } else { key_file::read(&key)? };
        let fleet = name_of(&options.folder);
        let roster = match folder.read(ROSTER)? {
            Some(bytes) => SignedRoster::read(&bytes).map_err(in_roster(&folder))?,
            None if is_new => {
                let signed = Roster::new(&fleet, owner.id()).sign(&owner);
                let signed = signed.map_err(in_roster(&folder))?;
                folder.write_durably(ROSTER, signed.to_json().as_bytes())?;
                signed
            }
            None => return Err(Error::NoRoster(folder.file(ROSTER))),
        };
        let known: Option<Invitations> = match folder.read(INVITATIONS)? {
            Some(bytes) => Some(
                serde_json::from_slice(&bytes)
                    .map_err(|e| folder.broken(INVITATIONS, &e.to_string()))?,
            ),
            None => None,
        };
        let given = options.config.as_ref().map(without_paths);
        if given.is_some() && known.as_ref().is_some_and(|known| known.agreed.is_some()) {
            return Err(Error::Agreed { fleet });
        }
        let mut invitations = known.unwrap_or(Invitations::new(Config::default().to_toml()?));
        if let Some(given) = given {
            invitations.settings = given.to_toml()?;
        }
        let config = Config::parse(&invitations.settings, &folder.file(INVITATIONS))?;
        let config = without_paths(&config);
        let terms = Terms::new(config, invitations.agreed.clone());
        Ok(Keeper { folder, owner, roster, invitations, terms, waiting: Vec::new() })
    }

    pub(super) fn owner(&self) -> &Identity {
        &self.owner
    }

    /// Makes tickets that name these addresses, in place of those that nobody has used, and keeps what is to be known of them. Returns
    /// them with the number of those that they replace.
    pub(super) fn invite(
        &mut self,
        options: &Options,
        addresses: &[std::net::SocketAddr],
    ) -> Result<(Vec<Ticket>, usize), Error> {
        let replaced = match options.devices {
            0 => 0,
            _ => self.invitations.take_back(now()),
        };
        let expires = now() + options.expires.as_secs();
        let mut tickets = Vec::new();
        for _ in 0..options.devices {
            let mut secret = [0; ticket::SECRET];
            getrandom::fill(&mut secret).map_err(|e| Error::NoRandom(e.to_string()))?;
            let fleet = &self.roster.roster().fleet;
            let ticket = Ticket::new(secret, self.owner.id(), fleet, addresses);
            self.invitations.add(ticket.id(), expires);
            tickets.push(ticket);
        }
        self.keep()?;
        Ok((tickets, replaced))
    }

    fn keep(&self) -> Result<(), Error> {
        Ok(self.folder.write_json_privately(INVITATIONS, &self.invitations)?)
    }

    /// Answers a device that shows a ticket.
    pub(super) fn knock(&self, device: PeerId, knock: &Knock) -> Answer {
        let settings = self.standing(device, knock).map(|_| self.terms.config().to_toml());
        match settings {
            Ok(Ok(settings)) => Answer::Terms(settings),
            Ok(Err(wrong)) => Answer::Refused(wrong.into()),
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    fn standing(&self, device: PeerId, knock: &Knock) -> Result<Standing, Refusal> {
        let Knock { ticket, name, proof } = knock;
        if !ticket::is_proven(*ticket, self.owner.id(), device, name, proof) {
            return Err(stlf_protocol::invitations::Refused::Unknown.into());
        }
        Ok(self.invitations.standing(*ticket, device, now())?)
    }

    /// Takes a device that asks to join: it is let in, waits for others, or is told why not.
    pub(super) fn ask(&mut self, asking: Asking, observer: &mut Observer<'_>) -> Result<(), Error> {
        self.forget_who_left();
        match self.may_join(&asking) {
            Err(refusal) => {
                let (name, reason) = (asking.knock.name.clone(), refusal.reason.clone());
                observer(&Event::Refused { name, reason });
                asking.answer(Answer::Refused(refusal));
                Ok(())
            }
            Ok(_) if self.terms.agreed().is_some() => self.admit(vec![asking], observer),
            Ok(_) => {
                observer(&Event::Asks { name: asking.knock.name.clone() });
                self.waiting.push(asking);
                self.tell_who_waits();
                Ok(())
            }
        }
    }

    fn may_join(&mut self, asking: &Asking) -> Result<(), Refusal> {
        let Asking { device, knock, asks, .. } = asking;
        let standing = self.standing(*device, knock)?;
        self.reread_roster()?;
        let list = self.roster.roster();
        if list.devices.iter().any(|member| member.key == *device && !member.present) {
            return Err(format!("the owner has removed this device from {}", list.fleet).into());
        }
        if let Standing::Joined(name) = standing
            && name != knock.name
        {
            return Err(format!("this device has joined as {name:?} and keeps that name").into());
        }
        asks.brought.check()?;
        let first = self.waiting.first().map(|first| &first.asks.brought);
        let differs = self.terms.difference(first, &asks.brought, &asks.changes);
        if let Some(difference) = differs? {
            let setting = Some(difference.setting.clone());
            return Err(Refusal { setting, ..difference.into() });
        }
        let ticket = |other: &&Asking| other.knock.ticket == knock.ticket;
        if let Some(other) = self.waiting.iter().find(ticket) {
            return Err(format!(
                "{} is joining with this ticket; each device needs its own",
                other.knock.name
            )
            .into());
        }
        if list.place(*device).is_some() {
            return Ok(());
        }
        // Names and keys must be new, also among those that wait.
        let mut all = Ok(list.clone());
        for Asking { device, knock, .. } in self.waiting.iter().chain([asking]) {
            all = all.and_then(|list| list.with(&knock.name, *device));
        }
        Ok(all.map(drop)?)
    }

    /// The owner may have changed it by hand meanwhile.
    fn reread_roster(&mut self) -> Result<(), Error> {
        if let Some(bytes) = self.folder.read(ROSTER)? {
            self.roster = SignedRoster::read(&bytes).map_err(in_roster(&self.folder))?;
        }
        Ok(())
    }

    /// Lets all in that wait, if nobody else is awaited or the first has waited for long enough.
    pub(super) fn look(
        &mut self,
        options: &Options,
        observer: &mut Observer<'_>,
    ) -> Result<(), Error> {
        if self.forget_who_left() {
            self.tell_who_waits();
        }
        let Some(first) = self.waiting.first() else { return Ok(()) };
        let waited = options.wait.is_some_and(|wait| first.since.elapsed() >= wait);
        if self.awaited() > 0 && !waited {
            return Ok(());
        }
        let brought: Vec<&Brought> = self.waiting.iter().map(|w| &w.asks.brought).collect();
        let agreed = self.terms.agree(&brought);
        let waiting = std::mem::take(&mut self.waiting);
        if let Err(reason) = agreed {
            for asking in waiting {
                let (name, reason) = (asking.knock.name.clone(), reason.to_string());
                observer(&Event::Refused { name, reason: reason.clone() });
                asking.answer(Answer::Refused(reason.into()));
            }
            return Ok(());
        }
        let classes = self.terms.agreed().map(|agreed| agreed.classes.clone()).unwrap_or_default();
        observer(&Event::Agreed { classes });
        self.admit(waiting, observer)
    }

    /// The number of devices that may still come before all agree.
    fn awaited(&self) -> usize {
        self.invitations.open(now()).saturating_sub(self.waiting.len())
    }

    fn forget_who_left(&mut self) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|asking| !asking.answers.is_closed());
        self.waiting.len() < before
    }

    /// Forgets those that wait, who call again if the owner comes back.
    pub(super) fn send_who_waits_away(&mut self) {
        self.waiting.clear();
    }

    fn tell_who_waits(&self) {
        let awaited = self.awaited();
        if awaited == 0 {
            return;
        }
        // There is always room for the last answer.
        let reads = self.waiting.iter().filter(|asking| asking.answers.capacity() > 1);
        reads.for_each(|asking| asking.answer(Answer::Waits(awaited)));
    }

    /// Lets devices in: their tickets are used up on disk first, then the roster has them, then they are told.
    fn admit(&mut self, all: Vec<Asking>, observer: &mut Observer<'_>) -> Result<(), Error> {
        self.reread_roster()?;
        let mut list = Ok(self.roster.roster().clone());
        for Asking { device, knock, asks, .. } in &all {
            self.invitations.set_used(knock.ticket, &knock.name, *device);
            let known = list.as_ref().ok().and_then(|list| list.at(list.place(*device)?));
            let has_moved = known.is_none_or(|member| member.address != Some(asks.listens));
            if known.is_none() {
                list = list.and_then(|list: Roster| list.with(&knock.name, *device));
            }
            if has_moved {
                list = list.and_then(|list: Roster| list.with_address(*device, asks.listens));
            }
        }
        let list = list.map_err(in_roster(&self.folder))?;
        self.invitations.settings = self.terms.config().to_toml()?;
        self.invitations.agreed = self.terms.agreed().cloned();
        self.keep()?;
        if list != *self.roster.roster() {
            self.roster = list.sign(&self.owner).map_err(in_roster(&self.folder))?;
            self.folder.write_durably(ROSTER, self.roster.to_json().as_bytes())?;
        }
        for asking in all {
            let (name, key) = (asking.knock.name.clone(), asking.device);
            let open = self.to_come();
            observer(&Event::Joined { name, key, open });
            let settings = self.invitations.settings.clone();
            asking.answer(Answer::Welcome { settings, roster: self.roster.to_json() });
        }
        Ok(())
    }

    /// The number of devices that can still come: with a ticket that nobody has used, or with one that they used just before the owner was
    /// stopped, so that the roster lacks them.
    pub(super) fn to_come(&self) -> usize {
        let now = now();
        self.invitations.open(now) + self.invitations.unlisted(self.roster.roster(), now).count()
    }

    /// Returns when the last of these tickets expires, in seconds since 1970.
    pub(super) fn last(&self) -> Option<u64> {
        let unlisted = self.invitations.unlisted(self.roster.roster(), now());
        self.invitations.last().into_iter().chain(unlisted).max()
    }

    /// Returns whether every ticket is used or too late.
    pub(super) fn is_over(&self) -> bool {
        self.to_come() == 0
    }
}

/// The owner's paths are not the devices', and neither is the column that names devices in a table of all.
fn without_paths(config: &Config) -> Config {
    let mut config = config.clone();
    config.data.features = None;
    config.data.images = None;
    config.data.folder = None;
    config.data.domains.clear();
    config.data.device = None;
    config.partition = None;
    config
}

fn name_of(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| "fleet".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn in_roster(folder: &Folder) -> impl FnOnce(Invalid) -> Error + use<> {
    let path = folder.file(ROSTER);
    |source| Error::Roster { path, source }
}

/// Returns the seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
