"""ST-LF inside a Flower federation: clients report sketches and errors, the strategy plans, targets get mixtures.

On the server `STLF` stands where `FedAvg` stood:

    strategy = STLF(warm_up=3)
    result = strategy.start(grid, initial_arrays, num_rounds=6)
    print(strategy.plan)

On the clients one mod is added, and training reports how often the model errs on labels held out:

    app = ClientApp(mods=[StlfMod(lambda context: own_inputs_and_labels(context))])

docs/flower.md leads through it, and says what the SuperLink sees.
"""

from stlf.errors import optional

optional("flwr", "stlf.flower", "flower")

from stlf.flower.members import Member  # noqa: E402  (only after Flower was found)
from stlf.flower.mixture import mixture, received  # noqa: E402
from stlf.flower.mod import StlfMod  # noqa: E402
from stlf.flower.strategy import STLF  # noqa: E402

__all__ = ["STLF", "Member", "StlfMod", "mixture", "received"]
