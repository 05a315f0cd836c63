"""The differential programs, as far as they need no GPU: generation, both CPU sides, and the comparison."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.differential.__main__ import Report, main
from benchmarks.differential.comparison import ALLOWED, BITWISE, FUSED, UNEXPLAINED, UNUSED, compare
from benchmarks.differential.programs import CLASSES, generate, values
from benchmarks.differential.sides import FAILED, OK, REFUSED, SIM, Answer
from benchmarks.differential.workers import run_all

ROOT = Path(__file__).parents[2]
SEED, PROGRAMS = 1, 30


def test_a_seed_and_an_index_determine_a_program():
    for index in range(PROGRAMS):
        program, again = generate(SEED, index), generate(SEED, index)
        assert program == again and program.source() == again.source()
        for position, buffer in enumerate(program.buffers):
            np.testing.assert_array_equal(values(SEED, index, position, buffer), values(SEED, index, position, buffer))
    assert generate(SEED, 0).source() != generate(SEED + 1, 0).source()


def test_every_class_is_generated():
    kinds = {generate(SEED, index).kind for index in range(300)}
    assert kinds == set(CLASSES)


def test_programs_run_in_the_simulator_and_compile():
    arguments = ["--programs", str(PROGRAMS), "--seed", str(SEED), "--workers", "1", "--without-gpu"]
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.differential", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    total = next(line for line in done.stdout.splitlines() if line.startswith("| all |"))
    _, _, count, ran, unexplained, refused, _ = (cell.strip() for cell in total.split("|"))
    assert (count, unexplained) == (str(PROGRAMS), "0") and int(ran) >= 0.9 * PROGRAMS, total


@pytest.fixture(scope="module")
def simulated():
    """Programs and the simulator's answers."""
    answers = {}
    run_all([SIM], SEED, range(10), 1, lambda index, sides: answers.update({index: sides[0]}))
    return [(generate(SEED, index), answer) for index, answer in answers.items()]


def test_equal_answers_agree_bitwise(simulated):
    assert {compare(program, answer, answer).verdict for program, answer in simulated} == {BITWISE}


def test_contractions_are_modelled_or_allowed(simulated):
    fused = [(program, answer) for program, answer in simulated if answer.fused]
    assert fused
    for program, answer in fused:
        gpu = Answer(OK, results=answer.fused)
        assert compare(program, answer, gpu).verdict in (BITWISE, FUSED)
        assert compare(program, replace(answer, fused=[]), gpu).verdict in (BITWISE, ALLOWED)


def test_a_corrupted_answer_is_unexplained(simulated):
    """The sign of an element is inverted in one result of each program."""
    for program, answer in simulated:
        position, data = next((i, bytearray(d)) for i, d in enumerate(answer.results) if any(d))
        at = next(i for i, byte in enumerate(data) if byte & 0x7F not in (0, 0x7F))
        buffer = program.results[position]
        last = at - at % _bytes(buffer) + _bytes(buffer) - 1  # the byte with the sign
        data[last] ^= 0x80
        wrong = [bytes(data) if i == position else d for i, d in enumerate(answer.results)]
        outcome = compare(program, answer, Answer(OK, results=wrong))
        assert outcome.verdict == UNEXPLAINED and outcome.result == buffer.name, program.index
        report = Report(SEED)
        report.add(program.index, program.kind, outcome)
        assert report.unexplained == [program.index]
        assert f"{buffer.name}_ptr" in report.difference(program.index) and "| 1 |" in report.operations()


def _bytes(buffer):
    return 1 if buffer.dtype == "int1" else int("".join(filter(str.isdigit, buffer.dtype))) // 8


def test_errors_of_one_side_are_unexplained(simulated):
    program, answer = simulated[0]
    assert compare(program, answer, Answer(FAILED, "CUDA error")).verdict == UNEXPLAINED
    assert compare(program, Answer(FAILED, "TypeError"), answer).detail == "sim: TypeError"
    assert compare(program, answer, Answer(REFUSED, "no")).verdict == UNUSED


def test_without_a_gpu_there_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["differential"])
    assert main() == 2
    assert capsys.readouterr().err == "error: PyTorch sees no CUDA device; try: --without-gpu\n"


def test_a_program_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["differential", "--show", "17", "--seed", "1"])
    assert main() == 0
    assert capsys.readouterr().out == generate(1, 17).source() + "\n"
