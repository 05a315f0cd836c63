"""The public API in a directory whose modules have the names of ours; run with an installed wheel."""

import mine
import torch

import enablekit
import traces
import verify

with enablekit.Recorder("step.trace", max_bytes="100MB") as recorder:
    model, batch, loss, optimizer = mine.make()
    loss(model, batch).backward()
    optimizer.step()
    recorder.step()
assert enablekit.Trace.open("step.trace").manifest["state"] == "complete"
overloads = enablekit.coverage("step.trace").as_json()["overloads"]
assert overloads["percent"] == 100, overloads  # noqa: PLR2004
assert enablekit.verify("relu", cases=("opinfo",)).outcome == "PASS"
with enablekit.use("cpu", unverified=True, workspace="nothing-verified") as registration:
    assert torch.equal(torch.ones(3) + 1, torch.full((3,), 2.0))
assert registration.counts.served
compiled = torch.compile(model, backend="enablekit", options={"unverified": True})
assert torch.allclose(compiled(batch[0]), model(batch[0]), atol=1e-5)
assert traces.MINE and verify.MINE
print(f"enablekit {enablekit.__version__} beside a user's own traces, models and verify: {overloads}")
