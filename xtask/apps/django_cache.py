"""Django's cache on django.core.cache.backends.redis: the cache's own operations, pages that are
cached, sessions kept in the cache, and fragments of templates."""

import sys
import time
import types

import django
from django.conf import settings

from check import URL, check, finish

settings.configure(
    DEBUG=False,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="for a test",
    ROOT_URLCONF="urls_of_the_test",
    USE_TZ=True,
    CACHES={
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": URL},
        "other": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"{URL}/1",
            "KEY_PREFIX": "other",
            "TIMEOUT": 60,
        },
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()

from django.core.cache import cache, caches  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.template import Context, Template  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import path  # noqa: E402
from django.views.decorators.cache import cache_page  # noqa: E402

rendered = 0


@cache_page(60)
def page(request):
    global rendered
    rendered += 1
    return HttpResponse(f"page {request.GET.get('n')} drawn {rendered}")


def visits(request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    request.session["basket"] = request.session.get("basket", []) + [request.GET.get("item")]
    return HttpResponse(str(request.session["visits"]))


def leave(request):
    request.session.flush()
    return HttpResponse("bye")


urls = types.ModuleType("urls_of_the_test")
urls.urlpatterns = [path("page", page), path("visits", visits), path("leave", leave)]
sys.modules["urls_of_the_test"] = urls


def operations():
    cache.clear()
    check("get of nothing", cache.get("none", "default"), "default")
    value = {"list": [1, 2.5, "ü"], "nested": {"bytes": b"\0\xff"}, "none": None}
    cache.set("object", value)
    check("objects come back", cache.get("object"), value)
    cache.set("number", 7)
    check("incr", cache.incr("number", 5), 12)
    check("decr", cache.decr("number"), 11)
    try:
        cache.incr("nothing here")
        check("incr of nothing is refused", False)
    except ValueError:
        check("incr of nothing is refused", True)
    check("add of what is there", cache.add("number", 1), False)
    check("add", cache.add("fresh", "x"), True)
    check("set_many", cache.set_many({f"m{n}": n for n in range(100)}, 60), [])
    check("get_many", cache.get_many([f"m{n}" for n in range(120)]), {f"m{n}": n for n in range(100)})
    cache.delete_many([f"m{n}" for n in range(50)])
    check("delete_many", len(cache.get_many([f"m{n}" for n in range(100)])), 50)
    check("has_key", "m60" in cache and "m1" not in cache)
    check("delete", (cache.delete("m60"), cache.delete("m60")), (True, False))
    check("get_or_set", [cache.get_or_set("made", lambda: "once"), cache.get_or_set("made", "twice")], ["once"] * 2)
    big = b"x" * 3_000_000
    cache.set("big", big)
    check("a value of 3 MB", cache.get("big") == big)
    cache.set("versioned", "one", version=1)
    cache.set("versioned", "two", version=2)
    check("versions", (cache.get("versioned", version=1), cache.get("versioned", version=2)), ("one", "two"))
    check("incr_version", (cache.incr_version("versioned", version=2), cache.get("versioned", version=3)), (3, "two"))


def time_and_place():
    cache.set("short", 1, timeout=1)
    cache.set("touched", 1, timeout=1)
    check("touch", cache.touch("touched", 60), True)
    cache.set("gone", 1, timeout=0)
    check("a timeout of zero stores nothing", cache.get("gone"), None)
    cache.set("forever", 1, timeout=None)
    time.sleep(1.3)
    check("timeouts", [cache.get(key) for key in ("short", "touched", "forever")], [None, 1, 1])
    other = caches["other"]
    other.set("forever", "elsewhere")
    check("caches in other databases", (other.get("forever"), cache.get("forever")), ("elsewhere", 1))
    other.clear()
    check("clear empties one database", (other.get("forever"), cache.get("forever")), (None, 1))


def site():
    client = Client()
    first = client.get("/page?n=1").content
    check("a cached page is drawn once", (client.get("/page?n=1").content, rendered), (first, 1))
    client.get("/page?n=2")
    check("pages are told apart by their query", rendered, 2)
    browsers = [Client() for _ in range(5)]
    for turn in range(20):
        for number, browser in enumerate(browsers):
            browser.get(f"/visits?item={number}-{turn}")
    check("sessions count", [b.get("/visits?item=x").content for b in browsers], [b"21"] * 5)
    check("baskets are kept apart", browsers[3].session["basket"][:2], ["3-0", "3-1"])
    browsers[0].get("/leave")
    check("a session that was left", browsers[0].get("/visits?item=y").content, b"1")
    check("the others stay", browsers[1].get("/visits?item=y").content, b"22")
    template = Template("{% load cache %}{% cache 60 part who %}{{ value }}{% endcache %}")
    drawn = [template.render(Context({"who": who, "value": value})) for who, value in (("a", 1), ("a", 2), ("b", 3))]
    check("fragments of templates", drawn, ["1", "1", "3"])


if __name__ == "__main__":
    operations()
    time_and_place()
    site()
    finish()
