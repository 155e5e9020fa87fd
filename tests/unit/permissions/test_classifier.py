"""Mode auto without a model: a read-only tool of a trusted server, and nothing else."""

import pytest

from dragoman.catalog.annotations import Hints
from dragoman.permissions.classifier import ByAnnotations, Classifier
from dragoman.permissions.rules import Call

READS = Hints(read_only=True, destructive=False)


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize(
    ("call", "behaviour"),
    [
        (Call(tool="mcp__good__get", server="good", hints=READS), "allow"),
        (Call(tool="mcp__good__put", server="good"), "ask"),
        (Call(tool="mcp__good__put", server="good", hints=Hints(idempotent=True, destructive=False)), "ask"),
        (Call(tool="mcp__other__get", server="other", hints=READS), "ask"),
        (Call(tool="mcp__GOOD__get", server="GOOD", hints=READS), "ask"),
        (Call(tool="read_result", hints=READS), "ask"),
        (Call(tool="Bash", command="ls", hints=READS), "ask"),
    ],
)
async def test_how_annotations_affect_the_classifier(call: Call, behaviour: str):
    classifier: Classifier = ByAnnotations(lambda server: server == "good")
    opinion = await classifier.judge(call)
    assert opinion.behaviour == behaviour
    assert opinion.reason
