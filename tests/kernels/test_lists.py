"""Lists of tensors that go together: a program looks its tensor up once for several blocks where there are many."""

import pytest
import torch

from enable import library


@pytest.mark.parametrize("sizes", [(4500, 3, 70000), (2_900_001, 5, 1_500_000)])
def test_each_tensor_of_a_list_gets_its_own(sizes):
    torch.manual_seed(0)
    tensors, others = ([torch.randn(n) for n in sizes] for _ in range(2))
    with library.use("cpu", unverified=True) as served:
        found = torch._foreach_add(tensors, others, alpha=2)
    assert served.counts.served["aten::_foreach_add.List"] == 1
    for got, x, y in zip(found, tensors, others, strict=True):
        assert torch.equal(got, x + 2 * y)
