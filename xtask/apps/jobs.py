"""Functions that RQ's and Celery's workers run: they must be importable from the worker's process."""

import os


def factors(number):
    """A job that takes a little time: the prime factors of a number."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found + [number] if number > 1 else found


def fails(text):
    raise ValueError(text)


def fails_once(marker):
    """Fails until its marker exists, which it makes."""
    if os.path.exists(marker):
        return "second time"
    with open(marker, "w") as file:
        file.write("was here")
    raise RuntimeError("first time")
