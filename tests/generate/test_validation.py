"""What files say is validated: wrong types, missing and unknown fields are one line."""

import pytest

from generate.kernel_search.skills import Support
from generate.validation import validated
from traces import jsonable


def test_unknown_missing_and_wrong_fields_are_refused_in_one_line():
    names = Support.__dataclass_fields__
    with pytest.raises(ValueError, match="^sped: there is no such field; there are: .*") as caught:
        validated(Support, {"sped": 2})
    assert all(name in str(caught.value) for name in names) and "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=f"^{next(iter(names))}: is missing$"):
        validated(Support, {})
    with pytest.raises(ValueError, match="valid"):
        validated(Support, dict.fromkeys(names, object()))
    with pytest.raises(ValueError, match="."):
        validated(Support, [1, 2])


def test_what_is_written_is_read_again():
    fields = {"str": "a", "float": 1.5, "int": 2, "bool": True}
    support = Support(**{name: fields[field.type] for name, field in Support.__dataclass_fields__.items()})
    assert validated(Support, jsonable(support)) == support
