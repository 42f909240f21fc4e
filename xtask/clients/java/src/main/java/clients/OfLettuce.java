package clients;

import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.ReadFrom;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Lettuce, with the refreshes of the topology that its manual advises: adaptive ones and one a second. */
final class OfLettuce implements Library {
    private static final Duration LIMIT = Duration.ofSeconds(10);
    private final RedisClusterClient client;
    private final StatefulRedisClusterConnection<String, String> cluster;
    private final StatefulRedisClusterConnection<String, String> replicas;
    private final Object transactions = new Object();

    OfLettuce(List<String> addresses) {
        client = RedisClusterClient.create(addresses.stream()
                .map(OfLettuce::uri)
                .toList());
        ClusterTopologyRefreshOptions refresh = ClusterTopologyRefreshOptions.builder()
                .enableAllAdaptiveRefreshTriggers()
                .adaptiveRefreshTriggersTimeout(Duration.ofMillis(500))
                .enablePeriodicRefresh(Duration.ofSeconds(1))
                .build();
        client.setOptions(ClusterClientOptions.builder().topologyRefreshOptions(refresh).build());
        cluster = client.connect();
        replicas = client.connect();
        replicas.setReadFrom(ReadFrom.REPLICA_PREFERRED);
    }

    private static RedisURI uri(String address) {
        RedisURI uri = RedisURI.create("redis://" + address);
        uri.setTimeout(LIMIT);
        return uri;
    }

    @Override
    public String name() {
        return "Lettuce " + LettuceVersion.getVersion();
    }

    @Override
    public void set(String key, String value) {
        cluster.sync().set(key, value);
    }

    @Override
    public String get(String key) {
        return cluster.sync().get(key);
    }

    @Override
    public String getAtReplica(String key) {
        return replicas.sync().get(key);
    }

    @Override
    public void mset(Map<String, String> pairs) {
        cluster.sync().mset(pairs);
    }

    @Override
    public List<String> mget(List<String> keys) {
        List<KeyValue<String, String>> found = cluster.sync().mget(keys.toArray(String[]::new));
        return new ArrayList<>(found.stream().map(pair -> pair.getValueOrElse(null)).toList());
    }

    /** Lettuce has transactions on a node's connection only, which all threads share. */
    @Override
    public void transact(Map<String, String> pairs) {
        int slot = SlotHash.getSlot(pairs.keySet().iterator().next());
        synchronized (transactions) {
            RedisClusterNode node = cluster.getPartitions().getPartitionBySlot(slot);
            RedisCommands<String, String> commands = cluster.getConnection(node.getNodeId()).sync();
            commands.multi();
            try {
                pairs.forEach(commands::set);
            } catch (RedisException error) {
                commands.discard();
                throw error;
            }
            TransactionResult result = commands.exec();
            for (Object reply : result) {
                if (reply instanceof RedisException error) {
                    throw error;
                }
            }
        }
    }

    @Override
    public List<Exception> pipeline(Map<String, String> pairs) throws InterruptedException {
        List<RedisFuture<String>> replies = new ArrayList<>();
        pairs.forEach((key, value) -> replies.add(cluster.async().set(key, value)));
        List<Exception> errors = new ArrayList<>();
        for (RedisFuture<String> reply : replies) {
            try {
                reply.get(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
                errors.add(null);
            } catch (ExecutionException error) {
                errors.add(error.getCause() instanceof Exception cause ? cause : error);
            } catch (TimeoutException error) {
                errors.add(error);
            }
        }
        return errors;
    }

    @Override
    public boolean passes(Exception error) {
        if (error instanceof RedisCommandExecutionException) {
            return Library.isOfChange(error) || String.valueOf(error.getMessage()).startsWith("EXECABORT");
        }
        // Connections that end are a RedisException without a class of its own, and futures have its cause.
        return error instanceof RedisException || error instanceof IOException || error instanceof TimeoutException;
    }

    @Override
    public void close() {
        client.shutdown();
    }
}
