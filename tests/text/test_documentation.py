import re

import pytest

from headtohead.spec import Mistake
from headtohead.text import documentation
from headtohead.text.contamination import contamination
from headtohead.text.corpus import open_corpus
from headtohead.text.documentation import PythonDocs
from headtohead.text.split import Split

from .conftest import both, write


def test_the_documentation_inside_python():
    train, validation = both(PythonDocs())
    found = contamination(train, validation)
    assert found.share < 0.001 and found.grams < 0.05, found
    held_out = sum(map(len, validation)) / sum(map(len, train + validation))
    assert sum(map(len, train)) > 1_000_000 and 0.085 < held_out <= 0.1
    assert len(validation) >= 20
    paragraphs = [p.lower().split() for text in train + validation for p in re.split(r"\n\s*\n", text)]
    assert len(paragraphs) == len(set(map(tuple, paragraphs)))
    corpus = open_corpus(PythonDocs(), Split())
    assert corpus.bordered and corpus.name == "python-docs" and f"{len(train + validation)} documents" in corpus.note


def numbered(**counts: int) -> str:
    return " ".join(f"{word}{n}" for word, count in counts.items() for n in range(count))


LIBRARY = {
    "pydoc_data/topics.py": "topics = {'assert': 'A topic of its own, with as many words as a document needs to be.'}",
    "alone.py": '"""The first one."""\ndef f():\n    "A second docstring."\nraise RuntimeError("never imported")\n',
    "pack/__init__.py": f'"""{numbered(pack=40)}"""',
    "pack/inner.py": 'class C:\n  """Inner words."""\n  def f(self):\n    """Shared\n    part.\n\n    Own one."""',
    "near.py": f'"""{numbered(pack=15, near=5)}"""',
    "far.py": f'"""{numbered(pack=13, far=12)}\n\nshared  PART."""',
    "short.py": '"""Too short to stay."""',
    "template.py": "def {name}(): pass",
    "test/mine.py": f'"""{numbered(test=20)}"""',
    "lib2to3/old.py": f'"""{numbered(old=20)}"""',
}


def test_documents_are_packages_and_what_shares_13_grams(tmp_path):
    found = documentation.gathered(write(tmp_path, LIBRARY))
    assert len(found) == 3
    one = next(text for text in found if "near4" in text)  # shares 3 of its 8 13-grams with pack: one document
    assert "pack19" in one and "Inner words." in one and "Own one." in one and "near4" in one
    other = next(text for text in found if "far11" in text)  # shares 1 of 13: another
    assert "pack19" not in other and "shared  PART." in other and "Shared" not in one
    assert any(text.startswith("A topic of its own") for text in found)
    assert not any("test1" in text or "old1" in text or "Too short" in text for text in found)


def test_docstrings_come_in_the_order_of_the_source(tmp_path):
    write(tmp_path, LIBRARY)
    assert documentation.docstrings(tmp_path / "alone.py") == ["The first one.", "A second docstring."]
    assert documentation.docstrings(tmp_path / "template.py") == []


def test_a_python_without_topics_still_has_docstrings(tmp_path):
    library = {name: code for name, code in LIBRARY.items() if not name.startswith("pydoc_data")}
    assert len(documentation.gathered(write(tmp_path, library))) == 2


def test_a_python_without_sources_says_so(tmp_path):
    with pytest.raises(Mistake, match=r"no source files; give your own text, File\(path\)"):
        documentation.gathered(tmp_path)
