"""An auction, and a shop with limited stock beside it.

Bids go to a ranking of the ten highest for each lot, without waiting for what it answers; their
identifiers come from a key of unique ones; stock is a counter that cannot fall below zero.
"""

from house import at_once, check, connect, end, figure, title

LOTS = 20
BIDS = 12_000
TOP = 10
STOCK = 500
BUYERS = 4

title(f"Auction: {BIDS} bids for {LOTS} lots; {STOCK} pieces for {BUYERS} buyers who want more")
store = connect()


def bid(store, random, number):
    """Bids for lots; remembers each bid with its price."""
    made = []
    while len(made) < BIDS // 4:
        ids = store.execute_command("UID.NEXT", "bids", "COUNT", min(50, BIDS // 4 - len(made)))
        pipe = store.pipeline(transaction=False)
        for bid in ids:
            lot, price = random.randrange(LOTS), random.randrange(100, 100_000)
            pipe.execute_command("QUIET", "HSET", f"bid:{bid}", "lot", lot, "price", price, "by", number)
            pipe.execute_command("QUIET", "RANK.ADD", f"lot:{lot}", TOP, price, bid)
            pipe.execute_command("QUIET", "BAG.ADD", f"prices:{lot}", price)
            made.append((bid, lot, price))
        replies = pipe.execute()
        # redis-py makes True of an OK for some commands.
        if any(reply not in ("OK", True) for reply in replies):
            raise ValueError(f"a quiet command answered {replies}")
    return made


bids = [bid for made in at_once(bid) for bid in made]
check(f"{len(bids)} identifiers, none twice", len({bid for bid, _, _ in bids}), len(bids))
peek = store.execute_command("UID.PEEK", "bids")
check("all below the next that would be given", all(bid < peek for bid, _, _ in bids))

price_of = {str(bid): price for bid, _, price in bids}
lots = [[price for _, where, price in bids if where == lot] for lot in range(LOTS)]
highest, named, counts, sums = [], True, [], []
for lot in range(LOTS):
    found = store.execute_command("RANK.RANGE", f"lot:{lot}", 0, -1)
    named = named and all(store.hget(f"bid:{bid}", "lot") == str(lot) for bid in found)
    highest.append([price_of[bid] for bid in found])
    counts.append(store.execute_command("BAG.COUNT", f"prices:{lot}"))
    sums.append(float(store.execute_command("BAG.SUM", f"prices:{lot}")))
check(f"each lot's {TOP} highest bids, in order", highest, [sorted(p, reverse=True)[:TOP] for p in lots])
check("are bids for that lot", named)
check("every quiet bid counted", counts, [len(prices) for prices in lots])
check("the prices bid add up", sums, [float(sum(prices)) for prices in lots])
winner, price = store.execute_command("RANK.MAX", "lot:0")
check("the winner is who bid most", price_of[winner] == float(price) == max(lots[0]))

store.execute_command("BCOUNT.SET", "stock", STOCK, "MIN", 0, "MAX", STOCK)


def buy(store, random, number):
    """Buys pieces one by one, and a few at a time, while there are any; answers how many it got."""
    got = refused = 0
    while refused < 20:
        pieces = random.choice((1, 1, 1, 3))
        if store.execute_command("BCOUNT.ADD", "stock", -pieces) == 1:
            got += pieces
            # Now and then something comes back.
            if random.random() < 0.1 and store.execute_command("BCOUNT.ADD", "stock", 1) == 1:
                got -= 1
        else:
            refused += 1
    return got


sold = at_once(buy, BUYERS)
left = store.execute_command("BCOUNT.GET", "stock")
check("what was sold and what is left are the stock", sum(sold) + left, STOCK)
check("never less than nothing", left >= 0)
check("selling the rest is accepted", store.execute_command("BCOUNT.ADD", "stock", -left), 1)
check("and one more is not", store.execute_command("BCOUNT.ADD", "stock", -1), 0)
check("giving back too much is not either", store.execute_command("BCOUNT.ADD", "stock", STOCK + 1), 0)
check("none is left", store.execute_command("BCOUNT.GET", "stock"), 0)

figure(f"lot 0: bid {winner} wins with {float(price):.0f}, of {len(lots[0])} bids")
figure(f"sold to each buyer: {', '.join(map(str, sold))}")
end()
