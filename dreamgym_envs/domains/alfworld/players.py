import numpy as np
from dreamgym_envs.domains.alfworld.goal import Goal, parse_goal
from dreamgym_envs.domains.alfworld.grammar import candidates
def kind(n): return n.rpartition(" ")[0] or n
STATION = {"clean": "sinkbasin", "hot": "microwave", "cool": "fridge"}
VERB = {"clean": "clean", "hot": "heat", "cool": "cool"}
class Expert:
    explore_all = False
    def reset(self, task, rng):
        self.task, self.rng = task, rng
        self.goal = self.target(parse_goal(task.instruction))
        self.order = {}
        self.tried = {}
    def target(self, goal): return goal
    def act(self, state):
        return self.plan(state) or "look"
    def rank(self, name):
        if name not in self.order: self.order[name] = self.rng.random()
        openable = kind(name) in ("cabinet", "drawer", "safe", "box")
        return (openable, self.order[name])
    def goto(self, state, name, then):
        return then if name in state.public["location"] else f"go to {name}"
    def plan(self, state):
        pub, g = state.public, self.goal
        rows = {r["name"]: r for r in pub["receptacles"]}
        where = {o["name"]: (r["name"], o) for r in pub["receptacles"] for o in r["contents"]}
        unknown = [r for r in pub["receptacles"] if r["status"] in ("unseen", "closed")]
        if self.explore_all and unknown:
            return self.explore(state, unknown)
        if g is None: return "look"
        held = pub["holding"][0] if pub["holding"] else None
        if g.lamp:
            lamps = [n for n in where if kind(n) == g.lamp]
            if held and kind(held["name"]) == g.object:
                if lamps: 
                    return self.goto(state, where[lamps[0]][0], f"use {lamps[0]}")
                return self.explore(state, unknown)
            if held: return self.drop(state, rows)
            objs = [n for n in where if kind(n) == g.object]
            if objs: return self.fetch(state, rows, where, objs)
            return self.explore(state, unknown)
        # place tasks
        done = {}
        for r in pub["receptacles"]:
            if kind(r["name"]) == g.receptacle:
                done[r["name"]] = [o["name"] for o in r["contents"] if kind(o["name"]) == g.object and (not g.flag or g.flag in o["flags"])]
        base = max(done, key=lambda n: (len(done[n]), -self.rank(n)[1]), default=None)
        if held and kind(held["name"]) == g.object:
            if g.flag and g.flag not in held["flags"]:
                st = [n for n in rows if kind(n) == STATION[g.flag]]
                if not st: return "look"
                return self.goto(state, st[0], f"{VERB[g.flag]} {held['name']} with {st[0]}")
            if base is None: return "look"
            if base in pub["location"]:
                if rows[base]["status"] in ("closed", "shut"): return f"open {base}"
                return f"move {held['name']} to {base}"
            return f"go to {base}"
        if held: return self.drop(state, rows)
        keep = set(done.get(base, ())) if g.count > 1 else set()
        objs = [n for n in where if kind(n) == g.object and n not in keep]
        if objs: return self.fetch(state, rows, where, objs)
        return self.explore(state, unknown)
    def fetch(self, state, rows, where, objs):
        loc = state.public["location"]
        objs.sort(key=lambda n: (where[n][0] not in loc, n))
        o = objs[0]; r = where[o][0]
        if r in loc:
            if rows[r]["status"] == "shut": return f"open {r}"
            return f"take {o} from {r}"
        return f"go to {r}"
    def drop(self, state, rows):
        held = state.public["holding"][0]["name"]
        opts = [n for n in state.public["location"] if rows[n]["status"] in ("open", "surface") and (held, n) not in self.tried and kind(n) != (self.goal.receptacle if self.goal else "")]
        if opts:
            self.tried[held, opts[0]] = 1
            return f"move {held} to {opts[0]}"
        names = [n for n in rows if n not in state.public["location"] and (held, n) not in self.tried and rows[n]["status"] != "closed"]
        names.sort(key=lambda n: (kind(n) not in ("countertop", "diningtable", "desk", "sidetable", "bed", "shelf"), self.rank(n)))
        return f"go to {names[0]}" if names else "look"
    def explore(self, state, unknown):
        loc = state.public["location"]
        for r in unknown:
            if r["name"] in loc:
                if r["status"] == "closed": return f"open {r['name']}"
                if self.tried.get(("seen", r["name"]), 0) < 1:
                    self.tried["seen", r["name"]] = 1
                    return f"open {r['name']}"
        rest = [r["name"] for r in unknown if r["name"] not in loc]
        if not rest: 
            far = [r["name"] for r in state.public["receptacles"] if r["name"] not in loc]
            return f"go to {far[int(self.rng.integers(len(far)))]}" if far else "look"
        return f"go to {min(rest, key=self.rank)}"
class Explorer(Expert):
    explore_all = True
class Random:
    def reset(self, task, rng): self.task, self.rng = task, rng
    def act(self, state):
        c = candidates(self.task, state)
        return c[int(self.rng.integers(len(c)))]
class Noisy(Expert):
    p = .1
    def act(self, state):
        if self.rng.random() < self.p:
            c = candidates(self.task, state)
            return c[int(self.rng.integers(len(c)))]
        return super().act(state)
class Prober(Expert):
    def act(self, state):
        if self.rng.random() < .45: return self.probe(state)
        return super().act(state)
    def probe(self, state):
        pub, rng = state.public, self.rng
        recs = [r["name"] for r in pub["receptacles"]]
        here = list(pub["location"]) or recs
        pick = lambda xs: xs[int(rng.integers(len(xs)))]
        known = [o["name"] for r in pub["receptacles"] for o in r["contents"]] or ["mug 1"]
        near = [o["name"] for r in pub["receptacles"] if r["name"] in here for o in r["contents"]] or known
        held = [o["name"] for o in pub["holding"]]
        o = pick(held) if held and rng.random() < .75 else pick(near if rng.random() < .7 else known)
        r = pick(here) if rng.random() < .75 else pick(recs)
        stations = [n for n in recs if kind(n) in ("sinkbasin", "microwave", "fridge")]
        v = pick(["open", "close", "take", "take", "move", "move", "move", "clean", "heat", "cool", "use", "slice", "examine", "examineo", "inventory", "look", "go", "station", "use"])
        if v in ("open", "close"): return f"{v} {r}"
        if v == "take": return f"take {pick(near if rng.random() < .8 else known)} from {r}"
        if v == "move": return f"move {o} to {r}"
        if v in ("clean", "heat", "cool"):
            s = [n for n in stations if n in here]
            return f"{v} {o} with {pick(s) if s and rng.random() < .8 else r}"
        if v == "use":
            lamps = [n for n in near if "lamp" in n]
            return f"use {pick(lamps) if lamps and rng.random() < .5 else o}"
        if v == "slice":
            kn = [n for n in held if "knife" in n] or [o]
            return f"slice {pick(near)} with {kn[0]}"
        if v == "examine": return f"examine {r}"
        if v == "examineo": return f"examine {o}"
        if v == "go": return f"go to {r}"
        if v == "station" and stations: return f"go to {pick(stations)}"
        return "inventory" if v == "inventory" else "look"
class NearMiss(Expert):
    """pursue a mutated goal first, then often the real one"""
    def target(self, goal):
        self.real = goal
        self.phase = 0
        return goal
    def reset(self, task, rng):
        super().reset(task, rng)
        self.left = int(rng.integers(1, 3)); self.mutated = None; self.count = 0
    def mutate(self, state):
        g, rng = self.real, self.rng
        if g is None: return None
        rows = state.public["receptacles"]
        kinds = sorted({kind(o["name"]) for r in rows for o in r["contents"]})
        rk = sorted({kind(r["name"]) for r in rows})
        pick = lambda xs: xs[int(rng.integers(len(xs)))]
        opts = ["object", "place"]
        if g.flag: opts += ["noflag", "noflag", "wrongflag"]
        if g.count > 1: opts += ["one", "split"]
        if g.lamp: opts = ["object", "lampfirst", "lampother"]
        m = pick(opts)
        from dataclasses import replace as R
        if m == "object" and kinds: return R(g, object=pick(kinds), count=1)
        if m == "place": return R(g, receptacle=pick(rk), count=1)
        if m == "noflag": return R(g, flag="")
        if m == "wrongflag": return R(g, flag=pick(["clean", "hot", "cool"]))
        if m == "one": return R(g, count=1)
        if m == "split": return R(g, count=1)
        if m == "lampfirst" or m == "lampother": return "lamp"
        return g
    def act(self, state):
        if self.rng.random() < .05: 
            c = candidates(self.task, state); return c[int(self.rng.integers(len(c)))]
        self.count += 1
        if self.left > 0:
            if self.mutated is None or self.count % 14 == 0:
                self.mutated = self.mutate(state)
            g = self.mutated
            if g == "lamp":
                where = [(r["name"], o["name"]) for r in state.public["receptacles"] for o in r["contents"] if "lamp" in o["name"]]
                if where:
                    n, l = where[0]
                    if n in state.public["location"]:
                        self.left -= 1; self.mutated = None
                        return f"use {l}"
                    return f"go to {n}"
                unknown = [r for r in state.public["receptacles"] if r["status"] in ("unseen", "closed")]
                return self.explore(state, unknown)
            self.goal = g
            a = self.plan(state) or "look"
            if a.startswith("move"):
                self.left -= 1; self.mutated = None
            return a
        self.goal = self.real
        return self.plan(state) or "look"
KINDS = {"expert": Expert, "noisy": Noisy, "random": Random, "explorer": Explorer, "nearmiss": NearMiss, "prober": Prober}
def player(k): return KINDS[k]()
