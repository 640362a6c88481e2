"""Materializers: asked once, for what is missing, and what they return is checked."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_backend_linking import NOTHING, faults
from test_backend_third_party import GROUP, Probe, backend_of, linked

from fhelium.backend import (
    BoundResource,
    ResourceBindings,
    ResourceRequirement,
)


class Materializer:
    """Returns what a function makes of the requirements, and remembers what it was asked."""

    def __init__(self, make: Callable[[tuple[ResourceRequirement, ...]], Any]):
        self.make = make
        self.asked: list[tuple[ResourceRequirement, ...]] = []

    def materialize(self, requirements: tuple[ResourceRequirement, ...], /) -> ResourceBindings:
        self.asked.append(requirements)
        return self.make(requirements)


TWO_DEVICES = """func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
  %group = fhelium.resource @world : !dist.group
  %near = fhelium.resource @near : !mem.device
  %far = fhelium.resource @far : !mem.device
  %again = fhelium.resource @near : !mem.device
  %y = "probe.op"(%x, %near) : (tensor<2xi64>, !mem.device) -> tensor<2xi64>
  %z = "probe.op"(%y, %far, %group) : (tensor<2xi64>, !mem.device, !dist.group) -> tensor<2xi64>
  %u = "probe.op"(%z, %again) : (tensor<2xi64>, !mem.device) -> tensor<2xi64>
  func.return %u : tensor<2xi64>
}"""


def device(symbol: str) -> BoundResource:
    return BoundResource(symbol, "execution-device", torch.device("cpu"))


def needs(*symbols: str, kind: str = "execution-device") -> tuple[ResourceRequirement, ...]:
    return tuple(ResourceRequirement(symbol, kind) for symbol in symbols)


def test_a_materializer_is_asked_once_and_only_for_what_is_missing() -> None:
    probe = Probe(requirements=(ResourceRequirement("table", "table"),))
    materializer = Materializer(
        lambda asked: ResourceBindings(
            [
                device(n.symbol)
                if n.kind == "execution-device"
                else BoundResource(n.symbol, n.kind, 7)
                for n in asked
            ]
        )
    )
    executable = linked(
        TWO_DEVICES,
        probe,
        named_resources=ResourceBindings([GROUP, device("far")]),
        materializer=materializer,
    )
    assert materializer.asked == [(*needs("near"), *needs("table", kind="table"))]
    assert {r.symbol for r in executable.resources} == {"world", "near", "far", "table"}
    executable.run(torch.tensor([1, 2]))
    assert len(materializer.asked) == 1


def test_a_materializer_is_not_asked_when_nothing_is_missing() -> None:
    materializer = Materializer(lambda asked: pytest.fail("nothing is missing"))
    table = ResourceBindings([GROUP, device("far"), device("near")])
    linked(TWO_DEVICES, named_resources=table, materializer=materializer)
    assert materializer.asked == []


@pytest.mark.parametrize(
    ("make", "messages"),
    [
        (
            lambda asked: [device(n.symbol) for n in asked],
            ["materializer returned a list"],
        ),
        (lambda asked: None, ["the materializer returned a NoneType, expected ResourceBindings"]),
        (
            lambda asked: ResourceBindings([BoundResource(n.symbol, "table", 1) for n in asked]),
            ["@near is bound as 'table', expected 'execution-device'", "@far is bound as 'table'"],
        ),
        (lambda asked: ResourceBindings([device("near")]), ["4:10: error: resource @far of kind"]),
        (lambda asked: ResourceBindings(), ["resource @near of kind", "resource @far of kind"]),
    ],
)
def test_what_a_materializer_returns_is_checked(
    make: Callable[[tuple[ResourceRequirement, ...]], Any], messages: list[str]
) -> None:
    found = faults(
        TWO_DEVICES,
        NOTHING,
        backend=backend_of(
            Probe(), named_resources=ResourceBindings([GROUP]), materializer=Materializer(make)
        ),
    )
    for message in messages:
        assert any(message in headline for headline in found), (message, found)


def test_what_nobody_asked_a_materializer_for_is_left_out() -> None:
    given = device("far")
    extra = [device("far"), device("near"), BoundResource("extra", "table", 1)]
    executable = linked(
        TWO_DEVICES,
        named_resources=ResourceBindings([GROUP, given]),
        materializer=Materializer(lambda asked: ResourceBindings(extra)),
    )
    assert {resource.symbol for resource in executable.resources} == {"world", "near", "far"}
    assert any(resource is given for resource in executable.resources)


def test_an_error_of_a_materializer_passes() -> None:
    def fail(asked: tuple[ResourceRequirement, ...]) -> ResourceBindings:
        raise FileNotFoundError("no such key file")

    with pytest.raises(FileNotFoundError, match="no such key file"):
        linked(TWO_DEVICES, materializer=Materializer(fail))


def test_one_symbol_cannot_be_two_kinds() -> None:
    text = TWO_DEVICES.replace("@world", "@near")
    found = faults(
        text,
        NOTHING,
        backend=backend_of(
            Probe(), named_resources=ResourceBindings([device("near"), device("far")])
        ),
    )
    assert found == [
        "2:12: error: resource @near is bound as 'execution-device', expected 'process-group'"
    ]
