//! What each method decides on a problem: ST-LF, and the methods that it is compared with.

use stlf_method::Method;
use stlf_planning::Error;

use crate::baselines::{
    Assignment, Context, avgd, fada, fedavg, fedavg_rounds, kd3a, local, oracle, pooled, psi_fada,
    psi_fedavg, rnd_alpha, rnd_psi, sm,
};

/// Roles and links of this method. The same context and seed give the same, whatever the threads.
///
/// # Errors
/// Names a target that no source reaches, or what the context lacks.
pub fn assign(method: Method, context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    match method {
        Method::StLf => Ok(context.ours().clone()),
        Method::Links => Ok(context.links_only().clone()),
        Method::RndAlpha => rnd_alpha::assign(context, seed),
        Method::FedAvg => fedavg::assign(context),
        Method::Fada => fada::assign(context, seed),
        Method::AvgD => avgd::assign(context, seed),
        Method::RndPsi => rnd_psi::assign(context, seed),
        Method::PsiFedAvg => psi_fedavg::assign(context, seed),
        Method::PsiFada => psi_fada::assign(context, seed),
        Method::Sm => sm::assign(context, seed),
        Method::Local => Ok(local::assign(context)),
        Method::Oracle => oracle::assign(context),
        Method::FedAvgRounds => fedavg_rounds::assign(context),
        Method::Kd3a => kd3a::assign(context),
        Method::Pooled => pooled::assign(context),
    }
}
