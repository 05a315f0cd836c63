"""Trees of kernel files, walked as the standard library walks them."""

import ast

from generate.kernel_library import KERNELS
from verify import syntax


def test_walks_are_those_of_the_standard_library():
    trees = [ast.parse(path.read_text()) for path in sorted(KERNELS.glob("*/*.py"))[::25]]
    trees.append(ast.parse("def f(a, *b, c=1, **d):\n    return {**d, 'x': [i for i in b if i][1:]}, f'{a!r:>{c}}'\n"))
    for tree in trees:
        assert syntax.walk(tree) == list(ast.walk(tree))
        assert all(syntax.children(n) == list(ast.iter_child_nodes(n)) for n in ast.walk(tree))
