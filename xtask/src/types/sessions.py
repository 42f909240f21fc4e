"""A session store: a hash for each visitor, gone when its time is over."""

import time

from house import at_once, check, connect, end, figure, title, until

SESSIONS = 2_000
VISITS = 8_000
SHORT = 1_500
LONG = 600_000

title(f"Sessions: {SESSIONS} hashes that expire, {VISITS} visits")
store = connect()


def name(number):
    return f"session:{number}"


pipe = store.pipeline(transaction=False)
for number in range(SESSIONS):
    fields = {"user": f"user{number}", "language": "de" if number % 3 else "en", "visits": 0}
    pipe.hset(name(number), mapping=fields)
    pipe.pexpire(name(number), LONG)
check("each session is made, with its time", pipe.execute(), [3, True] * SESSIONS)


def visit(store, random, client):
    """Counts visits and prolongs the session at each, as a web server does."""
    counts = {}
    for _ in range(VISITS // 4):
        number = random.randrange(SESSIONS)
        pipe = store.pipeline(transaction=True)
        pipe.hincrby(name(number), "visits", 1)
        pipe.hset(name(number), f"page{random.randrange(5)}", client)
        pipe.pexpire(name(number), LONG)
        pipe.execute()
        counts[number] = counts.get(number, 0) + 1
    return counts


counts = [0] * SESSIONS
for client in at_once(visit):
    for number, visits in client.items():
        counts[number] += visits
pipe = store.pipeline(transaction=False)
for number in range(SESSIONS):
    pipe.hmget(name(number), "user", "visits")
expected = [[f"user{number}", str(counts[number])] for number in range(SESSIONS)]
check("no visit is lost, none counted twice", pipe.execute(), expected)
left = [store.pttl(name(number)) for number in range(0, SESSIONS, 50)]
check("all have their time before them", all(0 < time <= LONG for time in left))

# Every third visitor goes: their sessions are given little time, and some come back.
gone = range(0, SESSIONS, 3)
pipe = store.pipeline(transaction=False)
for number in gone:
    pipe.pexpire(name(number), SHORT)
pipe.execute()
back = [number for number in gone if number % 2 == 0]
pipe = store.pipeline(transaction=False)
for number in back:
    pipe.hget(name(number), "user")
    pipe.persist(name(number))
told = pipe.execute()
# On a machine that stood still meanwhile, a session may have been over before its visitor came back.
kept = {number for place, number in enumerate(back) if told[2 * place + 1]}
lost = [number for number in gone if number not in kept]
went = time.monotonic()
found = [told[2 * place] for place, number in enumerate(back) if number in kept]
check("those who came back found their data", found, [f"user{n}" for n in back if n in kept])



def present(numbers):
    groups = [[name(n) for n in numbers[i : i + 500]] for i in range(0, len(numbers), 500)]
    return sum(store.exists(*group) for group in groups)


waited = until(lambda: present(lost) == 0)
check(f"{len(lost)} sessions ended by themselves", waited)
check("an ended session has no fields", store.hgetall(name(lost[0])), {})
check("and can be begun anew", store.hset(name(lost[0]), "user", "new"), 1)
check("without the time of the old one", store.ttl(name(lost[0])), -1)
stay = [number for number in range(SESSIONS) if number % 3 or number in kept]
check(f"the other {len(stay)} are there", present(stay), len(stay))
check("SCAN finds just these", len(set(store.scan_iter("session:*", count=500))), len(stay) + 1)

figure(f"{sum(counts)} visits; ended {time.monotonic() - went:.1f} s after they were given {SHORT / 1000} s")
figure(f"bytes of one session: {store.memory_usage(name(stay[0]))} ({store.object('encoding', name(stay[0]))})")
end()
