"""Each field of the embedding on its own against its formula, then all of them at once."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from headtohead import Embedding, Size
from parts.made import SIZE, filled

IDS = torch.tensor([[3, 10, 0, 3], [7, 7, 1, 2]])
MASK = SIZE.vocabulary  # the id after the last, where a zero mask has no row


def built(part):
    return filled(part.build(dataclasses.replace(SIZE, embedding_width=part.width or SIZE.width)))


def unit(rows):
    return rows / rows.square().sum(-1, keepdim=True).sqrt()


def test_a_plain_embedding_is_a_look_up(draw):
    module, added = built(Embedding()), draw(2, 4, 12)
    table = module.token.weight
    assert torch.equal(module(IDS, None, None), table[IDS])
    assert torch.equal(module(IDS, None, added), table[IDS] + added)
    assert torch.equal(module.rows(), table) and module.up(added) is added and module.down(added) is added
    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {"token.weight": (11, 12)}


def test_by_hand():
    """Width 2, rows (3, 4) and (0, 2), the second one at a place that adds (1, 1)."""
    size = Size(vocabulary=2, length=2, width=2, embedding_width=2)
    ids, added = torch.tensor([[0, 1, 2]]), torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    wanted = {
        Embedding(mask="zero"): [[3, 4], [1, 3], [1, 1]],
        Embedding(mask="zero", normalize=True): [[0.6, 0.8], [1, 2], [1, 1]],
        Embedding(mask="zero", scale=True): [[3 * 2**0.5, 4 * 2**0.5], [1, 1 + 2 * 2**0.5], [1, 1]],
        Embedding(mask="zero", norm=True, norm_eps=0.75): [[-0.5, 0.5], [-((4 / 7) ** 0.5), (4 / 7) ** 0.5], [0, 0]],
        Embedding(mask="zero", segments=1): [[13, 24], [11, 23], [11, 21]],
    }
    for part, vectors in wanted.items():
        module = part.build(size).double()
        with torch.no_grad():
            module.token.weight.copy_(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
            if part.segments:
                module.segment.weight.copy_(torch.tensor([[10.0, 20.0]]))
        made = module(ids, None, added)[0]
        assert_close(made, torch.tensor(vectors, dtype=torch.float64), rtol=1e-14, atol=1e-14, msg=str(part))


def test_normalized_rows_have_length_1_where_they_are_looked_up_and_where_they_are_offered():
    module = built(Embedding(normalize=True))
    rows = unit(module.token.weight)
    assert_close(module.rows(), rows, rtol=1e-14, atol=0)
    assert_close(module(IDS, None, None), rows[IDS], rtol=1e-14, atol=0)
    assert (module.token.weight.norm(dim=-1) - 1).abs().min() > 1e-3


def test_a_row_of_zeros_stays_zero_under_normalization():
    module = built(Embedding(normalize=True))
    with torch.no_grad():
        module.token.weight[3] = 0.0
    assert torch.equal(module.rows()[3], torch.zeros(12, dtype=torch.float64))
    module(IDS, None, None).sum().backward()
    assert module.token.weight.grad.isfinite().all()


def test_scale_is_the_root_of_the_width_and_for_token_vectors_alone(draw):
    module, added = built(Embedding(scale=True)), draw(2, 4, 12)
    assert_close(module(IDS, None, added), module.token.weight[IDS] * math.sqrt(12) + added, rtol=1e-14, atol=0)
    assert torch.equal(module.rows(), module.token.weight)  # the head's rows are not scaled
    narrow = built(Embedding(scale=True, width=4))
    assert_close(narrow(IDS, None, None), narrow.token.weight[IDS] * 2.0, rtol=1e-14, atol=0)


@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_the_norm_comes_after_the_sum(eps, draw):
    module, added = built(Embedding(norm=True, norm_eps=eps, segments=2)), draw(2, 4, 12)
    kinds = torch.tensor([[0, 0, 1, 1], [1, 0, 1, 0]])
    total = module.token.weight[IDS] + added + module.segment.weight[kinds]
    wanted = F.layer_norm(total, (12,), module.norm.weight, module.norm.bias, eps)
    assert_close(module(IDS, kinds, added), wanted, rtol=1e-13, atol=1e-14)


def test_segments_add_a_vector_and_are_all_the_first_where_none_are_given():
    module = built(Embedding(segments=3))
    kinds = torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2]])
    assert torch.equal(module(IDS, kinds, None), module.token.weight[IDS] + module.segment.weight[kinds])
    assert torch.equal(module(IDS, None, None), module.token.weight[IDS] + module.segment.weight[0])
    assert module.segment.weight.shape == (3, 12)


@pytest.mark.parametrize("normalize", [False, True])
def test_a_zero_mask_is_the_zero_vector_and_moves_no_row(normalize):
    module = built(Embedding(mask="zero", normalize=normalize, scale=True))
    ids = torch.tensor([[MASK, 3, MASK]])
    made = module(ids, None, None)
    assert torch.equal(made[0, [0, 2]], torch.zeros(2, 12, dtype=torch.float64))
    assert torch.equal(made[0, 1], module(torch.tensor([[3]]), None, None)[0, 0])
    made.sum().backward()
    moved = module.token.weight.grad.abs().sum(-1).nonzero()[:, 0].tolist()
    assert moved == [3]  # not the last row either, which the look-up borrows


def test_a_zero_mask_still_stands_somewhere(draw):
    """Position and segment are added to the zero vector, as in study 2."""
    module, added = built(Embedding(mask="zero", segments=2)), draw(1, 1, 12)
    made = module(torch.tensor([[MASK]]), torch.tensor([[1]]), added)
    assert torch.equal(made, added + module.segment.weight[1])


def test_a_learned_mask_is_a_row_like_any_other():
    module = filled(Embedding().build(dataclasses.replace(SIZE, vocabulary=SIZE.vocabulary + 1)))
    assert torch.equal(module(torch.tensor([[MASK]]), None, None)[0, 0], module.token.weight[MASK])


def test_a_narrow_table_goes_up_by_a_linear_map_and_down_by_its_transpose(draw):
    module = built(Embedding(width=4))
    up = module.projection
    assert module.token.weight.shape == (11, 4) and up.weight.shape == (12, 4)
    low, high = draw(2, 5, 4), draw(2, 5, 12)
    assert_close(module.up(low), low @ up.weight.T + up.bias, rtol=1e-13, atol=1e-13)
    assert_close(module.down(high), high @ up.weight, rtol=1e-13, atol=1e-13)
    # transposes of each other: ⟨up x, y⟩ = ⟨x, down y⟩ but for the bias
    assert_close(((module.up(low) - up.bias) * high).sum(), (low * module.down(high)).sum(), rtol=1e-12, atol=0)


def test_all_fields_at_once(draw):
    """LN(√d·Ê[id] + added + S[segment]) in the tables' width."""
    part = Embedding(width=4, normalize=True, scale=True, norm=True, norm_eps=1e-12, segments=2, mask="zero")
    module, added, kinds = built(part), draw(2, 4, 4), torch.tensor([[0, 0, 1, 1], [1, 0, 1, 0]])
    ids = IDS.clone()
    ids[0, 1] = MASK
    token = 2.0 * unit(module.token.weight)[IDS]
    token[0, 1] = 0.0
    total = token + added + module.segment.weight[kinds]
    wanted = F.layer_norm(total, (4,), module.norm.weight, module.norm.bias, 1e-12)
    assert_close(module(ids, kinds, added), wanted, rtol=1e-12, atol=1e-13)
