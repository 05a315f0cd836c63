"""Times as a GPU would give them, made up: for tests of what is done with them."""

import json

from enable.tune.timing import keep
from generate.kernel_search.measurement import CONFIRMING, ROUNDS, Measurement, ShapeTimes, TimedDevice, TimedLaunch
from generate.recording import FORMAT, VERSION

H100 = TimedDevice("a GPU", "sm_90", 132, 2.9e6, 2.0, {"bfloat16": 7e8}, 0)
LAUNCH = TimedLaunch("kernel", 16, 4, 32, 0, 0)


class Text:
    """What `keep` asks of a kernel."""

    def __init__(self, written):
        from generate.kernel_search.measurement import text_digest

        self.sha256 = text_digest(written)


def shape_times(median, rounds, jitter=0.01, host=5.0):
    """Rounds around a median, spread evenly."""
    spread = [median * (1 + jitter * (2 * ((7 * k) % rounds) / (rounds - 1) - 1)) for k in range(rounds)]
    return ShapeTimes(tuple(spread), host, (LAUNCH,))


def measurement(names, medians, rounds=ROUNDS, device=H100):
    """medians: of each kernel, one number for all shapes or one for each."""
    listed = [m if isinstance(m, list | tuple) else [m] * len(names) for m in medians]
    times = tuple({n: shape_times(m, rounds) for n, m in zip(names, of, strict=True)} for of in listed)
    again = {n: shape_times(m, rounds) for n, m in zip(names, listed[0], strict=True)}
    return Measurement(device, times, again, "no profiler")


def times_file(path, names, base, others):
    """A file of times: of `base` alone, and beside each of `others`, which are (text, medians) or a list of these."""
    first, before = base
    keep(path, [Text(first)], ROUNDS, measurement(names, [before]))
    for other in others:
        group = other if isinstance(other, list) else [other]
        texts = [Text(first), *(Text(text) for text, _ in group)]
        for rounds in (ROUNDS, CONFIRMING):
            keep(path, texts, rounds, measurement(names, [before, *(m for _, m in group)], rounds))
    return path


def recording(path, overload, answers):
    """A recording whose answers are given in turn."""
    lines = [{"format": FORMAT, "version": VERSION, "overload": overload}]
    for number, answer in enumerate(answers, 1):
        lines += [{"conversation": number, "role": "user", "content": "Faster, please."}]
        lines += [{"conversation": number, "role": "assistant", "content": answer}]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path.parent
