import re
from dreamgym_envs.core.types import State
from dreamgym_envs.domains.alfworld.grammar import parse
_FL = ("clean", "hot", "cool", "sliced", "on")
def instruction(obs):
    return re.search(r"Your task is to: (.*)", obs).group(1).strip()
def _list(text):
    return tuple(m for m in re.findall(r"\ban? ([a-z]+ \d+)", text))
def initial_state(obs):
    names = _list(obs.split("you see", 1)[1].split("Your task")[0])
    return State({"location": (), "holding": (), "receptacles": tuple({"name": n, "status": "unseen", "contents": ()} for n in sorted(names, key=lambda n: (n.split()[0], int(n.split()[1])))), "feedback": "You are in the middle of a room."})
def _flag(o, add, drop=()):
    f = (set(o["flags"]) - set(drop)) | {add}
    return {"name": o["name"], "flags": tuple(x for x in _FL if x in f)}
def observe(state, action, text):
    text = " ".join(text.split())
    p = dict(state.public); a = parse(action)
    if text == "Nothing happens." or a is None:
        if a and a.verb == "go" and a.arguments[0] not in p["location"] and any(r["name"] == a.arguments[0] for r in p["receptacles"]):
            p["location"] = (*p["location"], a.arguments[0])
        p["feedback"] = "Nothing happens."
        return State(p, state.private)
    rows = {r["name"]: r for r in p["receptacles"]}
    def put(n, **kw): rows[n] = {**rows[n], **kw}
    def listing(n):
        m = re.search(rf"(?:On|In) (?:the {n}|it), you see (.*?)\.(?: |$)", text)
        known = {o["name"]: o for o in rows[n]["contents"]}
        return tuple(known.get(x, {"name": x, "flags": ()}) for x in _list(m.group(1)))
    v, ar = a.verb, a.arguments
    fb = text
    if v == "go":
        r = ar[0]; p["location"] = (r,)
        if "is closed" in text:
            if rows[r]["status"] == "unseen": put(r, status="closed")
            fb = f"You arrive at {r}. The {r} is closed."
        else:
            old = rows[r]
            new = listing(r)
            known = old["status"] in ("open", "surface", "shut")
            if not (known and {o["name"] for o in new} == {o["name"] for o in old["contents"]}): put(r, contents=new)
            if "is open" in text: put(r, status="open"); fb = f"You arrive at {r}. The {r} is open."
            else: put(r, status="surface"); fb = f"You arrive at {r}."
    elif v == "open":
        r = ar[0]; old = rows[r]; new = listing(r)
        if not (old["status"] == "shut" and {o["name"] for o in new} == {o["name"] for o in old["contents"]}): put(r, contents=new)
        put(r, status="open"); fb = f"You open the {r}."
    elif v == "close": put(ar[0], status="shut")
    elif v == "take":
        o, r = ar; it = next((x for x in rows[r]["contents"] if x["name"] == o), {"name": o, "flags": ()})
        put(r, contents=tuple(x for x in rows[r]["contents"] if x["name"] != o)); p["holding"] = (it,)
    elif v == "move":
        o, r = ar; it = p["holding"][0]; p["holding"] = (); put(r, contents=(*rows[r]["contents"], it))
    elif v in ("clean", "heat", "cool"):
        it = p["holding"][0]
        p["holding"] = (_flag(it, {"clean": "clean", "heat": "hot", "cool": "cool"}[v], {"heat": ("cool",), "cool": ("hot",)}.get(v, ())),)
    elif v in ("use", "slice"):
        for n in list(rows):
            if any(x["name"] == ar[0] for x in rows[n]["contents"]):
                put(n, contents=tuple(_flag(x, "on" if v == "use" else "sliced") if x["name"] == ar[0] else x for x in rows[n]["contents"]))
    elif v == "look":
        fb = "You look around."
        if "facing" in text: p["location"] = tuple(dict.fromkeys((*p["location"], *re.findall(r"[a-z]+ \d+", text.split("Next")[0]))))
    elif v == "examine":
        if ar[0] in rows:
            fb = f"The {ar[0]} is closed." if "is closed" in text else f"The {ar[0]} is open." if "is open" in text else f"You examine the {ar[0]}."
    elif v == "help":
        fb = "You read the list of commands."
    p["receptacles"] = tuple(rows[r["name"]] for r in p["receptacles"])
    p["feedback"] = fb
    return State(p, state.private)
