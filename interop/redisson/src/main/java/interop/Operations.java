package interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** All operations by name. */
final class Operations {
    private final Queues queues;
    private final Consumers consumers;
    private final Map<String, Operation> byName = new HashMap<>();

    Operations(Clients clients, Output output) {
        queues = new Queues(clients);
        consumers = new Consumers(queues, output);
        byName.put("clock", request -> Clock.nanos());
        addDelayed();
        addReady();
        addLoad();
    }

    Object run(Request request) throws Exception {
        Operation operation = byName.get(request.operation);
        if (operation == null) {
            throw new IllegalArgumentException("operation " + request.operation + " is unknown; known: " + byName.keySet());
        }
        return operation.run(request);
    }

    private void addDelayed() {
        byName.put("hold", r -> done(() -> queues.delayed(r.queue())));
        byName.put("destroy", r -> done(() -> queues.destroy(r.queue())));
        byName.put("offer", r -> done(() ->
                queues.delayed(r.queue()).offer(r.value(0), r.number(1), TimeUnit.MILLISECONDS)));
        byName.put("remove", r -> queues.delayed(r.queue()).remove(r.value(0)));
        byName.put("contains", r -> queues.delayed(r.queue()).contains(r.value(0)));
        byName.put("size", r -> queues.delayed(r.queue()).size());
        byName.put("readAll", r -> queues.delayed(r.queue()).readAll());
        byName.put("peek", r -> queues.delayed(r.queue()).peek());
        byName.put("poll", r -> queues.delayed(r.queue()).poll());
        byName.put("pollMany", r -> queues.delayed(r.queue()).poll((int) r.number(0)));
    }

    private void addReady() {
        byName.put("take", r -> queues.ready(r.queue()).poll(r.number(0), TimeUnit.MILLISECONDS));
        byName.put("readyPoll", r -> queues.ready(r.queue()).poll());
        byName.put("readySize", r -> queues.ready(r.queue()).size());
        byName.put("consume", r -> done(() -> consumers.start(r)));
        byName.put("stop", r -> done(() -> consumers.stop((String) r.argument(0))));
    }

    private void addLoad() {
        byName.put("offerMany", r -> new Load(queues.delayed(r.queue()), r).run());
        byName.put("race", r -> new Race(queues, r).run());
    }

    /** For operations without a result. */
    private static Object done(Step step) throws Exception {
        step.run();
        return null;
    }

    private interface Step {
        void run() throws Exception;
    }
}
