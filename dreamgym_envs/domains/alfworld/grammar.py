import re
from dreamgym_envs.core.types import State, Task
from dreamgym_envs.domains.base import Action
N = r"([a-z]+ \d+)"
_R = [("go", rf"go to {N}"), ("open", rf"open {N}"), ("close", rf"close {N}"), ("take", rf"take {N} from {N}"),
      ("move", rf"(?:move {N} to|put {N} (?:in/on|in|on)) {N}"), ("clean", rf"clean {N} with {N}"), ("heat", rf"heat {N} with {N}"),
      ("cool", rf"cool {N} with {N}"), ("use", rf"use {N}"), ("slice", rf"slice {N} with {N}"), ("examine", rf"examine {N}"),
      ("inventory", "inventory"), ("look", "look"), ("help", "help")]
_R = [(v, re.compile(p)) for v, p in _R]
def parse(text):
    t = " ".join(text.lower().split())
    for v, p in _R:
        m = p.fullmatch(t)
        if m: return Action(v, tuple(g for g in m.groups() if g))
    return None
def candidates(task, state):
    pub = state.public
    loc = pub["location"]
    out = [f"go to {r['name']}" for r in pub["receptacles"] if r["name"] not in loc]
    held = pub["holding"][0]["name"] if pub["holding"] else None
    for r in pub["receptacles"]:
        if r["name"] not in loc: continue
        n = r["name"]
        if r["status"] in ("closed", "shut"): out.append(f"open {n}")
        if r["status"] == "open": out.append(f"close {n}")
        if r["status"] in ("open", "surface"):
            if held: out.append(f"move {held} to {n}")
            else: out += [f"take {o['name']} from {n}" for o in r["contents"]]
            out += [f"use {o['name']}" for o in r["contents"] if "lamp" in o["name"]]
        if held:
            k = n.split()[0]
            if k == "sinkbasin": out.append(f"clean {held} with {n}")
            if k == "microwave": out.append(f"heat {held} with {n}")
            if k == "fridge": out.append(f"cool {held} with {n}")
    return tuple(out)
