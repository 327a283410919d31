//! What a device brings to a fleet that it is about to join: its data, after every check of them that it makes when it starts. Nobody else is told of
//! anything before that.

use stlf_protocol::roster::Member;
use stlf_protocol::terms::{Brought, fitted};
use stlf_protocol::{Identity, PeerId, Roster};

use super::making::Making;
use super::state_dir::StateDir;
use super::{Error, Options, publishing};

/// Reads the data of a device of this name by the settings of its fleet, which has this owner, and checks that it could start with them: that they
/// can be learned, and that what it would publish of them is allowed, with what its folder says of earlier publications.
///
/// # Errors
/// Returns the reason why the device cannot take part.
pub(crate) fn brought(
    options: Options,
    identity: &Identity,
    name: &str,
    owner: PeerId,
) -> Result<Brought, Error> {
    // Nothing that is checked depends on the others, nor on its place among them.
    let mut roster = Roster::new("", owner);
    let (key, name) = (identity.id(), name.to_owned());
    roster.devices.push(Member { name, key, present: true, address: None });
    options.relay()?;
    let mut making = Making::new(options, identity.clone(), &roster)?;
    let mut own = making.data()?;
    let brought = Brought::new(own.shape, own.columns.clone(), own.classes.clone());
    making.config = fitted(&making.config, own.shape);
    if own.classes.is_empty() {
        // A device without labels learns from the others which classes there are.
        own.classes.push("any".to_owned());
    }
    let mut made = making.made_of(own)?;
    let Making { options, config, .. } = &making;
    let (own, classes) = (made.own.clone(), made.classes.clone());
    let user = options.learner.as_ref();
    let mut kept = StateDir::open(&options.folder, config, own, classes, user)?;
    publishing::admitted(config, &mut made, &mut kept)?;
    Ok(brought)
}
