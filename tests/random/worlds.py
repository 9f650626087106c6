#!/usr/bin/env python3
"""Random worlds of requests: scenario files, and what a small model of the scheduler expects of each step.

Each world is an engine of random size, the policy `fcfs` or `priority`, and requests that arrive, stop, end and are
aborted at random, in half of the worlds with prompts that share prefixes. The model below follows the rules that
docs/engine-behaviour.md states, not the engine's code. `patchbay scenario run` plays the files; the first difference is
printed with the world's seed.

    tests/random/worlds.py                     200 worlds from a fresh seed, which is printed
    tests/random/worlds.py --seed 7 --worlds 1 that world again; --keep DIR leaves its file there
"""
import argparse
import math
import os
import random
import subprocess
import sys
import tempfile

FILES_A_RUN = 50  # of one process


class Pool:
    """Blocks: who holds each, which are free, the one unused the longest first, and what full ones contain."""

    def __init__(self, blocks):
        self.free = dict.fromkeys(range(blocks))
        self.holders, self.content = [0] * blocks, [None] * blocks
        self.found = {}  # by content: blocks, those in use first, then the one freed first

    def take(self):
        block = next(iter(self.free))
        del self.free[block]
        if self.content[block] is not None:
            self.found[self.content[block]].remove(block)
            self.content[block] = None
        self.holders[block] = 1
        return block

    def hold(self, block):
        self.holders[block] += 1
        if self.holders[block] == 1:
            del self.free[block]
            self.move(block)

    def release(self, block):
        self.holders[block] -= 1
        if self.holders[block] == 0:
            self.move(block)
            self.free[block] = None

    def move(self, block):
        twins = self.found.get(self.content[block], [])
        if len(twins) > 1:
            twins.remove(block)
            twins.insert(0 if self.holders[block] else len(twins), block)

    def name(self, block, content):
        if self.content[block] is not None:
            return
        self.content[block] = content
        twins = self.found.setdefault(content, [])
        twins.insert(1 if twins and self.holders[twins[0]] else 0, block)

    def find(self, content):
        return (self.found.get(content) or [None])[0]

    def cached(self):
        return sum(self.content[block] is not None for block in self.free)


class Request:
    def __init__(self, number, draw, limits):
        self.number, self.id = number, f"r{number}"
        self.max_tokens = draw.randint(1, min(12, limits.longest - 1))
        self.prompt = draw.randint(1, min(limits.longest - self.max_tokens, draw.choice([8, 40, 120])))
        self.priority = draw.randint(-2, 2)
        self.arrival = 0
        self.stops_after = draw.randint(1, self.max_tokens) if draw.random() < 0.2 else 0
        self.made = self.computed = 0
        self.blocks, self.named, self.admitted = [], 0, False
        shared = draw.choice([0, 8, 40, 120]) if limits.caching else 0
        family, shared = draw.randint(1, 2), min(shared, self.prompt)
        self.tokens = [family * 200 + i for i in range(shared)]
        self.tokens += [1000 + number * 200 + i for i in range(shared, self.prompt)]
        self.own = [(number, i) for i in range(self.max_tokens)]  # its output: tokens that no other request has

    def content(self, block, size):
        """Of a full block: all tokens up to its end."""
        return tuple((self.tokens + self.own)[:(block + 1) * size])

    known = property(lambda self: self.prompt + self.made)
    remaining = property(lambda self: self.known - self.computed)
    decodes = property(lambda self: self.computed + 1 >= self.known)


class Limits:
    def __init__(self, draw):
        self.block_size = draw.choice([1, 4, 16])
        self.num_blocks = draw.randint(math.ceil(48 / self.block_size), math.ceil(320 / self.block_size))
        self.budget = draw.choice([8, 20, 64, 256])
        self.seats = draw.choice([1, 3, 8, 32])
        self.chunked = draw.random() < 0.8
        self.threshold = draw.choice([0, 0, 0, 5, 16])
        self.caching = draw.random() < 0.5
        self.longest = self.num_blocks * self.block_size
        if not self.chunked:
            self.longest = min(self.longest, self.budget)

    def text(self):
        return (f"{{block_size: {self.block_size}, num_blocks: {self.num_blocks}, "
                f"max_num_batched_tokens: {self.budget}, max_num_seqs: {self.seats}, "
                f"enable_chunked_prefill: {str(self.chunked).lower()}, "
                f"long_prefill_token_threshold: {self.threshold}, "
                f"enable_prefix_caching: {str(self.caching).lower()}}}")


class World:
    """The state that the rules speak of, one step at a time."""

    def __init__(self, policy, limits):
        self.policy, self.limits = policy, limits
        self.now = 0
        self.pool = Pool(limits.num_blocks)
        self.hit_tokens = self.query_tokens = 0
        self.pending, self.waiting, self.running = [], [], []

    def add(self, request):
        self.pending.append(request)

    def lacks(self, request, tokens):
        """Blocks that so many more tokens need."""
        wanted = math.ceil((request.computed + tokens) / self.limits.block_size)
        return max(0, wanted - len(request.blocks))

    def release(self, request):
        for block in reversed(request.blocks):
            self.pool.release(block)
        request.blocks, request.computed, request.named = [], 0, 0

    def hits(self, request):
        """Cached blocks from its beginning on; at least one token is left to compute."""
        size, out = self.limits.block_size, []
        for i in range((request.known - 1) // size if self.limits.caching else 0):
            block = self.pool.find(request.content(i, size))
            if block is None:
                break
            out.append(block)
        return out

    def grow(self, request, tokens):
        """Blocks for so many more tokens; full ones can be found from now on."""
        size = self.limits.block_size
        request.blocks += [self.pool.take() for _ in range(self.lacks(request, tokens))]
        for i in range(request.named, (request.computed + tokens) // size if self.limits.caching else 0):
            self.pool.name(request.blocks[i], request.content(i, size))
            request.named = i + 1

    def drop(self, request):
        for queue in (self.pending, self.waiting, self.running):
            if request in queue:
                queue.remove(request)
        self.release(request)

    def chunk(self, request):
        capped = self.limits.chunked and self.limits.threshold and not request.decodes
        return self.limits.threshold if capped else math.inf

    def is_worse(self, a, b):
        """Whether a is preempted before b."""
        late = (a.arrival, a.number) > (b.arrival, b.number)
        return late if self.policy == "fcfs" or a.priority == b.priority else a.priority > b.priority

    def arrive(self):
        if not self.waiting and not self.running and self.pending:
            self.now = max(self.now, min(r.arrival for r in self.pending))
        for request in sorted((r for r in self.pending if r.arrival <= self.now), key=lambda r: (r.arrival, r.number)):
            self.pending.remove(request)
            self.waiting.append(request)

    def plan(self):
        """Tokens by request, in the order of the plan, and who is preempted for it."""
        self.arrive()
        limits, free, budget = self.limits, len(self.pool.free), self.limits.budget
        planned, given, gone = {}, {}, []

        def take_back(victim):
            nonlocal free, budget
            budget += planned.pop(victim, 0)
            alone = sum(self.pool.holders[block] == 1 for block in victim.blocks)
            free += given.pop(victim, 0) + alone
            gone.append(victim)

        def run(request, tokens, blocks):
            nonlocal free, budget
            planned[request] = tokens
            given[request] = blocks
            budget -= tokens
            free -= given[request]

        decodes = [r for r in self.running if r.decodes]
        for request in decodes + [r for r in self.running if not r.decodes]:
            if request in gone:
                continue
            tokens = min(request.remaining, budget, self.chunk(request))
            if tokens == 0:
                continue
            while self.lacks(request, tokens) > free:
                others = [r for r in self.running if r not in gone]
                if limits.chunked and others == [request]:  # none is left to preempt: as much as fits
                    fits = (len(request.blocks) + free) * limits.block_size - request.computed
                    if fits > 0:
                        tokens = fits
                        break
                victim = others[0]
                for other in others[1:]:
                    victim = other if self.is_worse(other, victim) else victim
                take_back(victim)
                if victim is request:
                    tokens = 0
                    break
                tokens = min(request.remaining, max(tokens, min(budget, self.chunk(request))))
            if tokens > 0:
                run(request, tokens, self.lacks(request, tokens))

        queue = self.waiting
        if self.policy == "priority":
            queue = sorted(queue, key=lambda r: (r.priority, r.arrival, r.number))
        seats = limits.seats - len(self.running)
        for request in queue if not gone else []:
            if budget == 0 or seats == 0:
                break
            hits = self.hits(request)
            cached, in_use = len(hits) * limits.block_size, sum(self.pool.holders[block] > 0 for block in hits)
            tokens = min(request.remaining - cached, budget, self.chunk(request))
            if not self.running and not planned:  # alone: as much as fits
                tokens = min(tokens, (free + in_use) * limits.block_size - cached)
            if tokens <= 0 or (tokens < request.remaining - cached and not limits.chunked):
                break
            blocks = self.lacks(request, cached + tokens) - in_use  # new ones, and hits that are free
            if blocks > free:
                break
            run(request, tokens, blocks)
            seats -= 1
        return planned, gone

    def apply(self, planned, gone):
        """Tokens that the step computes, by request: what counts is what is cached when the plan is applied."""
        scheduled = {}
        for victim in gone:
            self.running.remove(victim)
            self.release(victim)
            self.waiting.insert(0, victim)
        for request, tokens in planned.items():
            admission = request in self.waiting
            if admission:
                request.blocks = self.hits(request)
                for block in request.blocks:
                    self.pool.hold(block)
                request.named = len(request.blocks)
                request.computed = hit = request.named * self.limits.block_size
            room = (len(request.blocks) + len(self.pool.free)) * self.limits.block_size - request.computed
            tokens = min(tokens, request.remaining, room)
            if tokens <= 0 or (admission and tokens < request.remaining and not self.limits.chunked):
                if admission:
                    self.release(request)
                continue
            if admission:
                self.waiting.remove(request)
                self.running.append(request)
            if admission and not request.admitted and self.limits.caching:
                self.query_tokens += request.known
                self.hit_tokens += hit
            request.admitted = True
            self.grow(request, tokens)
            scheduled[request] = tokens
        self.now += 1
        return scheduled

    def come_back(self, scheduled):
        """Who sampled a token, and why those of them have ended who have."""
        sampled, ended = [], {}
        for request, tokens in scheduled.items():
            request.computed += tokens
            if request.computed < request.known:
                continue
            request.made += 1
            sampled.append(request)
            if request.made == request.stops_after:
                ended[request] = "stop"
            elif request.made == request.max_tokens:
                ended[request] = "length"
        for request in ended:
            self.drop(request)
        return sampled, ended


def names(requests):
    return "[" + ", ".join(r.id for r in requests) + "]"


def scenario(seed):
    """The text of the world's file."""
    draw = random.Random(seed)
    policy, limits = draw.choice(["fcfs", "priority"]), Limits(draw)
    world = World(policy, limits)
    lines = [f"description: world {seed}", f"policy: {policy}", f"engine: {limits.text()}", "steps:"]
    count, there, steps = draw.randint(1, 24), [], 0

    def add(wanted):
        items = []
        for _ in range(wanted):
            request = Request(len(there), draw, limits)
            later = draw.random() < 0.2
            request.arrival = world.now + draw.randint(1, 15) if later else world.now
            world.add(request)
            there.append(request)
            prompt = f"{{ids: {request.tokens}}}" if limits.caching else request.prompt
            items.append(f"{{id: {request.id}, prompt: {prompt}, max_tokens: {request.max_tokens}, "
                         f"priority: {request.priority}" + (f", arrival_ms: {request.arrival}" if later else "") +
                         (", stop_token_ids: [7]" if request.stops_after else "") + "}")
        lines.append("  - add: [" + ",\n          ".join(items) + "]")

    add(draw.randint(1, count))
    while world.pending or world.waiting or world.running or len(there) < count:
        if len(there) < count and (draw.random() < 0.3 or not (world.pending or world.waiting or world.running)):
            add(draw.randint(1, count - len(there)))
        alive = world.pending + world.waiting + world.running
        if draw.random() < 0.05 and len(alive) > 1:
            victim = draw.choice(alive)
            world.drop(victim)
            lines += [f"  - abort: [{victim.id}]", f"  - expect: {{finished: {{{victim.id}: abort}}}}"]
        planned, gone = world.plan()
        planned = world.apply(planned, gone)
        steps += len(planned) > 0
        assert steps < 5000, f"world {seed} does not end"
        scheduled = ", ".join(f"{r.id}: {tokens}" for r, tokens in planned.items())
        lines.append(f"  - expect: {{scheduled: {{{scheduled}}}, preempted: {names(gone)},\n"
                     f"             waiting: {names(world.waiting)}, running: {names(world.running)}, "
                     f"free_pages: {len(world.pool.free)}, cached_pages: {world.pool.cached()}}}")
        if not planned:
            continue
        sampled, ended = world.come_back(planned)
        stopped = ", ".join(f"{r.id}: [7]" for r, why in ended.items() if why == "stop")
        finished = ", ".join(f"{r.id}: {why}" for r, why in ended.items())
        lines += [f"  - output: {{{stopped}}}",
                  f"  - expect: {{finished: {{{finished}}}, free_pages: {len(world.pool.free)}}}"]
    lines.append(f"  - expect: {{steps: {steps}, hit_tokens: {world.hit_tokens}, query_tokens: {world.query_tokens}, "
                 f"free_pages: {limits.num_blocks}, plan_faults: 0}}")
    return "\n".join(lines) + "\n"


def play(patchbay, seeds, folder):
    """None, or what the first world that differs says."""
    files = []
    for seed in seeds:
        files.append(os.path.join(folder, f"world-{seed}.yaml"))
        with open(files[-1], "w", encoding="utf-8") as out:
            out.write(scenario(seed))
    done = subprocess.run([patchbay, "scenario", "run", *files], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stdout.splitlines() if ": ok: " not in line]
    return "\n".join(lines[:3] + done.stderr.splitlines()[:3]) or f"patchbay ended with {done.returncode}"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patchbay", default=os.path.join(here, "../../build/release/bin/patchbay"))
    parser.add_argument("--seed", type=int, help="of the first world; drawn where it is left out")
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--keep", help="folder for the files")
    o = parser.parse_args()
    first = o.seed if o.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"{o.worlds} worlds from seed {first}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        if o.keep:
            os.makedirs(o.keep, exist_ok=True)
        for begin in range(first, first + o.worlds, FILES_A_RUN):
            seeds = range(begin, min(begin + FILES_A_RUN, first + o.worlds))
            difference = play(o.patchbay, seeds, o.keep or temporary)
            if difference:
                print(f"{difference}\nagain with: tests/random/worlds.py --seed N --worlds 1 --keep DIR, "
                      "N as in the file's name", file=sys.stderr)
                return 1
    print("all as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
