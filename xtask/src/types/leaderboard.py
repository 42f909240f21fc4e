"""A game's leaderboard: points in a sorted set, the ten best games in a ranking."""

from collections import defaultdict

from house import at_once, check, connect, end, figure, title

PLAYERS = 2_000
GAMES = 20_000
TOP = 10
DAYS = ("monday", "tuesday")

title(f"Leaderboard: {GAMES} games of {PLAYERS} players")
store = connect()


def play(store, random, number):
    """Plays games and reports each as it ends; remembers what was reported."""
    reported = []
    for _ in range(GAMES // 4 // 50):
        pipe = store.pipeline(transaction=False)
        for _ in range(50):
            player = f"player:{random.randrange(PLAYERS)}"
            points = random.randrange(1, 1000)
            day = random.choice(DAYS)
            pipe.zincrby(f"points:{day}", points, player)
            pipe.zadd("best", {player: points}, gt=True)
            # A member of its own for every game: no two have equal names.
            game = f"{player}/{number}-{len(reported)}"
            pipe.execute_command("QUIET", "RANK.ADD", "games", TOP, points, game)
            reported.append((day, player, points, game))
        pipe.execute()
    return reported


games = [game for reported in at_once(play) for game in reported]
points = {day: defaultdict(int) for day in DAYS}
total = defaultdict(int)
best = defaultdict(int)
for day, player, score, _ in games:
    points[day][player] += score
    total[player] += score
    best[player] = max(best[player], score)


def highest(scores, count):
    """Members and scores in the order of ZREVRANGE: equal scores by name, downwards."""
    return sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)[:count]


for day in DAYS:
    found = store.zrevrange(f"points:{day}", 0, -1, withscores=True)
    check(f"all points of {day} are there, in order", found, highest(points[day], PLAYERS))
check("every player of both days", store.zunionstore("points:all", [f"points:{d}" for d in DAYS]), len(total))
check("points of both days add up", dict(store.zrange("points:all", 0, -1, withscores=True)), dict(total))
check("the best game of each player", dict(store.zrange("best", 0, -1, withscores=True)), dict(best))

order = [player for player, _ in highest(total, PLAYERS)]
asked = order[:: max(1, len(order) // 100)]
pipe = store.pipeline(transaction=False)
for player in asked:
    pipe.zrevrank("points:all", player)
check(f"{len(asked)} players are told their places", pipe.execute(), [order.index(p) for p in asked])
middle = len(order) // 2
check(
    "and who is next to them",
    store.zrevrange("points:all", middle - 2, middle + 2),
    order[middle - 2 : middle + 3],
)
over = sum(1 for score in total.values() if score > 5000)
check("players above 5000 points", store.zcount("points:all", "(5000", "+inf"), over)

found = store.execute_command("RANK.RANGE", "games", 0, -1, "WITHSCORES")
# Pairs in RESP3, one after the other before.
pairs = found if isinstance(found[0], list) else zip(found[::2], found[1::2])
shown = [(name, float(score)) for name, score in pairs]
scores = {game: score for _, _, score, game in games}
check(f"the ranking keeps {TOP} games", store.execute_command("RANK.LEN", "games"), min(TOP, len(games)))
check("and they are the highest", [score for _, score in shown], sorted(scores.values(), reverse=True)[:TOP])
check("with the scores they had", all(scores[name] == score for name, score in shown))
first, score = shown[0]
check("first is the maximum", store.execute_command("RANK.MAX", "games")[0], first)

for place, (player, points) in enumerate(highest(total, 3), 1):
    figure(f"{place}. {player:<12} {points} points")
figure(f"best game: {first} with {score:g}")
figure(
    f"bytes: {store.memory_usage('points:all')} for {len(total)} players, "
    f"{store.memory_usage('games')} for the ranking of {len(games)} games"
)
end()
