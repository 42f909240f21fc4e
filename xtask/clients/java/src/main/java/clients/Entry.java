package clients;

import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/** One key, or three with one hash tag that are always written together. */
final class Entry {
    final List<String> keys;
    String acknowledged;
    String doubt;

    Entry(String name, int size) {
        keys = size == 1
                ? List.of(name)
                : IntStream.range(0, size).mapToObj(at -> "{" + name + "}" + at).toList();
    }

    /** What is wrong with these values of the keys, or null. */
    String judge(List<String> values) {
        String first = values.get(0);
        boolean same = values.stream().allMatch(value -> Objects.equals(value, first));
        if (same && (Objects.equals(first, acknowledged) || doubt != null && doubt.equals(first))) {
            return null;
        }
        return keys.get(0) + ": read " + values + ", acknowledged " + acknowledged + ", in doubt " + doubt;
    }
}
