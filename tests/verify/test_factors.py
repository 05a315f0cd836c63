"""Factors of which signs and bases are open: right in any of them, wrong in what the definition lays down."""

import pytest
import torch

from traces.overloads import bind, call, resolve
from traces.values import pack
from verify.cases.case import case_of_values, reference
from verify.comparison.compare import compare, error_ratio


def frozen(**values):
    packed = pack(values)
    packed.data = [None if d is None else bytes(d) for d in packed.data]
    return packed


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def repeated():
    """A symmetric matrix with three equal eigenvalues and one of the opposite sign."""
    q, _ = torch.linalg.qr(random(5, 5))
    return (q * torch.tensor([2.0, 2, 2, -2, 0.5])) @ q.mT


def deficient():
    """Matrices of rank 2."""
    return random(2, 6, 2) @ random(2, 2, 4)


CALLS = {
    "eigh": ("aten::_linalg_eigh", lambda: {"A": random(2, 6, 6)}),
    "eigh of the upper triangle": ("aten::_linalg_eigh", lambda: {"A": random(6, 6), "UPLO": "U"}),
    "equal eigenvalues": ("aten::_linalg_eigh", lambda: {"A": repeated()}),
    "small eigenvalues": ("aten::_linalg_eigh", lambda: {"A": random(4, 4) * 1e-30}),
    "svd of tall ones": ("aten::_linalg_svd", lambda: {"A": random(2, 6, 4)}),
    "svd of wide ones": ("aten::_linalg_svd", lambda: {"A": random(4, 6), "full_matrices": True}),
    "svd of rank 2": ("aten::_linalg_svd", lambda: {"A": deficient(), "full_matrices": True}),
}
PLACES = {"aten::_linalg_eigh": (1, 0, 1), "aten::_linalg_svd": (0, 1, 2)}  # of vectors, values, the other vectors


def judged(overload, arguments, change):
    """What is told of ATen's own answer with its factors changed: (U, values, V), the vectors being columns."""
    expected = reference(case_of_values(overload, **bind(resolve(overload), (), arguments)))
    found = [t.clone() for t in call(resolve(overload), bind(resolve(overload), (), arguments))]
    u, values, v = (found[k] for k in PLACES[overload])
    change(u, values, v if overload == "aten::_linalg_eigh" else v.mT)
    got = frozen(**bind(resolve(overload), (), arguments), **{"return": tuple(found)})
    told = compare(overload, expected, got)
    return told.detail if told else None, error_ratio(expected, got)


def mirrored(u, values, v):
    u[..., 1] *= -1
    if v.data_ptr() != u.data_ptr():
        v[..., 1] *= -1


def rotated(u, values, v):
    """Another basis of the space of the eigenvalue 2."""
    q, _ = torch.linalg.qr(random(3, 3))
    u[..., 2:] = u[..., 2:] @ q.to(u.dtype)


def scaled(u, values, v):
    v[..., 1] *= 1.001


def zeroed(u, values, v):
    v[..., 2] = 0


def unordered(u, values, v):
    for t in (u, values) if u.data_ptr() == v.data_ptr() else (u, values, v):
        t[..., :2] = t[..., :2].flip(-1)


def replaced(u, values, v):
    u[..., 0] = u[..., 1]


def exchanged(u, values, v):
    v[..., :2] = v[..., :2].flip(-1)


def nudged(u, values, v):
    values[..., 0] += 1e-3 * values.abs().max()


def unfilled(u, values, v):
    v[..., -1, :] = torch.nan


def identity(u, values, v):
    u.copy_(torch.eye(*u.shape[-2:], dtype=u.dtype))


BAD = (scaled, zeroed, unordered, replaced, exchanged, nudged, unfilled, identity)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CALLS)
def test_atens_own_answer_is_right_and_so_is_one_of_other_signs(name, dtype):
    overload, arguments = CALLS[name][0], {k: _as(v, dtype) for k, v in CALLS[name][1]().items()}
    for change in (lambda *factors: None, mirrored):
        told, ratio = judged(overload, arguments, change)
        assert told is None and ratio < 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_eigenvalues_have_any_basis(dtype):
    told = judged("aten::_linalg_eigh", {"A": repeated().to(dtype)}, rotated)[0]
    assert told is None
    assert "wrong" in judged("aten::_linalg_eigh", {"A": random(5, 5).to(dtype)}, rotated)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("change", BAD, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", ["eigh", "eigh of the upper triangle", "small eigenvalues", "svd of tall ones",
                                  "svd of wide ones"])  # fmt: skip
def test_bad_factors_are_refused(name, change, dtype):
    overload, arguments = CALLS[name][0], {k: _as(v, dtype) for k, v in CALLS[name][1]().items()}
    assert "elements wrong" in judged(overload, arguments, change)[0]


@pytest.mark.parametrize("name", ["svd of tall ones", "svd of wide ones"])
def test_singular_vectors_have_their_signs_together(name):
    def one_sign(u, values, v):
        u[..., 1] *= -1

    told = judged(CALLS[name][0], CALLS[name][1](), one_sign)[0]
    assert told.startswith("return[0] (the factors' product, then the vectors')")


@pytest.mark.parametrize("change", [scaled, zeroed, replaced, unfilled])
def test_vectors_of_the_value_0_are_orthonormal_too(change):
    overload, arguments = CALLS["svd of rank 2"][0], CALLS["svd of rank 2"][1]()
    last = {scaled: lambda u, s, v: v[..., 3].mul_(1.001), zeroed: lambda u, s, v: u[..., 5].zero_()}
    assert "elements wrong" in judged(overload, arguments, last.get(change, change))[0]


def test_results_that_are_given():
    a = random(3, 3)
    arguments = {"A": a, "eigenvalues": torch.empty(0).double(), "eigenvectors": torch.empty(0).double()}
    overload = "aten::_linalg_eigh.eigenvalues"
    expected = reference(case_of_values(overload, **bind(resolve(overload), (), arguments)))
    for factor, wrong in ((-1.0, False), (1.001, True)):
        values, vectors = torch.linalg.eigh(a)
        vectors = (vectors * factor).mT.contiguous().mT
        given = {"A": a, "UPLO": "L", "compute_v": True, "eigenvalues": values, "eigenvectors": vectors}
        got = frozen(**given, **{"return": (values, vectors)})
        assert (compare(overload, expected, got) is not None) is wrong


def test_float64_in_single_precision_is_told_as_such():
    a = random(8, 8)
    arguments = bind(resolve("aten::_linalg_eigh"), (), {"A": a})
    expected = reference(case_of_values("aten::_linalg_eigh", **arguments))
    values, vectors = (t.double() for t in torch.linalg.eigh(a.float()))
    got = frozen(**arguments, **{"return": (values, vectors.mT.contiguous().mT)})
    assert compare("aten::_linalg_eigh", expected, got).rule == "single precision"


@pytest.mark.parametrize("atol", [None, torch.tensor(0.0), torch.tensor([0.0, 1e-3])])
def test_the_rank_of_a_pseudoinverse_is_that_in_its_own_dtype(atol):
    """The least singular value is 2e-8 of the largest: it counts in float64 alone."""
    u, _ = torch.linalg.qr(random(3, 3))
    a = (u * torch.tensor([1.0, 0.5, 2e-8])).float().expand(2, 3, 3)
    arguments = bind(resolve("aten::linalg_pinv.atol_rtol_tensor"), (), {"self": a, "atol": atol})
    expected = reference(case_of_values("aten::linalg_pinv.atol_rtol_tensor", **arguments))
    right = torch.linalg.pinv(a.double(), rtol=4e-7)
    for factor, wrong in ((1.0, False), (1.01, True), (0.0, True)):
        got = frozen(**arguments, **{"return": (right * factor).float()})
        assert (compare("aten::linalg_pinv.atol_rtol_tensor", expected, got) is not None) is wrong


def _as(value, dtype):
    return value.to(dtype) if isinstance(value, torch.Tensor) else value


GENERAL = {
    "real and complex values": lambda: random(2, 6, 6),
    "equal values": lambda: torch.diag_embed(torch.tensor([2.0, 2, 2, -1, 0.5]).double()),
    "small values": lambda: random(4, 4) * 1e-30,
    "one value that has one vector": lambda: torch.eye(4).double() + torch.diag(torch.ones(3), 1).double(),
}


def judged_general(name, dtype, change, overload="aten::linalg_eig"):
    """What is told of ATen's eigenvalues and eigenvectors, changed in place."""
    arguments = {"self": GENERAL[name]().to(dtype)}
    expected = reference(case_of_values(overload, **arguments))
    found = call(resolve(overload), dict(arguments))
    values, vectors = (t.clone() for t in found) if isinstance(found, tuple) else (found.clone(), None)
    change(values, vectors)
    got = frozen(**arguments, **{"return": values if vectors is None else (values, vectors)})
    told = compare(overload, expected, got)
    return told.detail if told else None, error_ratio(expected, got)


def turned(values, vectors):
    """Other phases, and another order."""
    phases = torch.polar(torch.ones(values.shape[-1]).double(), 1.0 + torch.arange(values.shape[-1]).double())
    vectors *= phases.to(vectors.dtype)
    values[:], vectors[:] = values.flip(-1), vectors.flip(-1)


def longer(values, vectors):
    vectors[..., 1] *= 1.001


def none(values, vectors):
    vectors[..., 2] = 0


def twice(values, vectors):
    vectors[..., 0] = vectors[..., 1]


def apart(values, vectors):
    vectors[:] = vectors.flip(-1)


def off(values, vectors):
    values[..., 0] += 1e-3 * values.abs().max()


def same_value(values, vectors):
    values[..., 0], vectors[..., 0] = values[..., -1], vectors[..., -1]


def not_conjugate(values, vectors):
    values[:] = values.real + 1j * values.imag.abs()


def unknown(values, vectors):
    vectors[..., -1, :] = torch.nan


def missing(values, vectors):
    values[..., 0] = torch.nan


def units(values, vectors):
    vectors.copy_(torch.eye(vectors.shape[-1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", GENERAL)
def test_eigenvalues_have_any_order_and_eigenvectors_any_phase(name, dtype):
    for change in (lambda *found: None, turned):
        told, ratio = judged_general(name, dtype, change)
        assert told is None and (ratio is None or ratio < 3)
    reverse = lambda values, vectors: values.copy_(values.flip(-1).clone())  # noqa: E731
    assert judged_general(name, dtype, reverse, "aten::_linalg_eigvals")[0] is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "change", [longer, none, twice, apart, off, same_value, not_conjugate, unknown, missing, units]
)
def test_bad_eigenvalues_and_eigenvectors_are_refused(change, dtype):
    assert "elements wrong" in judged_general("real and complex values", dtype, change)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvectors_of_equal_values_have_to_be_independent(dtype):
    """Both belong to the value 2; a basis of another two of its vectors is right."""

    def other(values, vectors):
        vectors[..., 0] = (vectors[..., 0] + vectors[..., 1]) * 0.5**0.5

    assert judged_general("equal values", dtype, other)[0] is None
    assert "elements wrong" in judged_general("equal values", dtype, twice)[0]


@pytest.mark.parametrize("change", [off, same_value, not_conjugate, missing])
def test_bad_eigenvalues_alone_are_refused(change):
    both = lambda values, _: change(values, torch.zeros(*values.shape, values.shape[-1]))  # noqa: E731
    told = judged_general("real and complex values", torch.float32, both, "aten::_linalg_eigvals")[0]
    assert "elements wrong" in told


def orthogonal(overload, a, given, change=lambda t: None):
    """The detail of the comparison for the factors of `a`, changed, as an answer for the matrix `given`."""
    factors = [t.clone() for t in call(resolve(overload), bind(resolve(overload), (a,), {}))]
    change(factors)
    arguments = bind(resolve(overload), (given,), {})
    expected = reference(case_of_values(overload, **arguments))
    mismatch = compare(overload, expected, frozen(**arguments, **{"return": tuple(factors)}))
    return mismatch.detail if mismatch else None


def other_sign(factors):
    q, r = factors
    q[..., 0] *= -1
    r[..., 0, :] *= -1


def not_triangular(factors):
    q, r = factors
    turn, _ = torch.linalg.qr(random(q.shape[-1], q.shape[-1]).float())
    factors[:] = q @ turn, turn.mT @ r


@pytest.mark.parametrize("overload", ["aten::geqrf", "aten::linalg_qr"])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_reflections_of_dependent_columns_are_open(overload, shape):
    rank_two = (random(3, shape[0], 2) @ random(3, 2, shape[1])).float()
    nearly = rank_two + 1e-7 * random(3, *shape).float()
    assert orthogonal(overload, nearly, rank_two) is None
    for change in (lambda f: f[0].mul_(1.01), lambda f: f[1][..., 0].mul_(1.1)):
        assert orthogonal(overload, nearly, rank_two, change) is not None
    independent = random(3, *shape).float()
    assert orthogonal(overload, independent, independent) is None
    if overload == "aten::linalg_qr":
        assert orthogonal(overload, rank_two, rank_two, other_sign) is None
        assert orthogonal(overload, rank_two, rank_two, not_triangular) is not None
        assert orthogonal(overload, independent, independent, other_sign) is not None
