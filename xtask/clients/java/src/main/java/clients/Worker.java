package clients;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** One that does one thing at a time, with keys of its own. */
final class Worker implements Runnable {
    private static final int ENTRIES = 60;
    private static final int PIPELINE = 6;
    private static final int PAUSE_MS = 3;

    private interface Write {
        void run(Entry entry, String value) throws Exception;
    }

    private interface Read {
        List<String> run(Entry entry) throws Exception;
    }

    private final String name;
    private final Library library;
    private final Report report;
    private final AtomicBoolean ends;
    final List<Entry> singles = new ArrayList<>();
    final List<Entry> groups = new ArrayList<>();
    final List<Entry> left = new ArrayList<>();
    private int made;
    private int value;
    private int turn;
    private long last;

    Worker(String name, Library library, Report report, AtomicBoolean ends) {
        this.name = name;
        this.library = library;
        this.report = report;
        this.ends = ends;
        for (int at = 0; at < ENTRIES; at++) {
            singles.add(make(1));
            groups.add(make(3));
        }
    }

    private Entry make(int size) {
        made++;
        return new Entry(name + ":" + made, size);
    }

    @Override
    public void run() {
        last = System.nanoTime();
        while (!ends.get()) {
            turn++;
            try {
                step();
                Thread.sleep(PAUSE_MS);
            } catch (InterruptedException end) {
                return;
            }
        }
    }

    private void step() {
        switch (turn % 7) {
            case 0 -> write("sets", singles, (entry, value) -> library.set(entry.keys.get(0), value));
            case 1 -> read("reads", singles, entry -> one(library.get(entry.keys.get(0))));
            case 2 -> pipeline();
            case 3 -> write("groups", groups, (entry, value) -> library.mset(pairs(entry, value)));
            case 4 -> read("groups", groups, entry -> library.mget(entry.keys));
            case 5 -> write("transactions", groups, (entry, value) -> library.transact(pairs(entry, value)));
            default -> read("replica_reads", singles, entry -> one(library.getAtReplica(entry.keys.get(0))));
        }
    }

    private static List<String> one(String value) {
        List<String> values = new ArrayList<>();
        values.add(value);
        return values;
    }

    private static Map<String, String> pairs(Entry entry, String value) {
        Map<String, String> pairs = new LinkedHashMap<>();
        entry.keys.forEach(key -> pairs.put(key, value));
        return pairs;
    }

    private String fresh() {
        value++;
        return Integer.toString(value);
    }

    private void success(String kind, int writes) {
        long now = System.nanoTime();
        report.success(kind, (now - last) / 1_000_000, writes);
        last = now;
    }

    /** A write was acknowledged, or nobody can say. */
    private void settle(List<Entry> all, Entry entry, String value, Exception error) {
        if (error == null) {
            entry.acknowledged = value;
            return;
        }
        entry.doubt = value;
        left.add(entry);
        all.set(all.indexOf(entry), make(entry.keys.size()));
    }

    private void write(String kind, List<Entry> all, Write write) {
        Entry entry = all.get(turn / 7 % ENTRIES);
        String value = fresh();
        Exception error = null;
        try {
            write.run(entry, value);
        } catch (Exception failed) {
            error = failed;
            report.error(kind, failed, library.passes(failed));
        }
        settle(all, entry, value, error);
        if (error == null) {
            success(kind, 1);
        }
    }

    private void read(String kind, List<Entry> all, Read read) {
        Entry entry = all.get((int) (turn * 31L % ENTRIES));
        try {
            String wrong = entry.judge(read.run(entry));
            if (wrong != null) {
                report.mistake(kind + ": " + wrong);
            }
            success(kind, 0);
        } catch (Exception failed) {
            report.error(kind, failed, library.passes(failed));
        }
    }

    private void pipeline() {
        List<Entry> entries = new ArrayList<>();
        Map<String, String> pairs = new LinkedHashMap<>();
        for (int at = 0; at < PIPELINE; at++) {
            Entry entry = singles.get((int) ((turn * 13L + at) % ENTRIES));
            entries.add(entry);
            pairs.put(entry.keys.get(0), fresh());
        }
        List<Exception> errors = new ArrayList<>();
        try {
            errors.addAll(library.pipeline(pairs));
        } catch (Exception failed) {
            entries.forEach(entry -> errors.add(failed));
        }
        boolean fine = true;
        for (int at = 0; at < PIPELINE; at++) {
            Entry entry = entries.get(at);
            Exception error = errors.get(at);
            settle(singles, entry, pairs.get(entry.keys.get(0)), error);
            if (error != null) {
                fine = false;
                report.error("pipeline", error, library.passes(error));
            }
        }
        if (fine) {
            success("pipelines", PIPELINE);
        }
    }
}
