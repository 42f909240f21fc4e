package clients;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.ClusterPipeline;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisClusterOperationException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.util.JedisClusterCRC16;

/** Jedis, with the topology asked for again every second beside when it is told of a change. */
final class OfJedis implements Library {
    private final RedisClusterClient cluster;
    private final RedisClusterClient replicas;

    OfJedis(List<String> addresses) {
        cluster = connect(addresses, DefaultJedisClientConfig.builder());
        replicas = connect(addresses, DefaultJedisClientConfig.builder().readOnlyForRedisClusterReplicas());
    }

    private static RedisClusterClient connect(List<String> addresses, DefaultJedisClientConfig.Builder config) {
        return RedisClusterClient.builder()
                .nodes(addresses.stream().map(HostAndPort::from).collect(Collectors.toSet()))
                .clientConfig(config.timeoutMillis(5_000).build())
                .topologyRefreshPeriod(Duration.ofSeconds(1))
                .build();
    }

    @Override
    public String name() {
        // It tells its version to servers only; the jar has it in its name.
        String jar = RedisClusterClient.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return "Jedis " + jar.replaceAll("^.*/jedis-|\\.jar$", "");
    }

    @Override
    public void set(String key, String value) {
        cluster.set(key, value);
    }

    @Override
    public String get(String key) {
        return cluster.get(key);
    }

    @Override
    public String getAtReplica(String key) {
        CommandArguments get = new CommandArguments(Protocol.Command.GET).key(key);
        return replicas.executeCommandToReplica(new CommandObject<>(get, BuilderFactory.STRING));
    }

    @Override
    public void mset(Map<String, String> pairs) {
        cluster.mset(pairs.entrySet().stream()
                .flatMap(pair -> List.of(pair.getKey(), pair.getValue()).stream())
                .toArray(String[]::new));
    }

    @Override
    public List<String> mget(List<String> keys) {
        return cluster.mget(keys.toArray(String[]::new));
    }

    /** Jedis has transactions on a connection only: that of the slot. */
    @Override
    public void transact(Map<String, String> pairs) {
        String first = pairs.keySet().iterator().next();
        try (Connection connection = cluster.getConnectionFromSlot(JedisClusterCRC16.getSlot(first));
                AbstractTransaction transaction = new Transaction(connection)) {
            pairs.forEach(transaction::set);
            transaction.exec();
        }
    }

    @Override
    public List<Exception> pipeline(Map<String, String> pairs) {
        List<Response<String>> replies = new ArrayList<>();
        try (ClusterPipeline pipeline = cluster.pipelined()) {
            pairs.forEach((key, value) -> replies.add(pipeline.set(key, value)));
            pipeline.sync();
        }
        List<Exception> errors = new ArrayList<>();
        for (Response<String> reply : replies) {
            try {
                reply.get();
                errors.add(null);
            } catch (Exception error) {
                errors.add(error);
            }
        }
        return errors;
    }

    /**
     * Transactions and pipelines are not sent again by Jedis: they see MOVED, and a reply that never came as an
     * IllegalStateException.
     *
     * <p>Jedis 8.0.2 also drops the wrong node of a pipeline when a connection is lost: MultiNodePipelineBase.sync
     * calls remove on an iterator that has moved on. The node that was lost keeps its replies without a connection, and
     * the next sync or close fails with a NullPointerException of Jedis's own. It stands for the lost connection.
     */
    @Override
    public boolean passes(Exception error) {
        return error instanceof JedisConnectionException
                || isOfLostPipeline(error)
                || error instanceof JedisClusterOperationException
                || error instanceof IllegalStateException && String.valueOf(error.getMessage()).startsWith("Please close pipeline")
                || String.valueOf(error.getMessage()).startsWith("EXECABORT")
                || Library.isOfChange(error);
    }

    private static boolean isOfLostPipeline(Exception error) {
        StackTraceElement[] trace = error.getStackTrace();
        return error instanceof NullPointerException
                && trace.length > 0
                && trace[0].getClassName().startsWith("redis.clients.jedis.MultiNodePipelineBase");
    }

    @Override
    public void close() {
        cluster.close();
        replicas.close();
    }
}
