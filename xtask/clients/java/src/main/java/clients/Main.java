package clients;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** Jedis or Lettuce at work: see xtask/clients/README.md. */
public final class Main {
    private static final int WORKERS = 4;
    private static final long PATIENCE_NS = 60_000_000_000L;

    private Main() {}

    public static void main(String[] args) throws Exception {
        List<String> addresses = List.of(args[1].split(","));
        Library library = switch (args[0]) {
            case "jedis" -> new OfJedis(addresses);
            case "lettuce" -> new OfLettuce(addresses);
            default -> throw new IllegalArgumentException(args[0]);
        };
        Report report = new Report();
        report.begin("connects");
        AtomicBoolean ends = new AtomicBoolean();
        List<Worker> workers = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < WORKERS; number++) {
            Worker worker = new Worker(args[0] + ":" + number, library, report, ends);
            workers.add(worker);
            Thread thread = new Thread(worker);
            thread.start();
            threads.add(thread);
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            report.begin(line.strip());
        }
        ends.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        int doubts = 0;
        int keys = 0;
        for (Worker worker : workers) {
            doubts += worker.left.size();
            for (List<Entry> entries : List.of(worker.singles, worker.groups, worker.left)) {
                audit(library, entries, report);
                keys += entries.stream().mapToInt(entry -> entry.keys.size()).sum();
            }
        }
        System.out.println(report.json(library.name(), doubts, keys));
        System.out.flush();
        // Not by the libraries' own end: threads of theirs may wait for nodes that are gone.
        Runtime.getRuntime().halt(report.isFine() ? 0 : 1);
    }

    /** Reads everything again; what cannot be read for a minute is wrong. */
    private static void audit(Library library, List<Entry> entries, Report report) throws InterruptedException {
        long until = System.nanoTime() + PATIENCE_NS;
        for (Entry entry : entries) {
            List<String> values = null;
            while (values == null) {
                try {
                    values = library.mget(entry.keys);
                } catch (Exception error) {
                    if (System.nanoTime() > until || !library.passes(error)) {
                        values = List.of(error.toString());
                    } else {
                        Thread.sleep(100);
                    }
                }
            }
            String wrong = entry.judge(values);
            if (wrong != null) {
                report.mistake("at the end: " + wrong);
            }
        }
    }
}
