"""Which part of a reply is run: never prose, never a draft."""

from __future__ import annotations

import pytest

from groundrule.rewards.verifiers.code_extract import extract_code

CASES = {
    "one block": ("Here:\n```python\nx = 1\n```\nDone.", "x = 1"),
    "no block": ("x = 1", None),
    "prose only": ("import this idea into your life", None),
    "the last of two": ("```python\nx = 1\n```\n```py\nx = 2\n```", "x = 2"),
    "no label": ("```\nx = 1\n```", "x = 1"),
    "another language": ("```bash\nls\n```", None),
    "python before sample output": ("```python\nx = 1\n```\nprints\n```\n5\n```", "x = 1"),
    "cut off": ("```python\nx = 1", None),
    "cut off after a whole one": ("```python\nx = 1\n```\n```python\nx = 2", "x = 1"),
    "inside thinking": ("<think>```python\nx = 0\n```</think>None.", None),
    "thinking never closed": ("<think>\n```python\nx = 0\n```", None),
    "thinking opened by the template": ("```python\nx = 0\n```\n</think>\n```python\nx = 1\n```", "x = 1"),
    "four marks around three": ("````python\n'''\n```\n'''\n````", "'''\n```\n'''"),
    "tildes": ("~~~python\nx = 1\n~~~", "x = 1"),
    "other marks inside": ("~~~python\n'''\n```\n'''\n~~~", "'''\n```\n'''"),
    "upper case": ("```Python\nx = 1\n```", "x = 1"),
    "words after the label": ("```python title=a.py\nx = 1\n```", "x = 1"),
    "indented in a list": ("1. So:\n   ```python\n   if x:\n       y = 1\n   ```", "if x:\n    y = 1"),
    "fence deep inside a docstring": (
        '```python\ndef f():\n    """\n    ```\n    """\n```',
        'def f():\n    """\n    ```\n    """',
    ),
    "inline marks": ("Use ```x``` here.", None),
    "empty block": ("```python\n```", ""),
    "windows line ends": ("```python\r\nx = 1\r\ny = 2\r\n```\r\n", "x = 1\ny = 2"),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("reply", "code"), CASES.values(), ids=CASES)
def test_the_program_of_a_reply(reply, code):
    assert extract_code(reply) == code
