package interop;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.BaseConfig;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** Redisson clients with their default settings but three, one for each prefix of names. */
final class Clients {
    /** Milliseconds. On a busy machine a first subscription has failed with the default of 3,000, and an offer with 15,000. */
    private static final int PATIENCE = 60_000;

    /** Redisson tries that often to write a command. With its default of 3 or 4 it gave up after some seconds on a busy machine. */
    private static final int ATTEMPTS = 30;

    /**
     * With the default of 5, each test opens and closes connections for subscriptions, and 3.16.8 then loses its lock
     * of a channel once in some 10,000 times: further subscriptions wait until they time out (redisson#4216). One
     * subscription that stays keeps the one connection open where no test needs it.
     */
    private static final int SUBSCRIPTIONS_PER_CONNECTION = 1_000;
    private static final String STAYS = "redisson_delay_queue_channel:{interop}";

    private final URI server;
    private final boolean cluster;
    private final Map<String, RedissonClient> open = new HashMap<>();

    Clients(String address, boolean cluster) {
        this.server = URI.create(address.contains("://") ? address : "redis://" + address);
        this.cluster = cluster;
    }

    synchronized RedissonClient get(String prefix) throws ReflectiveOperationException {
        RedissonClient client = open.get(prefix);
        if (client == null) {
            client = Redisson.create(config(prefix));
            client.getTopic(STAYS).addListener(String.class, (channel, message) -> { });
            open.put(prefix, client);
        }
        return client;
    }

    private Config config(String prefix) throws ReflectiveOperationException {
        Config config = new Config();
        BaseConfig<?> servers = cluster ? cluster(config) : single(config);
        servers.setTimeout(PATIENCE);
        servers.setRetryAttempts(ATTEMPTS);
        servers.setSubscriptionsPerConnection(SUBSCRIPTIONS_PER_CONNECTION);
        String[] credentials = server.getUserInfo() == null ? new String[0] : server.getUserInfo().split(":", 2);
        if (credentials.length == 2) {
            servers.setPassword(credentials[1]);
            servers.setUsername(credentials[0].isEmpty() ? null : credentials[0]);
        }
        if (!prefix.isEmpty()) {
            mapNames(servers, prefix);
        }
        return config;
    }

    private BaseConfig<?> cluster(Config config) {
        return config.useClusterServers().addNodeAddress(node());
    }

    private BaseConfig<?> single(Config config) {
        SingleServerConfig single = config.useSingleServer().setAddress(node());
        String path = server.getPath().replace("/", "");
        if (!path.isEmpty()) {
            single.setDatabase(Integer.parseInt(path));
        }
        return single;
    }

    private String node() {
        return server.getScheme() + "://" + server.getHost() + ':' + server.getPort();
    }

    /** NameMapper has moved from package to package, so that no import finds it in all releases. */
    private static void mapNames(BaseConfig<?> servers, String prefix) throws ReflectiveOperationException {
        for (Method method : servers.getClass().getMethods()) {
            if (method.getName().equals("setNameMapper")) {
                method.invoke(servers, mapper(method.getParameterTypes()[0], prefix));
                return;
            }
        }
        throw new NoSuchMethodException("setNameMapper");
    }

    private static Object mapper(Class<?> type, String prefix) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
            switch (method.getName()) {
                case "map": return prefix + arguments[0];
                case "unmap": return ((String) arguments[0]).substring(prefix.length());
                case "equals": return self == arguments[0];
                case "hashCode": return System.identityHashCode(self);
                default: return "prefix " + prefix;
            }
        });
    }
}
