//! Which settings devices can and may measure with.

use stlf_data::Shape;
use stlf_method::divergence::{Embedded, Embedding, Settings, disclosure};
use stlf_planning::error::{Counted, Reason};

use crate::wire::MOST_BYTES;

/// That a device with so many inputs can measure in this way, and may: `accepted` says that its user
/// [accepts](disclosure::ACCEPTED) that others can rebuild them.
///
/// # Errors
/// A setting out of its range, inputs that an embedding or a network does not take, a network too large to be sent, or
/// samples that others could rebuild.
pub fn check(
    settings: &Settings,
    shape: Shape,
    samples: usize,
    accepted: bool,
) -> Result<(), stlf_planning::Error> {
    is_possible(settings, shape)?;
    disclosure::check(settings, shape, samples, accepted)
}

fn is_possible(settings: &Settings, shape: Shape) -> Result<(), stlf_planning::Error> {
    let embeds = |embedding: Embedding| Embedded::new(embedding, shape, 0).map(|_| ());
    match settings {
        Settings::Discriminant(settings) => {
            settings.check().and_then(|()| embeds(settings.embedding))
        }
        Settings::Sketch(settings) => settings.check().and_then(|()| embeds(settings.embedding)),
        Settings::Classifier(settings) => {
            settings.check()?;
            let parameters = settings.architecture.spec(shape)?.parameters();
            // What a message holds besides its parameters takes less than a hundred bytes.
            let most = (MOST_BYTES - 100) / 4;
            if parameters > most {
                let of = Counted::MostParameters;
                let reason = Reason::Length { found: parameters, expected: most, of };
                return Err(stlf_planning::Error::new("divergence.network", reason));
            }
            Ok(())
        }
    }
}
