"""The server: ST-LF, then Flower's FedAvg from the same start on the same clients, then both on the targets."""

from __future__ import annotations

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from federation.network import Digits
from stlf.flower import STLF

DEADLINE = 600.0

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run both, and print how the targets fare."""
    settings = context.run_config
    rounds = int(settings["num-server-rounds"])
    torch.manual_seed(int(settings["seed"]))
    start = ArrayRecord(Digits().state_dict())

    ours = STLF(warm_up=int(settings["warm-up"]), combination=str(settings["combination"]), timeout=DEADLINE)
    ours.start(grid, start, num_rounds=rounds, timeout=DEADLINE)
    planned = {name: float(metrics["accuracy"]) for name, metrics in ours.evaluations.items()}

    result = FedAvg(fraction_evaluate=0.0).start(grid, start, num_rounds=rounds, timeout=DEADLINE)
    averaged = evaluate(grid, ours, result.arrays)

    print(ours.plan, end="\n\n")
    print("target  ST-LF   FedAvg")
    for name in sorted(planned):
        print(f"{name:6}  {planned[name]:.1%}   {averaged[name]:.1%}")
    mean, other = (sum(accuracies.values()) / len(accuracies) for accuracies in (planned, averaged))
    print(f"mean target accuracy after {rounds} rounds: ST-LF {mean:.2%}, FedAvg {other:.2%}")
    print(f"margin: {100 * (mean - other):+.2f} points")


def evaluate(grid: Grid, ours: STLF, arrays: ArrayRecord) -> dict[str, float]:
    """Measure one model on every target of the plan."""
    nodes = {member.node_id: member.name for member in ours.members if member.name in ours.plan.targets}
    content = RecordDict({"arrays": arrays, "config": ConfigRecord()})
    asked = [Message(content, dst_node_id=node, message_type=MessageType.EVALUATE) for node in nodes]
    replies = grid.send_and_receive(asked, timeout=DEADLINE)
    return {nodes[reply.metadata.src_node_id]: float(reply.content["metrics"]["accuracy"]) for reply in replies}
