//! What the others do when a device is lost.

use crate::common::in_memory_network::Network;
use stlf_planning::Role;
use stlf_protocol::Place;

use crate::common::ALL;

/// Those that are there without one device.
pub(crate) fn without(lost: Place) -> Vec<Place> {
    ALL.into_iter().filter(|&place| place != lost).collect()
}

/// The others begin anew, and end with an outcome each.
pub(crate) fn others_finish(network: &mut Network, lost: Place) {
    let others = without(lost);
    network.begin(others[0], 2, &others);
    network.run().unwrap();
    for &place in &others {
        let device = &network.devices[place.index()];
        assert!(network.finished[place.index()] && device.is_done(), "{place}");
        let plan = device.plan().unwrap();
        assert_eq!((plan.epoch, plan.role(lost)), (2, None));
        assert_eq!(device.outcome().is_some(), plan.role(place) == Some(Role::Target));
    }
}
