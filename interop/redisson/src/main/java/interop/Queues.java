package interop;

import java.util.HashMap;
import java.util.Map;

import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;

/**
 * The queues in use. While a delayed queue is held here, this process transfers due values; a
 * destination alone does not make it do so.
 */
final class Queues {
    private final Clients clients;
    private final Codecs codecs = new Codecs();
    private final Map<String, RBlockingQueue<Object>> ready = new HashMap<>();
    private final Map<String, RDelayedQueue<Object>> delayed = new HashMap<>();

    Queues(Clients clients) {
        this.clients = clients;
    }

    synchronized RBlockingQueue<Object> ready(QueueName queue) throws ReflectiveOperationException {
        RBlockingQueue<Object> found = ready.get(queue.key());
        if (found == null) {
            found = open(queue);
            ready.put(queue.key(), found);
        }
        return found;
    }

    synchronized RDelayedQueue<Object> delayed(QueueName queue) throws ReflectiveOperationException {
        RDelayedQueue<Object> found = delayed.get(queue.key());
        if (found == null) {
            found = clients.get(queue.prefix).getDelayedQueue(ready(queue));
            delayed.put(queue.key(), found);
        }
        return found;
    }

    /** Ends the transfers of this process for the queue, if it did any. */
    synchronized void destroy(QueueName queue) {
        RDelayedQueue<Object> found = delayed.remove(queue.key());
        if (found != null) {
            found.destroy();
        }
    }

    private RBlockingQueue<Object> open(QueueName queue) throws ReflectiveOperationException {
        RedissonClient client = clients.get(queue.prefix);
        if (queue.codec.equals("default")) {
            return client.getBlockingQueue(queue.name);
        }
        return client.getBlockingQueue(queue.name, codecs.get(queue.codec));
    }
}
