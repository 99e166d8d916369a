"""What a study will be, before it is run."""

from __future__ import annotations

from typing import Any

from headtohead.launch.routing import choose_route, expected_seconds, jobs_here
from headtohead.study import Study, network_of


def preview(plan: dict[str, Any], study: Study) -> dict[str, Any]:
    """Arms, differences, parameters, operations, expected time and cost."""
    jobs = jobs_here()
    route, why = choose_route(plan, jobs)
    # compiled bfloat16 was measured at about two and a half times the eager rate
    gain = 2.5 if route.compiled else 1.0
    arms = {
        name: {
            "changed": plan["changed"].get(name, {}),
            "made": dict(plan["made"].get(name, (name, {}))[1]),
            **plan["shared"][name],
            "operations": plan["operations"][name],
            "tokens": plan["training"][name],
            "seconds": expected_seconds(plan, name, route.threads) / gain,
        }
        for name in plan["arms"]
    }
    seconds = sum(arm["seconds"] for arm in arms.values()) * len(plan["seeds"])
    texts = list(plan["texts"].values())
    return {
        "study": plan["study"],
        "question": plan["question"],
        "size": plan["size"],
        "seeds": plan["seeds"],
        "arms": arms,
        "text": texts[0],
        "match": plan["match"],
        "looks": plan["looks"],
        "route": route._asdict() | {"why": why},
        "seconds": seconds / jobs,
        "dollars": seconds / 3600 * plan["price"]["dollars_per_hour"],
        "model": str(network_of(study.baseline, texts[0]["vocabulary"])),
    }
