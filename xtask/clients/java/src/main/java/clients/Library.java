package clients;

import java.util.List;
import java.util.Map;

/** What the programs need of a library's cluster client: each of them as its users would do it. */
interface Library extends AutoCloseable {
    String name();

    void set(String key, String value) throws Exception;

    String get(String key) throws Exception;

    /** By a client that reads from replicas. */
    String getAtReplica(String key) throws Exception;

    void mset(Map<String, String> pairs) throws Exception;

    List<String> mget(List<String> keys) throws Exception;

    /** All of them in one transaction. */
    void transact(Map<String, String> pairs) throws Exception;

    /** Of each pair in turn, why it failed; null where it did not. */
    List<Exception> pipeline(Map<String, String> pairs) throws Exception;

    /** Whether users have to be ready for the error while nodes come and go. */
    boolean passes(Exception error);

    /** Whether an error reply is one of a cluster that changes. */
    static boolean isOfChange(Throwable error) {
        String text = String.valueOf(error.getMessage());
        return List.of("CLUSTERDOWN", "TRYAGAIN", "MOVED", "UNKNOWNRESULT").stream().anyMatch(text::startsWith);
    }
}
