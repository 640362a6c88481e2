"""`fhelium-params`: parameters for a depth and precision, as the attribute that a program carries.

The attribute goes to standard output, and why these parameters were chosen to standard error.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from math import log2, prod

from fhelium.scheme.choice import HEADROOM_BITS, Choice, choose, product_chain
from fhelium.scheme.presets import PRESETS
from fhelium.scheme.security import MAXIMUM_LOG_QP
from fhelium.scheme.sizes import ciphertext_bytes, public_key_bytes, switching_key_bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code: 0, 1 for an error, 2 for a bad command line."""
    parser = argument_parser()
    args = parser.parse_args(arguments)
    if args.list:
        print("\n".join(preset_table()))
        return 0
    if args.preset is not None:
        print(PRESETS[args.preset].to_attribute())
        return 0
    if args.depth is None or args.precision is None:
        parser.error("--depth and --precision say what the parameters are for")
    try:
        choice = choose(
            depth=args.depth,
            precision=args.precision,
            largest=args.max_value,
            digits=args.digits,
            ring_degree=args.ring_degree,
            scale_bits=args.scale_bits,
        )
    except ValueError as error:
        print(f"fhelium-params: error: {error}", file=sys.stderr)
        return 1
    print(choice.parameters.to_attribute())
    for line in explanation(choice, args):
        print(line, file=sys.stderr)
    if args.explain:
        for line in details(choice):
            print(line, file=sys.stderr)
    return 0


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="fhelium-params",
        description="Choose the smallest secure parameters for a depth and precision, and print "
        "them as the ckks.parameters of a program.",
        epilog="Precision is estimated for products in a row with fresh factors, and holds in "
        "every slot with a chance of 1 - 2^-20; x^(2^DEPTH) by repeated squares loses more, up to "
        "a bit for each.",
    )
    parser.add_argument("--depth", type=int, metavar="D", help="products in a row")
    parser.add_argument(
        "--precision", type=float, metavar="BITS", help="bits after the point that stay right"
    )
    parser.add_argument(
        "--max-value",
        type=float,
        metavar="X",
        default=1.0,
        help="the largest magnitude of any value on the way (default: %(default)g)",
    )
    parser.add_argument(
        "--digits", type=int, metavar="K", help="key-switching digits (default: the fewest)"
    )
    parser.add_argument(
        "--ring-degree", type=int, metavar="N", help="ring degree (default: the smallest secure)"
    )
    parser.add_argument(
        "--scale-bits", type=int, metavar="S", help="scale 2^S (default: the smallest that will do)"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="say too why smaller ring degrees will not do, and what precision each level has",
    )
    parser.add_argument("--preset", choices=sorted(PRESETS), help="print a preset instead")
    parser.add_argument("--list", action="store_true", help="print a table of the presets instead")
    return parser


def explanation(choice: Choice, args: argparse.Namespace) -> Iterator[str]:
    """Yield a line on each decision."""
    p = choice.parameters
    scale_bits = log2(p.scale)
    fresh = choice.estimates[0].bits(p)
    first_bits, special_bits = log2(prod(p.moduli[0])), log2(prod(p.special))
    top = p.digit_limbs(p.max_level)
    limit = MAXIMUM_LOG_QP[p.ring_degree]
    given = "as given"
    smallest = given if args.ring_degree else "the smallest that is secure"
    yield (
        f"ring degree  {p.ring_degree}, {smallest}: it carries log2(QP) = {limit}, of which "
        f"{limit - p.log_qp:.0f} bits are left; {p.slots} slots"
    )
    smallest = given if args.scale_bits else "the smallest that will do"
    yield (
        f"scale        2^{scale_bits:.0f}, {smallest}: {choice.precision:.1f} bits after the point "
        f"at depth {p.max_level}, {fresh:.1f} in a fresh ciphertext"
    )
    yield (
        f"first group  {_primes(len(p.moduli[0]))}, 2^{first_bits:.0f}: {HEADROOM_BITS} bits above "
        "the scale and the largest value, a sign and a factor of 8 to spare"
    )
    fewest = given if args.digits else "the fewest that fit, which makes keys small"
    yield f"digits       {len(top)} of up to {_primes(len(top[0]))}, {fewest}"
    yield (
        f"special      {_primes(len(p.special))}, 2^{special_bits:.0f}: as large as the largest "
        "digit, so that key switching adds no more than rounding does"
    )
    yield f"security     {p.security_bits_statement()}"
    yield (
        f"sizes        fresh ciphertext {_size(ciphertext_bytes(p))}, public key "
        f"{_size(public_key_bytes(p))}, each switching key {_size(switching_key_bytes(p))}; keys "
        "take half of that in files"
    )


def details(choice: Choice) -> Iterator[str]:
    """Yield the ring degrees that will not do, and the precision at each level."""
    for reason in choice.passed_over:
        yield f"passed over  {reason}"
    p = choice.parameters
    for product, estimate in enumerate(choice.estimates):
        yield (
            f"level {p.max_level - product:<6} {estimate.bits(p):.1f} bits after "
            + ("encryption" if product == 0 else f"product {product}")
        )


def preset_table() -> Iterator[str]:
    """Yield the lines of a Markdown table of the presets."""
    yield (
        "| preset | N | depth | scale | log2(QP), at most | digits | fresh, bits | product, bits "
        "| chain, bits | ciphertext | public key | switching key |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for name, p in PRESETS.items():
        chain = product_chain(p, p.max_level)
        fresh, product, last = (chain[i].bits(p) for i in (0, 1, -1))
        yield (
            f"| {name} | {p.ring_degree} | {p.max_level} | 2^{log2(p.scale):.0f} "
            f"| {p.log_qp:.0f}, {MAXIMUM_LOG_QP[p.ring_degree]} | {p.digits} "
            f"| {fresh:.1f} | {product:.1f} | {last:.1f} | {_size(ciphertext_bytes(p))} "
            f"| {_size(public_key_bytes(p))} | {_size(switching_key_bytes(p))} |"
        )


def _primes(count: int) -> str:
    return "1 prime" if count == 1 else f"{count} primes"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
