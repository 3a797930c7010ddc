import re
from dataclasses import dataclass
from functools import lru_cache
from dreamgym_envs.core.types import State

@dataclass(frozen=True, slots=True)
class Goal:
    family: str
    object: str
    receptacle: str = ""
    flag: str = ""
    count: int = 1
    lamp: str = ""

_P = [
    (r"(?:examine|look at) (?:the |some |a )?(?P<o>.+?) (?:with|under) the (?P<l>.+)", "look_at_obj_in_light"),
    (r"(?:find|put) two (?P<o>.+?) (?:and put them )?(?:in|on|in/on) (?P<r>.+)", "pick_two_obj_and_place"),
    (r"(?P<f>clean|heat|cool) some (?P<o>.+?) and put it (?:in|on) (?P<r>.+)", ""),
    (r"put a (?P<f>clean|hot|cool) (?P<o>.+?) (?:in|on) (?P<r>.+)", ""),
    (r"put (?:a|some|an) (?P<o>.+?) (?:in|on) (?P<r>.+)", "pick_and_place_simple"),
]
_FLAG = {"clean": "clean", "heat": "hot", "hot": "hot", "cool": "cool"}
_FAM = {"clean": "pick_clean_then_place_in_recep", "hot": "pick_heat_then_place_in_recep", "cool": "pick_cool_then_place_in_recep"}

@lru_cache(maxsize=8192)
def parse_goal(instruction: str):
    t = instruction.strip().rstrip(".").lower()
    for p, fam in _P:
        m = re.fullmatch(p, t)
        if m:
            d = m.groupdict()
            flag = _FLAG.get(d.get("f") or "", "")
            return Goal(fam or _FAM[flag], d["o"], d.get("r") or "", flag, 2 if "two" in fam else 1, d.get("l") or "")
    return None


def _kind(n): return n.rpartition(" ")[0] or n

def satisfied(goal, state):
    p = state.public
    rows = {r["name"]: r for r in p["receptacles"]}
    if goal.lamp:
        if not any(_kind(o["name"]) == goal.object for o in p["holding"]): return False
        return any(_kind(o["name"]) == goal.lamp and "on" in o["flags"] for n in p["location"] if n in rows for o in rows[n]["contents"])
    for r in p["receptacles"]:
        if _kind(r["name"]) == goal.receptacle:
            if sum(_kind(o["name"]) == goal.object and (not goal.flag or goal.flag in o["flags"]) for o in r["contents"]) >= goal.count: return True
    return False

def plausible(goal, state):
    if goal is None: return False
    hidden = state.private.get("hidden", ())
    names = [o["name"] for o in hidden]
    if len(set(names)) != len(names): return False
    ks = [_kind(n) for n in names]
    if ks.count(goal.object) < goal.count or (goal.lamp and goal.lamp not in ks): return False
    for k in set(ks):
        ids = sorted(int(n.rpartition(" ")[2]) for n in names if _kind(n) == k)
        if ids != list(range(1, len(ids) + 1)): return False
    if not goal.lamp and not goal.flag:
        at = {}
        for o in hidden:
            if _kind(o["name"]) == goal.object and _kind(o["place"]) == goal.receptacle: at[o["place"]] = at.get(o["place"], 0) + 1
        if max(at.values(), default=0) >= goal.count: return False
    return True
