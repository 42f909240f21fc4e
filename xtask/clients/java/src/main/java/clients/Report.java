package clients;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What all workers saw, by phase, and how it is printed. */
final class Report {
    private static final int SHOWN = 20;

    private static final class Phase {
        final String name;
        final Map<String, Integer> errors = new LinkedHashMap<>();
        int operations;
        long silenceMs;

        Phase(String name) {
            this.name = name;
        }
    }

    private final List<Phase> phases = new ArrayList<>();
    private final Map<String, Integer> counts = new LinkedHashMap<>();
    private final Map<String, Integer> unexpected = new LinkedHashMap<>();
    private final List<String> wrong = new ArrayList<>();
    private int wrongs;

    synchronized void begin(String name) {
        phases.add(new Phase(name));
    }

    synchronized void success(String kind, long silenceMs, int writes) {
        if (counts.isEmpty()) {
            System.out.println("ready");
        }
        Phase phase = phases.get(phases.size() - 1);
        phase.operations++;
        phase.silenceMs = Math.max(phase.silenceMs, silenceMs);
        counts.merge(kind, 1, Integer::sum);
        counts.merge("acknowledged", writes, Integer::sum);
    }

    synchronized void error(String step, Exception error, boolean passes) {
        String text = String.valueOf(error.getMessage()).lines().findFirst().orElse("");
        String kind = step + ": " + error.getClass().getSimpleName() + ": " + text.substring(0, Math.min(80, text.length()));
        phases.get(phases.size() - 1).errors.merge(kind, 1, Integer::sum);
        if (!passes) {
            unexpected.merge(kind, 1, Integer::sum);
        }
    }

    synchronized void mistake(String what) {
        wrongs++;
        if (wrong.size() < SHOWN) {
            wrong.add(what);
        }
    }

    synchronized boolean isFine() {
        return wrongs == 0 && unexpected.isEmpty();
    }

    synchronized String json(String library, int doubts, int keys) {
        String all = phases.stream()
                .map(phase -> "{\"name\":" + quoted(phase.name) + ",\"operations\":" + phase.operations + ",\"errors\":"
                        + object(phase.errors) + ",\"silence_ms\":" + phase.silenceMs + "}")
                .collect(Collectors.joining(","));
        String mistakes = wrong.stream().map(Report::quoted).collect(Collectors.joining(","));
        return "{\"library\":" + quoted(library) + ",\"phases\":[" + all + "],\"unexpected\":" + object(unexpected)
                + ",\"wrong\":[" + mistakes + "],\"wrongs\":" + wrongs + ",\"doubts\":" + doubts + ",\"keys\":" + keys
                + ",\"counts\":" + object(counts) + "}";
    }

    private static String object(Map<String, Integer> numbers) {
        return numbers.entrySet().stream()
                .map(entry -> quoted(entry.getKey()) + ":" + entry.getValue())
                .collect(Collectors.joining(",", "{", "}"));
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        text.chars().forEach(c -> {
            switch (c) {
                case '"', '\\' -> out.append('\\').append((char) c);
                default -> out.append(c < ' ' ? ' ' : (char) c);
            }
        });
        return out.append('"').toString();
    }
}
