"""Plots: what is drawn is what was given; theory dashed, measurement solid, one colour each."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from trf import plotting
from trf.errors import ParameterError


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def curve(n=64, m=0.1):
    mass = np.cumsum(np.exp(-m * np.arange(n)))
    return mass / mass[-1]


def record(name, **changes):
    values = curve()
    return {
        "encoding": name, "title": name, "status": "converges",
        "heads": [{}], "length": 64, "train_length": 64,
        "theory": {"curve": values.tolist(), "radius": {"0.5": 7, "0.1": 23, "0.01": 40}},
        "measured": {"curve": values.tolist(), "low": (values * 0.9).tolist(),
                     "high": values.tolist(), "radius": {"0.5": 8, "0.1": 24, "0.01": 41}},
        "perplexity": [{"length": 64, "perplexity": 5.0}, {"length": 128, "perplexity": 5.5}],
        **changes,
    }  # fmt: skip


def test_theory_is_dashed_and_measurement_solid(ax):
    assert plotting.cumulative_mass(curve(), ax=ax, theory=True) is ax
    plotting.cumulative_mass(curve(), ax=ax)
    assert [line.get_linestyle() for line in ax.lines] == ["--", "-"]


def test_the_curve_is_drawn_against_the_number_of_newest_tokens(ax):
    plotting.cumulative_mass(curve(), ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, 65))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), curve())


def test_the_radius_is_marked_where_the_curve_first_exceeds_1_minus_eps(ax):
    values = curve()
    plotting.cumulative_mass(values, ax=ax, eps=0.1)
    (at,) = ax.lines[1].get_xdata()
    assert at == np.flatnonzero(values > 0.9)[0] + 1


def test_the_current_axes_are_the_default(ax):
    plt.sca(ax)
    assert plotting.cumulative_mass(curve()) is ax


def test_perplexity_against_length(ax):
    plotting.perplexity([512, 1024], [5.0, 5.5], ax=ax, train_length=512)
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_ydata(), float), [5.0, 5.5])


@pytest.mark.parametrize("bad", [[], [[1.0]], 3.0])
def test_a_curve_that_is_none(ax, bad):
    with pytest.raises(ParameterError, match="curve"):
        plotting.cumulative_mass(bad, ax=ax)


def test_colours_are_fixed_and_distinct():
    assert len(set(plotting.COLOURS.values())) == len(plotting.COLOURS)
    assert plotting.colour("mine") == plotting.colour("mine")


@pytest.mark.parametrize("count", [1, 3, 5])
def test_overlay_has_one_panel_an_encoding(count):
    names = ["alibi", "kerple-log", "type1", "type2", "inverse-n"][:count]
    figure = plotting.overlay_figure([record(name) for name in names])
    titles = [title for ax in figure.axes if (title := ax.get_title(loc="left"))]
    assert len(titles) == count
    plt.close(figure)


def test_perplexity_figure():
    exploding = [{"length": 64, "perplexity": 5.0}, {"length": 128, "perplexity": 50.0}]
    outside = record("sinusoidal", heads=None, status="no p(n)", perplexity=exploding)
    figure = plotting.perplexity_figure([record("alibi"), outside])
    left, right = figure.axes
    assert right.get_ylim()[1] < 2
    assert left.get_ylim()[1] > 50
    assert "×10 at 128" in figure.legends[0].get_texts()[1].get_text()
    plt.close(figure)


def test_nothing_to_draw():
    with pytest.raises(ParameterError, match="nothing to draw"):
        plotting.overlay_figure([])
