"""A trace in plain words: one numbered line for each step."""

from __future__ import annotations

from modelcheck.happenings import Expire, Happening, Show, ShowOther
from modelcheck.pods import NO_TERMS, Shape, Terms
from modelcheck.search import Trace


def tell(trace: Trace) -> str:
    """Return the steps as numbered lines."""
    return "\n".join(f"{number}. {_sentence(*step)}" for number, step in enumerate(trace, 1))


def _sentence(what: object, *rest: object) -> str:
    match what, *rest:
        case "asks", int(vm), Shape() as shape, int(replica), tuple(before), Terms() as terms:
            meanwhile = "".join(f"{_before(each)}; " for each in before)
            answer = "leaves the pod as it is" if terms == NO_TERMS else f"answers that the pod {terms}"
            return f"Replica {replica}: {meanwhile}the API server asks about VM {vm} ({shape}); the replica {answer}."
        case "stored", int(vm):
            return f"The API server stores the pod of VM {vm}."
        case "lost", int(vm):
            return f"The answer for VM {vm} is lost; the API server stores the pod without it."
        case "refused", int(vm):
            return f"Something else refuses the pod of VM {vm}."
        case "bound", int(vm), str(node):
            return f"kube-scheduler binds the pod of VM {vm} to {node}."
        case "unschedulable", int(vm):
            return f"kube-scheduler finds no node for the pod of VM {vm}."
        case "ends", int(vm), str(node):
            return f"VM {vm} ends, so that its place on {node} is free."
        case "other", str(node):
            return f"A pod that never came to the webhook is bound to {node}."
        case "restarts", int(replica):
            return f"Replica {replica} ends; it starts again and lists what there is."
    raise AssertionError(what, rest)


def _before(happening: Happening) -> str:
    match happening:
        case Expire(vm):
            return f"its answer for VM {vm} expires"
        case ShowOther(_, node):
            return f"its watch shows the other pod on {node}"
        case Show(vm, _, _, phase):
            return f"its watch shows VM {vm} {f'as {phase}' if phase else 'as created'}"
        case gone:
            return f"its watch shows that VM {gone.vm} is gone"
