"""Positions against the studies' tables, complex numbers, exact integer buckets and transformers' own code."""

import dataclasses
import math

import pytest
import torch
from torch.testing import assert_close

from headtohead import Alibi, Learned, Nothing, RelativeBuckets, Rotary, Sinusoidal
from headtohead.parts.position import slopes
from parts.made import SIZE, filled

RESTARTED = torch.tensor([[0, 1, 2, 0, 1, 2, 3]])  # two documents in one row
ROOT = math.sqrt(0.5)


def of_heads(heads, width=16):
    return dataclasses.replace(SIZE, heads=heads, width=width, embedding_width=width)


def test_nothing_does_nothing(draw):
    module, q = Nothing().build(SIZE), draw(1, 2, 7, 4)
    assert module.embed(RESTARTED) is None and module.bias(RESTARTED, RESTARTED) is None
    turned = module.turn(q, q + 1, RESTARTED, RESTARTED)
    assert torch.equal(turned[0], q) and torch.equal(turned[1], q + 1)


@pytest.mark.parametrize("part", [Learned(), Sinusoidal()], ids=str)
def test_vectors_leave_scores_alone(part, draw):
    module, q = part.build(SIZE), draw(1, 3, 7, 4)
    assert module.bias(RESTARTED, RESTARTED) is None
    assert all(map(torch.equal, module.turn(q, -q, RESTARTED, RESTARTED), (q, -q)))


@pytest.mark.parametrize("offset", [0, 2])
def test_learned_looks_up_the_position_in_its_document(offset):
    module = filled(Learned(padding_offset=offset).build(SIZE))
    assert module.table.weight.shape == (SIZE.length + offset, SIZE.embedding_width)
    rows = module.embed(RESTARTED)[0]
    for place, position in enumerate(RESTARTED[0].tolist()):
        assert torch.equal(rows[place], module.table.weight[position + offset])


@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_sinusoidal_is_the_papers_formula(base):
    """Channel 2i is sin(p / base^(2i/d)), channel 2i + 1 its cosine."""
    d = SIZE.embedding_width
    vectors = Sinusoidal(base=base).build(SIZE).embed(RESTARTED)
    for place, p in enumerate(RESTARTED[0].tolist()):
        for i in range(d // 2):
            angle = p / base ** (2 * i / d)
            assert vectors[0, place, 2 * i].item() == pytest.approx(math.sin(angle), abs=3e-7)
            assert vectors[0, place, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=3e-7)


def test_sinusoidal_in_halves_is_study_twos():
    """All sines, then all cosines, of p / base^(2i / (d − 2)): the last channel of each half turns at 1 / base."""
    half = SIZE.embedding_width // 2
    vectors = Sinusoidal(layout="halves").build(SIZE).embed(torch.tensor([[0, 1, 5]]))
    for place, p in enumerate((0, 1, 5)):
        for i in range(half):
            angle = p / 10000 ** (i / (half - 1))
            assert vectors[0, place, i].item() == pytest.approx(math.sin(angle), abs=3e-7)
            assert vectors[0, place, half + i].item() == pytest.approx(math.cos(angle), abs=3e-7)


@pytest.mark.parametrize("layout", ["halves", "pairs"])
@pytest.mark.parametrize("base", [10000.0, 10.0])
def test_rotary_multiplies_by_complex_numbers(layout, base, draw):
    """Two channels are one complex number z; position p makes it z · exp(ip / base^(2c/d)) for the c-th pair."""
    size, x = of_heads(2), draw(2, 2, 7, 8)
    q, k = Rotary(base=base, layout=layout).build(size).double().turn(x, x, RESTARTED, RESTARTED + 3)
    first, second = (slice(0, 4), slice(4, 8)) if layout == "halves" else (slice(0, 8, 2), slice(1, 8, 2))
    z = torch.complex(x[..., first], x[..., second])
    for turned, position in ((q, RESTARTED), (k, RESTARTED + 3)):
        angle = position[0, :, None] / base ** (torch.arange(4, dtype=torch.float64) / 4)
        wanted = z * torch.polar(torch.ones_like(angle), angle)
        # the speeds are kept in float32, and the largest angle is 6
        assert_close(torch.complex(turned[..., first], turned[..., second]), wanted, rtol=0, atol=3e-6)


@pytest.mark.parametrize("layout", ["halves", "pairs"])
def test_rotary_scores_know_only_the_distance(layout, draw):
    module, x = Rotary(layout=layout).build(of_heads(2)).double(), draw(1, 2, 6, 8)
    positions = torch.arange(6)[None]

    def scores(shift):
        q, k = module.turn(x, x.flip(1), positions + shift, positions + shift)
        return q @ k.transpose(-2, -1)

    assert_close(scores(40), scores(0), rtol=1e-12, atol=1e-12)
    q, _ = module.turn(x, x, positions, positions)
    assert_close(q.norm(dim=-1), x.norm(dim=-1), rtol=1e-13, atol=0)
    assert torch.equal(q[:, :, 0], x[:, :, 0]) and (q[:, :, 1:] - x[:, :, 1:]).abs().max() > 0.1


def test_rotary_keeps_the_type_of_what_it_turns(draw):
    x = draw(1, 2, 7, 8).bfloat16()
    q, k = Rotary().build(of_heads(2)).turn(x, x, RESTARTED, RESTARTED)
    assert q.dtype == k.dtype == torch.bfloat16


def test_rotary_is_transformers(draw):
    from transformers.models.llama import modeling_llama as llama

    config = llama.LlamaConfig(hidden_size=16, num_attention_heads=2, rope_theta=10000.0)
    q, k, position = draw(2, 2, 300, 8).float(), draw(2, 2, 300, 8).float(), torch.arange(300)[None]
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, position)
    theirs = llama.apply_rotary_pos_emb(q, k, cos, sin)
    for turned, wanted in zip(Rotary().build(of_heads(2)).turn(q, k, position, position), theirs, strict=True):
        assert_close(turned, wanted, rtol=0, atol=1e-4)  # an angle of 300 has a float32 rounding of 1.5e-5


@pytest.mark.parametrize(
    ("heads", "published"),
    [
        (1, [1 / 256]),
        (2, [1 / 16, 1 / 256]),
        (4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]),
        (6, [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]),
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),
        (12, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256, ROOT, ROOT / 2, ROOT / 4, ROOT / 8]),
        (16, [factor / 2**k for k in range(8) for factor in (ROOT, 1 / 2)]),
    ],
)
def test_slopes_are_the_published_ones_in_their_order(heads, published):
    assert slopes(heads) == pytest.approx(published, rel=1e-15)


def bias_of(shape, heads, query, key):
    return Alibi(shape=shape).build(of_heads(heads)).bias(torch.tensor([query]), torch.tensor([key]))


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ("symmetric", [[0, -1, -2, -3], [-1, 0, -1, -2], [-2, -1, 0, -1], [-3, -2, -1, 0]]),
        ("shifted", [[0, -0.5, -1.5, -2.5], [-1, 0, -0.5, -1.5], [-2, -1, 0, -0.5], [-3, -2, -1, 0]]),
    ],
)
def test_alibi_is_the_distance_times_the_slope(shape, rows):
    bias = bias_of(shape, 4, [0, 1, 2, 3], [0, 1, 2, 3])
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        assert torch.equal(bias[0, head], slope * torch.tensor(rows))


def test_alibi_by_sides_shows_half_of_the_heads_the_past_and_half_the_future():
    """Four heads are two to the left and two to the right, with the two slopes of two heads on each side."""
    bias = bias_of("sides", 4, [0, 1, 2], [0, 1, 2])
    inf = math.inf
    for head, slope in ((0, 1 / 16), (1, 1 / 256)):
        assert torch.equal(bias[0, head], slope * torch.tensor([[0, -inf, -inf], [-1, 0, -inf], [-2, -1, 0]]))
        assert torch.equal(bias[0, head + 2], slope * torch.tensor([[0, -1, -2], [-inf, 0, -1], [-inf, -inf, 0]]))


@pytest.mark.parametrize("shape", ["symmetric", "shifted", "sides"])
def test_alibi_measures_inside_the_document_and_from_any_query(shape):
    """Positions that restart give each document the block it would have alone; a late query has its row of the whole."""
    whole = bias_of(shape, 2, range(7), range(7))
    bias = bias_of(shape, 2, RESTARTED[0].tolist(), RESTARTED[0].tolist())
    assert torch.equal(bias[..., :3, :3], whole[..., :3, :3])
    assert torch.equal(bias[..., 3:, 3:], whole[..., :4, :4])
    assert torch.equal(bias_of(shape, 2, [5], range(7)), whole[:, :, 5:6])
    assert not any(parameter.requires_grad for parameter in Alibi(shape=shape).build(SIZE).parameters())


def bucket(query_minus_key, buckets, distance, both_sides):
    """T5's bucket in whole numbers: half of the buckets are exact, bucket e + j begins where (d/e)^(B−e) = (D/e)^j."""
    start = 0
    if both_sides:
        buckets //= 2
        start = buckets if query_minus_key < 0 else 0
        far = abs(query_minus_key)
    else:
        far = max(query_minus_key, 0)
    exact = buckets // 2
    if far < exact:
        return start + far
    grown = max(
        j
        for j in range(buckets - exact)
        if far ** (buckets - exact) * exact**j >= distance**j * exact ** (buckets - exact)
    )
    return start + exact + grown


TABLES = [(32, 128, True), (32, 128, False), (8, 20, True), (16, 100, False)]


@pytest.mark.parametrize(("buckets", "distance", "both_sides"), TABLES)
def test_buckets_are_exact_then_logarithmic_then_one(buckets, distance, both_sides):
    part = RelativeBuckets(buckets=buckets, distance=distance, both_sides=both_sides)
    found = part.build(SIZE).bucket(torch.arange(-300, 301)).tolist()
    assert found == [bucket(-ahead, buckets, distance, both_sides) for ahead in range(-300, 301)]
    assert set(found) == set(range(buckets)) - ({buckets // 2} if both_sides else set())  # no key ahead is 0 away


def test_a_bucket_is_a_learned_score_for_each_head():
    module = filled(RelativeBuckets(buckets=8, distance=6).build(SIZE))
    assert [tuple(p.shape) for p in module.parameters()] == [(8, SIZE.heads)]
    bias = module.bias(RESTARTED, RESTARTED[:, 3:])
    for i, query in enumerate(RESTARTED[0].tolist()):
        for j, key in enumerate(RESTARTED[0, 3:].tolist()):
            assert torch.equal(bias[0, :, i, j], module.table.weight[bucket(query - key, 8, 6, True)])


@pytest.mark.parametrize(("buckets", "distance", "both_sides"), TABLES)
def test_buckets_are_transformers(buckets, distance, both_sides):
    from transformers.models.t5.modeling_t5 import T5Attention

    ahead = torch.arange(-3000, 3001)
    theirs = T5Attention._relative_position_bucket(ahead, both_sides, buckets, distance)
    part = RelativeBuckets(buckets=buckets, distance=distance, both_sides=both_sides)
    assert torch.equal(part.build(SIZE).bucket(ahead), theirs)
