//! The files of a device, with which it can be killed at any moment and continue: its training, what it made of models that were handed
//! to it, its scale, the last epoch, the plan, the predictions, the mixture.
//! Every file appears whole or not at all, and what a device must not forget is on disk before it goes on, even if the power fails. Where the
//! disk cannot be written, it goes on in memory and tries again with the next event; killed before that works, it has forgotten.

mod kept_models;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stlf_config::Config;
use stlf_config::fleet::DeviceData;
use stlf_data::atomic_folder::Folder;
use stlf_data::features::OwnScale;
use stlf_method::learner::UserLearner;
use stlf_method::predictions::PredictionRow;
use stlf_protocol::privacy_ledger::Ledger;
use stlf_protocol::publication_record::Record;
use stlf_protocol::published_data::PublishedData;
use stlf_protocol::reply_record::ReplyRecord;
use stlf_protocol::roster::{Place, Roster};
use stlf_protocol::verdict_record::VerdictRecord;
use stlf_protocol::wire::Plan;
use stlf_protocol::{Device, SignedRoster};

pub(super) use self::kept_models::training_of;
use super::address_book::AddressBook;
use super::convictions::Convictions;
use super::event::{Line, now};
use super::event_log::EventLog;
use super::publishing::{Counted, Publications};
use super::{Error, memory, mixture, told_so_far};
use crate::computing::Computing;
use crate::data_change::DataChange;
use crate::network::{Event, View};
use crate::protection::Protection;
use crate::status_file::{FILE as STATUS, FULL_PLAN, StatusFile};

const EPOCH: &str = "epoch.json";
const PLAN: &str = "plan.json";
const PREDICTIONS: &str = "predictions.csv";
const LEDGER: &str = "privacy.json";
const RECORD: &str = "published.json";
const REPLIES: &str = "replies.json";
const VERDICTS: &str = "verdicts.json";

const PUBLISHED_DATA: &str = "published-data.json";

/// The file with the newest roster that the device has received.
pub(crate) const ROSTER: &str = "roster.json";

/// The file in which a device's own scale is kept.
pub(super) const SCALE: &str = "scale.json";

/// The folder in which models are kept as they arrive.
pub(super) const MODELS: &str = "models";

/// A device's folder, with the data and classes that its files are about.
pub(super) struct StateDir {
    folder: Folder,
    events: EventLog,
    own: DeviceData,
    classes: Vec<String>,
    /// The name of the user's learner, where it has one.
    learner: Option<String>,
    /// What its processor computes with a joule, if that is known.
    gflop_per_joule: Option<f64>,
    /// A hash of the settings and data that trainings depend on.
    of: String,
    protection: Option<Protection>,
    /// The data that the device has from the next epoch on, with their hash.
    coming: Option<(DeviceData, String)>,
    /// How often the device has got other data.
    renewals: usize,
    /// What has become of its data, which is shown with its status.
    change: Option<DataChange>,
    /// Whether divergences were told that are not on disk yet.
    has_told: bool,
    /// Whether models of others were judged, which is not on disk yet.
    has_judged: bool,
    addresses: AddressBook,
    convictions: Convictions,
}

/// The last epoch that this device took part in.
#[derive(Serialize, Deserialize)]
struct Epoch {
    epoch: u64,
}

impl StateDir {
    /// Opens the folder of a device with these settings and this data.
    pub(super) fn open(
        path: &Path,
        config: &Config,
        own: DeviceData,
        classes: Vec<String>,
        user: Option<&UserLearner>,
    ) -> Result<StateDir, stlf_data::Error> {
        let folder = Folder::open(path)?;
        folder.sweep()?;
        let events = EventLog::open(&folder)?;
        let of = training_of(config, &own, user);
        let learner = user.map(|user| user.name.clone());
        let addresses = AddressBook::read(&folder);
        let convictions = Convictions::read(&folder);
        Ok(StateDir {
            folder,
            events,
            own,
            classes,
            learner,
            gflop_per_joule: config.energy.gflop_per_joule,
            of,
            protection: None,
            coming: None,
            renewals: 0,
            change: None,
            has_told: false,
            has_judged: false,
            addresses,
            convictions,
        })
    }

    /// Returns the newest roster that this device has received.
    pub(super) fn roster(path: &Path) -> Option<SignedRoster> {
        SignedRoster::read(&std::fs::read(path.join(ROSTER)).ok()?).ok()
    }

    /// Returns the last epoch and plan. A file that cannot be read counts as lost.
    pub(super) fn epoch(&self) -> (u64, Option<Plan>) {
        let epoch = self.read_json::<Epoch>(EPOCH);
        let plan = self.read_json::<Plan>(PLAN);
        let number = epoch.map_or(0, |epoch| epoch.epoch);
        (number.max(plan.as_ref().map_or(0, |plan| plan.epoch)), plan)
    }

    /// Returns where other devices were when they were connected last.
    pub(super) fn addresses(&self, roster: &Roster) -> BTreeMap<Place, SocketAddr> {
        self.addresses.places(roster)
    }

    /// Returns which planners this device found to have lied, and for how long it is to do without them from now on, if that is this long in all.
    pub(super) fn convicted(
        &mut self,
        roster: &Roster,
        most: Duration,
    ) -> BTreeMap<Place, Duration> {
        self.convictions.rest(roster, most, now())
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.folder.read(name).ok().flatten()
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&self.read(name)?).ok()
    }

    /// Returns a record, of which only a file that is not there means nothing. It is none that went back behind what it `says` that was told.
    fn counted<T: Default>(
        &self,
        name: &str,
        of: impl Fn(&[u8]) -> Result<T, String>,
        says: impl Fn(&T) -> f64,
    ) -> Result<T, Error> {
        let path = self.folder.file(name);
        let record = match self.folder.read(name)? {
            Some(bytes) => of(&bytes).map_err(|message| Error::Ledger { path, message })?,
            None => T::default(),
        };
        told_so_far::check(&self.folder, name, says(&record))?;
        Ok(record)
    }

    /// Returns what this device has published with noise. Only a file that is not there means nothing.
    pub(super) fn ledger(&self) -> Result<Ledger, Error> {
        self.counted(LEDGER, Ledger::read, |ledger| ledger.publications() as f64)
    }

    /// Returns what this device has published with base noise alone. Only a file that is not there means nothing.
    pub(super) fn record(&self) -> Result<Record, Error> {
        self.counted(RECORD, Record::read, |record| record.publications() as f64)
    }

    /// Returns what is kept of the data behind the means that this device published last. A file that cannot be read counts as lost: the device then gives no new reply
    /// until it publishes means of the data that it has.
    pub(super) fn published_data(&self) -> Option<PublishedData> {
        PublishedData::read(&self.read(PUBLISHED_DATA)?).ok()
    }

    /// Returns what this device has told of divergences. Only a file that is not there means nothing.
    pub(super) fn replies(&self) -> Result<ReplyRecord, Error> {
        self.counted(REPLIES, ReplyRecord::read, ReplyRecord::told)
    }

    /// Returns what this device has answered to models of others. Only a file that is not there means nothing.
    pub(super) fn verdicts(&self) -> Result<VerdictRecord, Error> {
        self.counted(VERDICTS, VerdictRecord::read, VerdictRecord::told)
    }

    /// Stores the scale of this device's features. Nothing that was computed by it may be sent before this returns.
    pub(super) fn keep_scale(&self, scale: &OwnScale) -> Result<(), Error> {
        Ok(self.folder.write_json_durably(SCALE, scale)?)
    }

    /// Stores what this device has published, or is about to. Nothing may be sent before this returns.
    pub(super) fn keep_publications(&self, publications: &Publications) -> Result<(), Error> {
        // Whoever finds a publication on disk must find the data behind it too.
        if let Some(data) = &publications.data {
            self.folder.write_json_durably(PUBLISHED_DATA, data)?;
        }
        match &publications.counted {
            Counted::Noisy(ledger) => {
                self.keep_counted(LEDGER, ledger, ledger.publications() as f64)
            }
            Counted::Exact(record) => {
                self.keep_counted(RECORD, record, record.publications() as f64)
            }
            Counted::Not => Ok(()),
        }?;
        Ok(())
    }

    /// Stores a record, and then how much it says that was told.
    fn keep_counted(
        &self,
        name: &str,
        record: &impl Serialize,
        says: f64,
    ) -> Result<(), stlf_data::Error> {
        self.folder.write_json_durably(name, record)?;
        told_so_far::keep(&self.folder, name, says)
    }

    /// From when the device has got them on, files are about these data.
    pub(super) fn expect_data(&mut self, own: DeviceData, of: String) {
        self.coming = Some((own, of));
    }

    /// Returns whether the device is to get other data with the next epoch.
    pub(super) fn awaits_data(&self) -> bool {
        self.coming.is_some()
    }

    /// Takes what has become of the device's data, which is shown with its status.
    pub(super) fn set_change(&mut self, change: Option<DataChange>) {
        self.change = change;
    }

    /// Takes what protects the samples of this device, which is shown with its status.
    pub(super) fn set_protection(&mut self, protection: Protection) {
        self.protection = Some(protection);
    }

    /// Returns what protects the samples of this device in the format of Prometheus.
    pub(super) fn protection_metrics(&self) -> String {
        self.protection.as_ref().map(Protection::metrics).unwrap_or_default()
    }

    /// Shows in the last status, if there is one, that the device refuses to publish.
    pub(super) fn show_refusal(&self, protection: Protection) -> Result<(), Error> {
        let last = self.folder.read(STATUS)?;
        let last = last.and_then(|bytes| serde_json::from_slice::<StatusFile>(&bytes).ok());
        if let Some(last) = last {
            let shown = StatusFile { protection: Some(protection), ..last };
            self.folder.write_json(STATUS, &shown)?;
        }
        Ok(())
    }

    /// Stores how many events were not told.
    pub(super) fn note_untold(
        &mut self,
        view: &View<'_>,
        events: u64,
    ) -> Result<(), stlf_data::Error> {
        self.events.add(&Line::untold(view, events).to_json())
    }

    /// Stores what an event changed and the device must not forget, however many come.
    pub(super) fn keep(&mut self, view: &View<'_>, event: &Event) -> Result<(), stlf_data::Error> {
        if view.device.renewals() > self.renewals
            && let Some((own, of)) = self.coming.take()
        {
            self.renewals = view.device.renewals();
            (self.own, self.of) = (own, of);
        }
        self.has_told |= *event == Event::Measured;
        if let Some(told) = view.device.told().filter(|_| self.has_told) {
            self.keep_counted(REPLIES, told, told.told())?;
            self.has_told = false;
        }
        self.has_judged |= *event == Event::Judged;
        if let Some(judged) = view.device.judged().filter(|_| self.has_judged) {
            self.keep_counted(VERDICTS, judged, judged.told())?;
            self.has_judged = false;
        }
        let folder = &self.folder;
        self.convictions.keep(folder, view.membership.convicted(), view.roster, now())?;
        match event {
            Event::Began { epoch, .. } => {
                folder.write_json_durably(EPOCH, &Epoch { epoch: *epoch })?;
            }
            Event::Planned { .. } => {
                if let Some(plan) = view.device.plan() {
                    folder.write_json_durably(PLAN, plan)?;
                }
                if let Some(plan) = mixture::full_plan(view) {
                    folder.write_json(FULL_PLAN, &plan)?;
                }
            }
            Event::TrainedOn { way, .. } => {
                if let Some(known) = view.device.handed_on().get(way) {
                    self.keep_relayed(*way, known, view.device.layout())?;
                }
            }
            Event::Ended => {
                if let Some(combined) = view.device.combined() {
                    let predictions = &combined.predictions;
                    let rows = PredictionRow::all(predictions, &self.own.places, &self.classes);
                    folder.write_csv(PREDICTIONS, &rows)?;
                    self.keep_student(combined, view.device.layout())?;
                    if let Some(schooled) = &combined.schooled {
                        self.keep_schooled(schooled, view.device.layout())?;
                    }
                }
                mixture::keep(folder, view, &self.own, &self.classes, self.learner.as_deref())?;
            }
            Event::Alive => self.addresses.keep(folder, view.seen, view.roster)?,
            Event::Roster(roster) => folder.write_durably(ROSTER, roster.to_json().as_bytes())?,
            _ => {}
        }
        Ok(())
    }

    /// Adds a line about an event to the log.
    pub(super) fn note(&mut self, view: &View<'_>, event: &Event) -> Result<(), stlf_data::Error> {
        match event {
            Event::Alive => Ok(()),
            event => self.events.add(&Line::new(view, event).to_json()),
        }
    }

    /// Shows the status as it is now.
    pub(super) fn show(&self, view: &View<'_>) -> Result<(), stlf_data::Error> {
        let (status, most_memory) = (view.status(), memory::most());
        let (protection, data) = (self.protection.clone(), self.change.clone());
        let student_cost = self.student_cost(view.device);
        let shown =
            StatusFile { seconds: now(), most_memory, protection, data, student_cost, status };
        self.folder.write_json(STATUS, &shown)
    }

    /// Returns what the student of the device cost, if it has trained one. Nobody knows what a learner of the user's computes.
    pub(super) fn student_cost(&self, device: &Device) -> Option<Computing> {
        match self.learner {
            Some(_) => None,
            None => Computing::of_student(device, self.gflop_per_joule),
        }
    }

    /// Returns the accuracy of the device as a target, if the true classes are known.
    pub(super) fn accuracy(&self, device: &Device) -> Option<f64> {
        Some(device.outcome()?.accuracy(self.own.truth.as_ref()?))
    }
}

/// Makes an error from what the operating system says about a file.
fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> stlf_data::Error + '_ {
    |source| stlf_data::Error::File { path: path.to_owned(), source }
}
