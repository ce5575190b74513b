r"""LaTeX as papers write it: what is meant, what is refused, and the way back from sympy.latex."""

import contextlib
import inspect
import sys
import time

import pytest
import sympy

from trf import encodings
from trf.errors import ExpressionError
from trf.expression import as_bias, distance, is_latex

n = distance()

# LaTeX, and what it means in the text form.
MEANINGS = [
    # Products, numbers, names.
    (r"$-rn$", "-r*n"),
    (r"$-2n$", "-2*n"),
    (r"$- r n$", "-r*n"),
    (r"-r_1n\,", "-r1*n"),
    (r"-(a)(b)n\,", "-a*b*n"),
    (r"-r(n+1)\;", "-r*(n+1)"),
    (r"-n\left(n+1\right)", "-n*(n+1)"),
    (r"-10{,}000\,n", "-10000*n"),
    (r"-.5n\quad", "-n/2"),
    (r"$-0.25~n$", "-n/4"),
    (r"-r_{1}n", "-r1*n"),
    (r"-r_{12}n", "-r12*n"),
    (r"-r_{\text{max}}n", "-r_max*n"),
    (r"-r_{max}n", "-r_max*n"),
    (r"-n_{\mathrm{head}}n", "-n_head*n"),
    (r"-r_{1,h}n", "-r_1_h*n"),
    (r"-\theta_i n", "-theta_i*n"),
    (r"-\alpha\lambda n^\gamma", "-alpha*lambda*n^gamma"),
    (r"-\gamma(n+1)", "-gamma*(n+1)"),
    (r"-\mathrm{slope}\cdot n", "-slope*n"),
    (r"-\boldsymbol{\theta}\mathbf{r}_1 n", "-theta*r1*n"),
    (r"-\pi n", "-pi*n"),
    (r"-e n\,", "-E*n"),
    (r"-\infty", "-oo"),
    (r"-a\cdot b\times c\ast n * 2", "-2*a*b*c*n"),
    (r"-n\!/3/2", "-n/6"),
    (r"−2·n\,", "-2*n"),
    # Powers, roots, fractions.
    (r"$-n^2$", "-n^2"),
    (r"-n^{-1}", "-1/n"),
    (r"-n^{r_2}", "-n^r2"),
    (r"2^{-n}", "2^-n"),
    (r"2^{n^{2}}", "2^n^2"),
    (r"-n^rn\,", "-n^r*n"),
    (r"e^{-n}", "exp(-n)"),
    (r"\mathrm{e}^{-rn}", "exp(-r*n)"),
    (r"ne^{-n}", "n*exp(-n)"),
    (r"-\frac{n}{2}", "-n/2"),
    (r"-\dfrac n2", "-n/2"),
    (r"-\tfrac12n", "-n/2"),
    (r"-\frac{1}{2}\frac{n}{w}", "-n/(2*w)"),
    (r"-\sqrt{n}", "-sqrt(n)"),
    (r"-\sqrt2n", "-sqrt(2)*n"),
    (r"-\sqrt[3]{n}", "-n^(1/3)"),
    (r"$-n!$", "-factorial(n)"),
    (r"-2n!\,", "-2*factorial(n)"),
    (r"-\binom{2n}{n}", "-binomial(2*n, n)"),
    (r"-n \bmod 3", "-Mod(n, 3)"),
    # Functions, with and without brackets.
    (r"-\log n", "-log(n)"),
    (r"-\log 2n", "-log(2*n)"),
    (r"-n\log n", "-n*log(n)"),
    (r"-\log n\cdot m", "-log(n)*m"),
    (r"-\ln n \ln\ln n", "-log(n)*log(log(n))"),
    (r"-\log\log n", "-log(log(n))"),
    (r"-\log\ln(n+3)", "-log(log(n+3))"),
    (r"-\log n / \log 2", "-log(n)/log(2)"),
    (r"-n/\log n", "-n/log(n)"),
    (r"-\log_2 n", "-log2(n)"),
    (r"-\log_{10} n", "-log10(n)"),
    (r"-\log_b(n)", "-log(n, b)"),
    (r"-\log^2 n", "-log(n)^2"),
    (r"-\ln^{2}(n)", "-log(n)^2"),
    (r"-\log_2^2(n+1)", "-log2(n+1)^2"),
    (r"-\log n^2", "-log(n^2)"),
    (r"-\log n!", "-log(factorial(n))"),
    (r"-\log\frac{n}{w}", "-log(n/w)"),
    (r"-(n+1)\log(n+1)", "-(n+1)*log(n+1)"),
    (r"-\log(1+n)\log(2+n)", "-log(1+n)*log(2+n)"),
    (r"-\log(1+n)/2", "-log(1+n)/2"),
    (r"-\exp\left(-n\right)", "-exp(-n)"),
    (r"-\exp\{-n\}", "-exp(-n)"),
    (r"\sin 2\pi r n", "sin(2*pi*r*n)"),
    (r"\cos\left(\frac{n}{w}\right)\log n", "cos(n/w)*log(n)"),
    (r"-\tanh n", "-tanh(n)"),
    (r"-\arctan(n)", "-atan(n)"),
    (r"-\mathrm{tanh}(n)", "-tanh(n)"),
    (r"-\operatorname{sigmoid}(-n)", "-sigmoid(-n)"),
    (r"-\operatorname*{softplus}\left[n\right]", "-softplus(n)"),
    (r"-\Gamma(n+1)", "-Gamma(n+1)"),
    (r"-\zeta(n+2)", "-zeta(n+2)"),
    (r"\min(-n, -w)", "min(-n, -w)"),
    (r"-\max\{n, w\}", "-max(n, w)"),
    (r"-\min\left(n, w\right)", "-min(n, w)"),
    # Brackets.
    (r"-\bigl(n+1\bigr)^2", "-(n+1)^2"),
    (r"-\Big[ n+1 \Big]", "-(n+1)"),
    (r"-\{n+1\}[n+2]", "-(n+1)*(n+2)"),
    (r"-{n}^{2}", "-n^2"),
    (r"-\lfloor n/2 \rfloor", "-floor(n/2)"),
    (r"-\left\lceil\frac{n}{2}\right\rceil", "-ceil(n/2)"),
    (r"-\left|\left|n-3\right|-2\right|", "-||n-3|-2|"),
    (r"-||n-3|-2|\,", "-||n-3|-2|"),
    (r"-|n-w|\log|n-v|", "-|n-w|*log(|n-v|)"),
    (r"-\bigl|n-w\bigr|", "-|n-w|"),
    # The distance.
    (r"$-r_1|m-n|$", "-r1*n"),
    (r"-\left|i-j\right|", "-n"),
    (r"-\lvert j - i\rvert", "-n"),
    (r"-\vert n-m \vert", "-n"),
    (r"-\mid m-n\mid", "-n"),
    (r"-\log|m-n|", "-log(n)"),
    (r"-m\,n", "-m*n"),
    # Cases.
    (r"\begin{cases} 0 & n < w \\ -\infty & \text{otherwise} \end{cases}",
     "Piecewise((0, n < w), (-oo, True))"),
    (r"\begin{cases} 0, & \text{if } n \leq w, \\[2pt] -n, & \text{otherwise.} \end{cases}",
     "Piecewise((0, n <= w), (-n, True))"),
    (r"\begin{dcases} 0 & \text{for}\: 2 \le n < w \lor n \neq 9 \\ 1 & n = 4 \\ -n & n \ge 5"
     r" \text{ and } n > 2\end{dcases}",
     "Piecewise((0, ((2 <= n) & (n < w)) | (n != 9)), (1, n == 4), (-n, (n >= 5) & (n > 2)))"),
    # Sums and products.
    (r"\sum_{i=1}^{64}\cos\left(\frac{n}{10000^{2i/128}}\right)",
     "Sum(cos(n/10000^(2*i/128)), (i, 1, 64))"),
    (r"\sum\limits_{k=1}^{3}\frac{n}{k}\cdot k - 64", "Sum(n/k*k, (k, 1, 3)) - 64"),
    (r"-\log\prod_{k=1}^3(n+k)", "-log(Product(n+k, (k, 1, 3)))"),
    (r"-\sum_{k=0}^{\infty}2^{-k}n", "-Sum(2^-k*n, (k, 0, oo))"),
    # Around the formula.
    (r"\(-n\)", "-n"),
    (r"\[-n^2.\]", "-n^2"),
    (r"$-n$,", "-n"),
    (r"$$-n$$", "-n"),
    (r"\begin{equation} p(n) = -n \end{equation}", "-n"),
    (r"$p(n) = -n$.", "-n"),
    (r"b_{m,n} = -|m-n|", "-n"),
    (r"p(m-n)=-r_1\left|m-n\right|", "-r1*n"),
    (r"B(i,j) = -\left|i-j\right|", "-n"),
    (r"b^{(h)}(i-j) &:= -\lvert i-j\rvert", "-n"),
    (r"\mathrm{bias}_h(n) = -\displaystyle\frac{n}{h}", "-n/h"),
]  # fmt: skip


@pytest.mark.parametrize(("latex", "text"), MEANINGS, ids=[latex for latex, _ in MEANINGS])
def test_meaning(latex, text):
    assert is_latex(latex)
    assert not is_latex(text)
    read, meant = as_bias(latex).expr, as_bias(text).expr
    assert read == meant or sympy.expand(read - meant) == 0


PAPERS = {
    "ALiBi": (r"b(i,j) = -m_h\,|i-j|", "-m_h*n"),
    "KERPLE log": (r"\tilde{k}(m,n) = -r_1\cdot\log(1+r_2|m-n|)", None),
    "KERPLE log, bare": (r"-r_1\cdot\log(1+r_2|m-n|)", "-r1*log(1+r2*n)"),
    "KERPLE power": (r"k(m,n) = -r_1|m-n|^{r_2}", "-r1*n^r2"),
    "KERPLE 3": (r"-r_1\log\left(1+r_2\lvert m-n\rvert^{r_3}\right)", "-r1*log(1+r2*n^r3)"),
    "Sandwich": (
        r"\sum_{i=1}^{64} \cos\left( \frac{|m-n|}{10000^{2i/128}} \right)",
        "Sum(cos(n/10000^(2*i/128)), (i, 1, 64))",
    ),
    "Type 1": (r"$p(n) = -\ln\left(1 + (kn)^2\right)$", "-log(1+(k*n)^2)"),
    "Type 2": (r"$-\log n - \log^{2}\left(\log n\right)$", "-log(n) - log(log(n))^2"),
    "T5 bucket": (
        r"-\min\left(31,\; 16 + \left\lfloor \frac{\log(n/16)}{\log(128/16)} \cdot 16"
        r" \right\rfloor\right)",
        "-min(31, 16 + floor(log(n/16)/log(128/16)*16))",
    ),
    "Gaussian": (r"-\frac{(m-n)^2}{2\sigma^2}", None),
    "Gaussian, with bars": (r"-\frac{|m-n|^2}{2\sigma^2}", "-n^2/(2*sigma^2)"),
}


@pytest.mark.parametrize("name", PAPERS)
def test_formulas_of_papers(name):
    latex, text = PAPERS[name]
    if text is None:
        with pytest.raises(ExpressionError):
            as_bias(latex)
    else:
        assert as_bias(latex).expr == as_bias(text).expr


@pytest.mark.parametrize("name", [k for k, e in encodings.REGISTRY.items() if e.bias is not None])
def test_the_catalogue_survives_printing(name):
    bias = encodings.get(name).bias
    domains = {symbol.name: dict(symbol.assumptions0) for symbol in bias.parameters}
    read = as_bias(f"${sympy.latex(bias.expr)}$")
    again = read.expr.subs({symbol: sympy.Symbol(symbol.name, **domains[symbol.name])
                            for symbol in read.parameters})  # fmt: skip
    assert again == bias.expr


def test_parameters_coincide_with_the_text_form():
    assert as_bias(r"-r_1\log(1+r_2|m-n|)").parameters == as_bias("-r1*log(1+r2*n)").parameters
    assert as_bias(r"-r_1 n\,", {"r1": "real"}).domains == {"r1": "real"}
    assert as_bias(r"-r_1\log n").substitute({"r1": 2}).expr == -2 * sympy.log(n)


def test_the_source_stays_as_written():
    assert as_bias(r" $-r_1 n$. ").source == "$-r_1 n$."


UNCLEAR = [
    r"-\log(n)^2", r"-\log(n)!", r"-\log n/2", r"-\log 2n/\log 2", r"-\log|m-n|r",
    r"-\log n(n+1)", r"\cos n e^{-n}", r"-\sin^{-1}(n)", r"1/2n\,", r"-n/w v\,", r"$f(n+1)$",
    r"$r(n)$", r"-\phi(n)", r"-r_{1}(|m-n|)", r"-K_{0}(n+1)", r"-2\frac12", r"-r_1^{(h)}n",
    r"$-head n$", r"-lnn\,", r"-ln\,", r"-|2|n|-3|\,", r"-n^2!\,", r"-n!!\,", r"a\cdot n\bmod 3",
]  # fmt: skip


@pytest.mark.parametrize("latex", UNCLEAR)
def test_what_can_be_read_in_two_ways_is_refused(latex):
    with pytest.raises(ExpressionError, match="can be read in two ways"):
        as_bias(latex)


@pytest.mark.parametrize(
    ("latex", "message"),
    [
        (r"-\foo n", r"\\foo can't be read[^^]*\^ \(character 2\)"),
        (r"-\bar{d}n", r"\\bar can't be read"),
        (r"\input{/etc/passwd}", r"\\input can't be read"),
        (r"\def\x{1}\x", r"\\def can't be read"),
        (r"\catcode`\@=11", "an equation can't be read"),
        (r"-\int_0^n x", r"\\int can't be read"),
        (r"$-n'$", "a prime can't be read"),
        (r"-n^\prime", r"\\prime can't be read"),
        (r"-\mathrm{foo}(n)", "unknown function 'foo'"),
        (r"-\mathrm{softmx}(n)", "unknown function"),
        (r"-\operatorname{sigmoid} n", "sigmoid needs its argument in brackets"),
        (r"-\log -n", "needs an argument"),
        (r"-\log", "needs an argument"),
        (r"\sum_{i=1}^{d/2}\cos(n\theta_i)", "running index i"),
        (r"\sum_{i=1}^{4}\cos(n\theta_{i})", "running index i"),
        (r"-b_n\,", "running index n"),
        (r"-b_{mn}", "running index mn"),
        (r"-b_{m-n}", "a number or a word"),
        (r"-r_{}n", "an empty subscript"),
        (r"-r_12n\,", "put the subscript into braces"),
        (r"-r_max n\,", "put the subscript into braces"),
        (r"$-n^10$", "put this into braces"),
        (r"$-1e-3n$", r"write 10\^\{-3\}"),
        (r"$-En$", "E is a constant"),
        (r"\sum_i n", "needs its range"),
        (r"\sum_{i=1} n", "needs its range"),
        (r"$-r(m-n)$", r"write \|m-n\|"),
        (r"p(m-n) = -r\left(m-n\right)^2", r"write \|m-n\|"),
        (r"-(j-i)\,", r"write \|i-j\|"),
        (r"-m\,|m-n|", "stands for the distance"),
        (r"p(d) = -r_{1}d", "the distance is called n"),
        (r"b(\Delta) = -\Delta", "the distance is called n"),
        (r"\log p(n) = -n", "an equation can't be read"),
        (r"$n = 3$", "an equation can't be read"),
        (r"$p(n) = q(n) = -n$", "'==' is not expected|condition|two ways"),
        (r"$-n < 3$", "is a condition"),
        (r"$-a, n$", "',' is not expected"),
        (r"-\left(n\right]", r"expected '\)'"),
        (r"-\left.n\right|", "needs a bracket that fits"),
        (r"-(n+1\,", r"expected '\)' to close"),
        (r"-\frac{n}", "ends too early"),
        (r"-n^2^3\,", "a second exponent"),
        (r"-n^2_1\,", "a subscript can't stand here"),
        (r"-n\cdot", "ends too early"),
        (r"$-n 2$", "an operator is missing before '2'"),
        (r"-(n, 2)\,", "a list in brackets"),
        (r"-\{\}n", "empty brackets"),
        (r"-\begin{array}n\end{array}", "array"),
        (r"\begin{cases}\end{cases}", "cases without a case"),
        (r"\begin{cases} 0 & n<w", "ends too early|not expected"),
    ],
)  # fmt: skip
def test_refused_with_a_reason(latex, message):
    with pytest.raises(ExpressionError, match=message):
        as_bias(latex)


HOSTILE = [
    r"9^{9^{9^{9}}}", r"9^{9^{9^{9}}}n", r"e^{e^{e^{99}}}", r"\exp\exp\exp 100", r"(10^9)!",
    r"\binom{10^9}{10^8}", r"\sqrt[10^9]{10^{999}+1}", r"\Gamma(10^9)", "{" * 10_000 + "\\",
    "}" * 10_000 + "\\",
    "{" * 5_000 + "n" + "}" * 5_000, "$" * 20_000, "$" * 9_999 + "n+" + "$" * 9_999,
    r"\left(" * 3_000, r"\left|" * 3_000, "|" * 9_000 + r"\,", r"\frac" * 3_000, r"\sqrt" * 3_000,
    r"\frac{1}{" * 1_500, r"\frac1" * 3_000, r"\log" * 4_000 + " n", r"\log{(" * 2_500,
    r"\log_{" * 3_000, "n^{" * 6_000, "n_{" * 6_000, "n" + "!" * 9_000 + r"\,", r"\text{" * 3_000,
    r"\begin{cases}" * 1_400, r"\sum_{i=1}^" * 1_500, r"\begin" * 3_000, r"\\[" * 6_000,
    "n+" * 9_000 + r"n\,", r"n\cdot" * 3_000 + "n", "n " * 9_000 + r"\,", "$" + "n" * 10_000,
    "\\" + "a" * 15_000, "$" + "9" * 15_000, "$" + "9." * 9_000, "$" + "9e" * 9_000, "\\" * 20_000,
    r"\," * 9_000, "x^{n}" * 6_000, r"\lambda" * 5_000, "$", "$$", r"\(", r"\[\]", "\\", r"\ ",
    "_{", r"^{2}", r"-\,", r"p(n) =\,", r"=\,", r"n\\n", "n\x00\\", r"\left", r"\text{}",
    r"\mathrm{}(n)", r"\text{__import__}(n)", r"\text{n.real}", r"n\%2", "\\\N{SNOWMAN}",
    r"\operatorname{eval}(n)", r"\log()", r"||\,", r"\begin{cases}&\end{cases}",
    r"\sum_{n=1}^{3} n", r"\frac{1}{0}",
]  # fmt: skip


@pytest.mark.parametrize("latex", HOSTILE, ids=lambda latex: ascii(latex[:24]))
def test_hostile_input_is_refused_at_once(latex):
    begin = time.process_time()
    with pytest.raises(ExpressionError) as info:
        as_bias(latex)
    assert time.process_time() - begin < 1
    assert len(str(info.value)) < 500


NESTED = [
    (r"\log(1+2^{", "n", "})"), (r"\left(1+2\cdot\left[", "n", r"\right]^2\right)"),
    (r"\frac{1}{1+", "n", "}"), (r"\min(1, 2+3", "n", ")"), ("2^{-", "n", "}"),
    (r"\begin{cases}1+2", "n", r"&n<3\\0&\text{else}\end{cases}"), (r"\sqrt{1+", "n", "}"),
    ("-(1+n(", "n", ")^2)"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "middle", "right"), NESTED)
def test_nesting_ends_in_an_error_of_ours_whatever_the_depth(left, middle, right):
    """Deep inputs are refused before Python's own limit on recursion is met."""
    room = sys.getrecursionlimit() - len(inspect.stack())
    assert room > 600
    as_bias("$" + left * 3 + middle + right * 3 + "$")
    for depth in (5, 40):  # either way, but no RecursionError
        with contextlib.suppress(ExpressionError):
            as_bias("$" + left * depth + middle + right * depth + "$")
    with pytest.raises(ExpressionError, match="nested deeper"):
        as_bias("$" + left * 100 + middle + right * 100 + "$")
