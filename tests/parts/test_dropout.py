"""The counter-based noise: the hash by hand, its rate, its independence of everything it should not depend on."""

import hashlib
import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch.testing import assert_close

import headtohead.model
from headtohead import Dropout, Transformer
from headtohead.parts.dropout import drop, keep, place, row_keys, site
from parts.made import SIZE

RATES = pytest.mark.parametrize("rate", [0.05, 0.1, 0.5])
SITE = site("somewhere")


def mask(rows, elements, rate, seed=0, step=0, where=SITE):
    """Kept elements of one site as the model has them, rows × elements, in numbers."""
    return keep(place(row_keys(seed, step, np.arange(rows)), where), (elements,), rate).double()


def check_independent(streams):
    """How many elements two streams drop together is hypergeometric, given how many each drops: of every two streams.

    The mean square of all standardized counts is 1 within 4 standard errors, and no count is so far out that fewer than
    one in 100 such tests would see it.
    """
    dropped, n = 1 - streams.float(), streams.shape[1]
    one, other = torch.triu_indices(len(dropped), len(dropped), 1)
    drops = dropped.sum(1).double()
    first, second, both = drops[one], drops[other], (dropped @ dropped.T)[one, other].double()
    expected = first * second / n
    z = (both - expected) / (expected * (1 - first / n) * (1 - second / n) * n / (n - 1)).sqrt()
    assert abs(z.square().mean().item() - 1) < 4 * math.sqrt(2 / z.numel())
    furthest = z.abs().topk(20).indices  # the law is skewed for small rates, so its own tails are asked
    law = scipy.stats.hypergeom(n, first[furthest].numpy(), second[furthest].numpy())
    count = both[furthest].numpy()
    assert np.minimum(law.sf(count - 1), law.cdf(count)).min() > 0.01 / (2 * z.numel())


def mixed(x, added):
    """The finalizer in unsigned whole numbers."""
    x = ((x ^ (x >> 17)) * 0xED5AD4BB + added) % 2**32
    x = (x ^ (x >> 11)) * 0xAC4C1B51 % 2**32
    x = (x ^ (x >> 15)) * 0x31848BAB % 2**32
    return x ^ (x >> 14)


def test_the_hash_by_hand():
    """Everything in Python's whole numbers: keys of a row, a place mixed in, an element hashed and compared with rate·2³²."""
    digest = hashlib.blake2b(b"dropout/3/14/15", digest_size=8).digest()
    first, second = (int.from_bytes(half, "little") for half in (digest[:4], digest[4:]))
    where = hashlib.blake2b(b"layer 9", digest_size=8).digest()
    first, second = (
        mixed(first ^ int.from_bytes(where[:4], "little"), second),
        mixed(second ^ int.from_bytes(where[4:], "little"), first),
    )
    # what is hashed is signed there: the smallest number stands where 0 stands here
    hashed = [(mixed(element ^ first, second) + 2**31) % 2**32 for element in range(1000)]
    keys = place(row_keys(3, 14, np.array([15])), site("layer 9"))
    for rate in (0.05, 0.1, 0.5, 0.9):
        assert keep(keys, (1000,), rate)[0].tolist() == [value >= round(rate * 2**32) for value in hashed]


def test_nothing_is_dropped_without_keys_or_without_a_rate(draw):
    x = draw(4, 10)
    assert drop(x, None, SITE, 0.5) is x
    assert drop(x, row_keys(0, 0, np.arange(4)), SITE, 0.0) is x
    assert Dropout() == Dropout(embedding=0.0, weights=0.0, attention=0.0, feedforward=0.0)


@RATES
def test_the_rate_is_the_rate(rate):
    """Over four million elements, over each row, and over each element of all rows."""
    dropped = 1 - mask(64, 2**16, rate)
    error = math.sqrt(rate * (1 - rate) / dropped.numel())
    assert abs(dropped.mean().item() - rate) < 4 * error
    tall = 1 - mask(4096, 1024, rate, step=1)
    assert abs(tall.mean().item() - rate) < 4 * error
    for shares, count in ((dropped.mean(1), 2**16), (tall.mean(1), 1024), (tall.mean(0), 4096)):
        square = ((shares - rate).square() / (rate * (1 - rate) / count)).sum().item()
        assert 1e-3 < scipy.stats.chi2.sf(square, len(shares)) < 1 - 1e-3


@RATES
def test_neighbours_are_independent(rate):
    """At every distance up to 64, and at the distances that a row of channels or of scores has."""
    x = (mask(256, 2**15, rate).float() - (1 - rate)) / math.sqrt(rate * (1 - rate))
    distances = [*range(1, 65), 96, 127, 128, 129, 160, 192, 256, 384, 512, 576, 768, 1024, 3072, 4096, 16384]
    sums = [(x[:, :-d] * x[:, d:]).sum().item() / math.sqrt(x[:, d:].numel()) for d in distances]
    assert max(map(abs, sums)) < scipy.stats.norm.isf(0.01 / (2 * len(distances)))  # one in 100 such tests sees more


@RATES
def test_runs_are_as_many_as_chance_makes(rate):
    """Wald and Wolfowitz: r = 1 + 2·kept·dropped/n runs are expected, with variance (r − 1)(r − 2)/(n − 1)."""
    x = mask(1, 2**22, rate)[0]
    kept, n = x.sum().item(), x.numel()
    expected = 1 + 2 * kept * (n - kept) / n
    runs = 1 + (x[1:] != x[:-1]).sum().item()
    assert abs(runs - expected) < 4 * math.sqrt((expected - 1) * (expected - 2) / (n - 1))


@RATES
def test_rows_are_independent(rate):
    check_independent(mask(512, 2**14, rate))


@RATES
def test_seeds_steps_layers_sites_and_rows_are_independent(rate):
    """The same elements under 720 different addresses, every two of them compared."""
    addresses = itertools.product(
        range(3), (0, 1, 2, 999), range(5), ("embedding", "weights", "attention", "feedforward")
    )
    streams = []
    for seed, step, layer, name in addresses:
        here = place(row_keys(seed, step, np.array([0, 1, 40])), site(f"layer {layer}"))
        streams.append(keep(place(here, site(name)), (2**13,), rate)[:: 1 + layer % 2])
    check_independent(torch.cat(streams))


def test_bits_are_independent_in_pairs():
    """Words of 32 elements: each of the 496 pairs of places has its four patterns as often as chance (1 degree, χ² = z²)."""
    check_independent(mask(64, 2**16, 0.5).view(-1, 32).T)


def test_the_number_that_is_hashed_is_even_and_so_are_pairs_of_neighbours():
    """Dropped at sixteen rates, an element tells the four leading bits of its hash."""
    keys = place(row_keys(0, 0, np.arange(16)), SITE)
    level = sum((~keep(keys, (2**16,), k / 16)).long() for k in range(1, 16))
    assert scipy.stats.chisquare(level.flatten().bincount(minlength=16)).pvalue > 1e-3
    for distance in (1, 2, 64, 768):
        pairs = 16 * level[:, ::2][:, :-distance] + level[:, 1::2][:, distance:]
        assert scipy.stats.chisquare(pairs.flatten().bincount(minlength=256)).pvalue > 1e-3


def test_no_row_is_repeated():
    """64 bits of 40,000 rows from many seeds and steps: two alike would be one chance in 2·10¹⁰."""
    streams = [mask(1000, 64, 0.5, seed, step) for seed in range(4) for step in range(10)]
    assert len(torch.cat(streams).unique(dim=0)) == 40_000


@RATES
def test_the_mean_is_kept(rate):
    keys = row_keys(0, 0, np.arange(64))
    made = drop(torch.ones(64, 2**14, dtype=torch.float64), keys, SITE, rate)
    assert_close(made.unique(), torch.tensor([0.0, 1 / (1 - rate)], dtype=torch.float64), rtol=1e-15, atol=0)
    error = math.sqrt(rate / (1 - rate) / made.numel())
    assert abs(made.mean().item() - 1) < 4 * error


def test_the_gradient_goes_where_the_value_went(draw):
    x, keys = draw(4, 3, 50).requires_grad_(), row_keys(0, 0, np.arange(4))
    made = drop(x, keys, SITE, 0.3)
    made.sum().backward()
    assert_close(x.grad * x, made, rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_the_mask_is_the_same_in_every_type(dtype):
    keys, x = row_keys(0, 0, np.arange(4)), torch.ones(4, 2, 3, 500)
    made, wide = drop(x.to(dtype), keys, SITE, 0.3), drop(x.double(), keys, SITE, 0.3)
    assert made.dtype == dtype
    assert torch.equal(made != 0, wide != 0)


def test_a_piece_of_the_batch_has_its_piece_of_the_mask(draw):
    x, keys = draw(8, 3, 40), row_keys(5, 6, np.arange(8))
    whole = drop(x, keys, SITE, 0.3)
    for first, last in ((0, 8), (0, 4), (4, 8), (3, 4)):
        assert torch.equal(drop(x[first:last], keys[first:last], SITE, 0.3), whole[first:last])
        own = row_keys(5, 6, np.arange(first, last))  # as another process would make them
        assert torch.equal(own, keys[first:last])


def test_the_shape_of_a_row_does_not_matter(draw):
    x, keys = draw(4, 3, 8, 5), row_keys(0, 0, np.arange(4))
    assert torch.equal(drop(x, keys, SITE, 0.3).flatten(1), drop(x.flatten(1), keys, SITE, 0.3))


def test_rates_next_to_one_drop_all_but_a_few():
    """A rate that rounds to 1 in 2³² parts does not wrap around to 0."""
    keys = row_keys(0, 0, np.arange(4))
    for rate in (1 - 1e-9, 1 - 1e-12):
        assert not keep(keys, (1000,), rate).any()


def test_each_rate_acts_at_its_own_place_with_noise_of_its_own(monkeypatch):
    """Two layers: seven places, told by name, none with the mask of another; and none at all in evaluation."""
    seen = []

    def recorded(x, keys, where, rate):
        seen.append((where, rate, tuple(x.shape), None if keys is None else place(keys, where)))
        return drop(x, keys, where, rate)

    monkeypatch.setattr(headtohead.model, "drop", recorded)
    rates = {"embedding": 0.1, "weights": 0.2, "attention": 0.3, "feedforward": 0.4}
    shapes = {"embedding": (2, 8, 12), "weights": (2, 3, 8, 8), "attention": (2, 8, 12), "feedforward": (2, 8, 12)}
    body = Transformer(layers=2, heads=3, width=12, dropout=Dropout(**rates)).build(SIZE)
    ids, position = torch.zeros(2, 8, dtype=torch.int64), torch.arange(8)[None]
    body(ids, position, keys=row_keys(0, 0, np.arange(2)))
    order = ["embedding", *["weights", "attention", "feedforward"] * 2]
    assert [found[:3] for found in seen] == [(site(name), rates[name], shapes[name]) for name in order]
    assert len({tuple(keys.flatten().tolist()) for *_, keys in seen}) == 7
    seen.clear()
    body(ids, position)
    assert len(seen) == 7 and all(keys is None for *_, keys in seen)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_compiled_code_drops_the_same_elements(backend, dtype):
    """Bit by bit, the gradient too; the code is compiled once and serves every step."""

    def dropped(x, keys):
        return drop(drop(2 * x, keys, SITE, 0.1), keys, site_of_another, 0.5)

    site_of_another = site("elsewhere")
    torch._dynamo.reset()
    compiled = torch.compile(dropped, backend=backend, fullgraph=True, dynamic=False)
    for step in range(3):
        keys = row_keys(0, step, np.arange(8))
        ours, theirs = (torch.ones(8, 4, 1000, dtype=dtype, requires_grad=True) for _ in range(2))
        made, wanted = compiled(ours, keys), dropped(theirs, keys)
        assert torch.equal(made, wanted)
        assert 0.4 < (made != 0).float().mean().item() < 0.5
        made.sum().backward()
        wanted.sum().backward()
        assert torch.equal(ours.grad, theirs.grad)
